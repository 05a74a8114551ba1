"""What every rank of a probe runs: `python -m fembench.launch.probe_rank FOLDER`."""

import sys

from fembench.launch.probed import ProbeJob, look
from fembench.launch.serve import RankProgram, serve

PROGRAM = RankProgram(ProbeJob, lambda job: job.ranks, lambda comm, job, tell: look(comm, job), "hosts.json")

if __name__ == "__main__":
    sys.exit(serve(PROGRAM, sys.argv[1]))
