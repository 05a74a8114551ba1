"""The ranks of `fembench nodes`."""

from fembench.characterize.jobs import NodesJob
from fembench.characterize.node_rates import measure_nodes
from fembench.launch.serve import RankProgram

PROGRAM = RankProgram(NodesJob, lambda job: job.ranks, measure_nodes, "nodes.json")
