"""The ranks of a network job."""

from fembench.characterize.jobs import NetworkJob
from fembench.characterize.messages import measure_network
from fembench.launch.serve import RankProgram

PROGRAM = RankProgram(NetworkJob, lambda job: job.ranks, measure_network, "network.json")
