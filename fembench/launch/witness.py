"""Say which rank died first.

When a rank is killed, launchers name no rank, or one that they ended themselves afterwards. Therefore each
rank watches the next one on its host, from a thread that sleeps in the kernel until that process ends
(Linux 5.3).
"""

import os
import re
import select
import threading
from collections.abc import Callable, Sequence

from fembench.launch.job import StartedRank

WITNESSED = re.compile(r"^fembench: rank (\d+) on (\S+) ended before its job$", re.M)


def watch_neighbour(started: Sequence[StartedRank], rank: int) -> Callable[[], None]:
    """Print a line on stderr if the next rank on this host ends; the function returned ends the watch.

    `started`: all ranks of the job. A rank that is alone on its host watches nobody.
    """
    here = [other for other, one in enumerate(started) if one.host == started[rank].host]
    other = here[(here.index(rank) + 1) % len(here)]
    handle = _handle(started[other].process) if other != rank else None
    if handle is None:
        return lambda: None
    over, end = os.pipe()

    def wait() -> None:
        poll = select.poll()
        for one in (handle, over):
            poll.register(one, select.POLLIN)
        if over not in [one for one, _ in poll.poll()]:
            os.write(2, f"fembench: rank {other} on {started[other].host} ended before its job\n".encode())

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()

    def stop() -> None:
        os.write(end, b".")
        thread.join()
        for one in (handle, over, end):
            os.close(one)

    return stop


def _handle(process: int) -> int | None:
    """A file descriptor that becomes readable when the process ends; None where there is no such thing."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):  # not Linux, an old kernel, or a container that hides the process
        return None
