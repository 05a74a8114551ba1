"""The ranks of `characterize --operations`: `python -m fembench.characterize.operations_rank FOLDER`."""

import sys

from fembench.characterize.jobs import OperationsJob
from fembench.characterize.operations import operations
from fembench.launch.serve import RankProgram, serve

PROGRAM = RankProgram(OperationsJob, lambda job: job.ranks, operations, "operations.json")

if __name__ == "__main__":
    sys.exit(serve(PROGRAM, sys.argv[1]))
