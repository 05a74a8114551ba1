"""The ranks of `characterize --operations`."""

from fembench.characterize.jobs import OperationsJob
from fembench.characterize.operations import operations
from fembench.launch.serve import RankProgram

PROGRAM = RankProgram(OperationsJob, lambda job: job.ranks, operations, "operations.json")
