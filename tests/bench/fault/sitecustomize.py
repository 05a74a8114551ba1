"""On PYTHONPATH of a job: what FEMBENCH_TEST_FAULT names goes wrong.

raise, kill, hang: rank 1 does so in its fifth neighbour sum. full: the disk is full when a file is written.
"""

import errno
import os
import signal
import time

FAULT = os.environ.get("FEMBENCH_TEST_FAULT", "")
RANK = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", ""))

if FAULT == "full":

    def fsync(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.fsync = fsync

elif FAULT and RANK == "1":
    from fembench.ranks import interface

    honest = interface.start_and_wait
    calls = []

    def start_and_wait(requests):
        start, wait = honest(requests)

        def faulty():
            calls.append(1)
            if len(calls) == 5:
                if FAULT == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if FAULT == "raise":
                    raise ArithmeticError("planted in the loop")
                time.sleep(1000)  # hang
            start()

        return faulty, wait

    interface.start_and_wait = start_and_wait
