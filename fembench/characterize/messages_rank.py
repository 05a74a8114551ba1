"""The ranks of a network job: `python -m fembench.characterize.messages_rank FOLDER`."""

import sys

from fembench.characterize.jobs import NetworkJob
from fembench.characterize.messages import measure_network
from fembench.launch.serve import RankProgram, serve

PROGRAM = RankProgram(NetworkJob, lambda job: job.ranks, measure_network, "network.json")

if __name__ == "__main__":
    sys.exit(serve(PROGRAM, sys.argv[1]))
