"""On PYTHONPATH of a job: what the label of its case names goes wrong.

raise, kill, hang: rank 1 does so in its fifth neighbour sum. early: it is killed when it imports mpi4py, and
the others wait for it in MPI_Init. FEMBENCH_TEST_FAULT=full: the disk is full when a file is written.
"""

import errno
import json
import os
import signal
import sys
import time
from pathlib import Path

RANK = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", ""))


def label():
    """That of the case that this process is a rank of; '' if it is none."""
    if "fembench.bench.case_run" not in sys.orig_argv:
        return ""
    return json.loads(Path(sys.orig_argv[-1], "job.json").read_text())["case"]["output"]["label"]


if os.environ.get("FEMBENCH_TEST_FAULT") == "full":

    def fsync(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.fsync = fsync

elif RANK == "1" and (fault := label()) == "early":

    class Early:
        """In place of what finds modules."""

        @staticmethod
        def find_spec(name, *_):
            if name == "mpi4py":
                os.kill(os.getpid(), signal.SIGKILL)

    sys.meta_path.insert(0, Early)

elif RANK == "1" and fault:
    from fembench.ranks import interface

    honest = interface.start_and_wait
    calls = []

    def start_and_wait(requests):
        start, wait = honest(requests)

        def faulty():
            calls.append(1)
            if len(calls) == 5:
                if fault == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if fault == "raise":
                    raise ArithmeticError("planted in the loop")
                time.sleep(1000)  # hang
            start()

        return faulty, wait

    interface.start_and_wait = start_and_wait
