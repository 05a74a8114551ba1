"""The program of `predict --now` on another host: `python -m fembench.characterize.load_rank FOLDER`."""

import sys

from fembench.characterize.load_now import LoadJob, measured_here
from fembench.launch.serve import RankProgram, serve

PROGRAM = RankProgram(LoadJob, lambda job: 1, lambda comm, job, tell: measured_here(), "load.json")

if __name__ == "__main__":
    sys.exit(serve(PROGRAM, sys.argv[1]))
