"""The tenant of a slow host: it takes the rest of a CPU's time, in turns of 1 ms.

A CFS quota would do the same on average, but not within an iteration. The kernel checks
it once per tick (4 ms), so a rank at a quarter of the time computes in bursts of 4 ms
every 16 ms. Between them the CPU is idle and its caches are lost, and the host may be
up to eight times as slow (docs/decisions/0007). A tenant in a real-time class follows
the clock and keeps the CPU awake.

`lab` starts it as a script: python lab_tenant.py SPEED CPU
GROUP..., with the groups to join.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TURN = 1e-3  # seconds, divided between the host and the tenant
LEAST = 0.06  # smallest speed of a host: the kernel reserves 5 % of each CPU


def start(speed: float, cpu: int, groups: Sequence[Path]) -> bool:
    """Start a tenant on a CPU in these control groups; False if its class is refused.

    It outlives this process and ends when its groups are removed.
    """
    line = [sys.executable, "-IS", __file__, f"{speed:.9g}", str(cpu), *map(str, groups)]
    quiet = subprocess.DEVNULL
    return subprocess.run(line, stdin=quiet, stdout=quiet, stderr=quiet, check=False).returncode == 0


def main(speed: float, cpu: int, groups: Sequence[str]) -> None:
    """Join the groups or fail; then detach and take turns until killed."""
    for group in groups:
        with open(os.path.join(group, "cgroup.procs"), "w") as stream:
            stream.write(str(os.getpid()))
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    if os.fork():
        os._exit(0)
    os.setsid()
    take_turns(speed)


def take_turns(speed: float) -> None:
    """Compute for (1 - speed) of each turn, sleep for the rest. Never returns."""
    now = time.perf_counter
    turn = now()
    while True:
        end = turn + (1.0 - speed) * TURN
        while now() < end:
            pass
        turn += TURN
        left = turn - now()
        if left > 0:
            time.sleep(left)
        else:  # the tenant itself was delayed: skip the lost time
            turn -= left


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
