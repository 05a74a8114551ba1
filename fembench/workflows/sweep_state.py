"""How a running campaign stands: a small file that the process which starts its jobs keeps.

It is replaced every EVERY seconds, by a thread that reads what is there anyway. Nobody
waits for it: a folder that cannot be written, or a reader, changes nothing.
"""

import contextlib
import os
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from fembench.base.config import encode
from fembench.base.errors import EndedError, FembenchError, shown
from fembench.base.files import Owner, atomic_path
from fembench.base.progress import Doing, current
from fembench.records.record import now_utc
from fembench.records.schema import check_time, read

STATE = Path("runs", ".progress.json")  # in the folder of a campaign
SCHEMA = 1
EVERY = 2.0  # seconds
LONGEST = 200  # characters of a text
DONE = "done"
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e10)]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs there are, when the last one has ended."""

    runs: int = 0  # that are planned
    verdicts: dict[str, int] = {}  # of those that have a record
    failed: int = 0
    left: Seconds | None = None  # until all are done; None: not known
    disturbed: str = ""  # a line on other work that disturbed the times


class SweepState(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds."""

    schema: int = SCHEMA
    owner: Owner
    written: str  # ISO 8601, UTC
    doing: str  # "sweep: 3/20: m on 2 ranks"
    seconds: Seconds  # that this has taken
    stage: str  # "set 3 of about 12"; "" if not known
    counts: Counts
    end: str = ""  # "": it runs; DONE, or why it ended


class Standing:
    """How a campaign stands, as its file says until it ends."""

    def __init__(self, folder: Path) -> None:
        self._path, self._counts, self._since = folder / STATE, Counts(), time.monotonic()
        self._owner = Owner(os.getpid(), platform.node(), now_utc())

    def tell(self, counts: Counts) -> None:
        """From now on, these."""
        self._counts, self._since = counts, time.monotonic()

    def write(self, end: str = "") -> None:
        """Replace the file, if that can be done."""
        work, counts = current() or Doing(""), self._counts
        if counts.left is not None:
            passed = time.monotonic() - self._since
            counts = msgspec.structs.replace(counts, left=max(0.0, counts.left - passed))
        state = SweepState(
            owner=self._owner,
            written=now_utc(),
            doing=shown(work.text, LONGEST),
            seconds=round(time.monotonic() - work.began, 1),
            stage=shown(work.stage, LONGEST),
            counts=counts,
            end=shown(end, LONGEST),
        )
        with contextlib.suppress(OSError, FembenchError), atomic_path(self._path) as temporary:
            temporary.write_bytes(encode(state))

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(EVERY):
            self.write()


@contextlib.contextmanager
def standing(folder: Path) -> Iterator[Standing]:
    """Keep the file of a campaign; at the end, it says how the campaign ended."""
    kept, ended, how = Standing(folder), threading.Event(), DONE
    kept.write()
    writer = threading.Thread(target=kept._keep, args=(ended,), daemon=True)
    writer.start()
    try:
        yield kept
    except KeyboardInterrupt:
        how = "interrupted"
        raise
    except BaseException as error:
        how = f"ended by {error}" if isinstance(error, EndedError) else str(error) or repr(error)
        raise
    finally:
        ended.set()
        writer.join()
        kept.write(how)


def read_state(path: Path) -> SweepState:
    """How a campaign stands, from its file. Raises InputError for anything else."""
    state = read(path, SweepState, SCHEMA, "the state of a campaign", has="counts", verb="sweep")
    check_time(state.written, f"{path}: written")
    return state
