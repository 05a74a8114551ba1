"""The ranks of `fembench nodes`: `python -m fembench.characterize.nodes_rank FOLDER`."""

import sys

from fembench.characterize.jobs import NodesJob
from fembench.characterize.node_rates import measure_nodes
from fembench.launch.serve import RankProgram, serve

PROGRAM = RankProgram(NodesJob, lambda job: job.ranks, measure_nodes, "nodes.json")

if __name__ == "__main__":
    sys.exit(serve(PROGRAM, sys.argv[1]))
