"""The tenant of a slow host: it has what the host is not to have of a CPU's time, in turns of a millisecond.

A quota of the kernel (CFS) would do the same on average, but not for an iteration: it is looked at once a
tick (4 ms), so a rank that computes has bursts of 4 ms in 16 ms; between them the CPU is idle, its caches go
to others, and a host of a quarter of the time is up to eight times as slow (docs/decisions/0007). A tenant in
a real-time class comes and goes by the clock, and keeps the CPU awake.

Started by `lab` as a script of its own: python lab_tenant.py SPEED CPU GROUP ..., the groups it has to join.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TURN = 1e-3  # seconds in which the host has its part, and the tenant the rest
LEAST = 0.06  # of the time that a host must have: the kernel leaves other classes 5 % of any CPU


def start(speed: float, cpu: int, groups: Sequence[Path]) -> bool:
    """A tenant on one CPU, in these control groups; False where the system does not let it have its class.

    It outlives this process: whoever removes its groups ends it.
    """
    line = [sys.executable, "-IS", __file__, f"{speed:.9g}", str(cpu), *map(str, groups)]
    quiet = subprocess.DEVNULL
    return subprocess.run(line, stdin=quiet, stdout=quiet, stderr=quiet, check=False).returncode == 0


def main(speed: float, cpu: int, groups: Sequence[str]) -> None:
    """Join the groups, or fail; then go on alone and take turns until killed."""
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
        else:  # it was held up itself: what is lost is not made up for
            turn -= left


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
