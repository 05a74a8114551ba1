"""What every rank of a probe runs."""

from fembench.launch.probed import ProbeJob, look
from fembench.launch.serve import RankProgram

PROGRAM = RankProgram(ProbeJob, lambda job: job.ranks, lambda comm, job, tell: look(comm, job), "hosts.json")
