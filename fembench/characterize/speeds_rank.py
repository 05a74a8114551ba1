"""The ranks of `fembench characterize`: `python -m fembench.characterize.speeds_rank FOLDER`."""

import sys

from fembench.characterize.jobs import CharacterizeJob
from fembench.characterize.speeds import characterize
from fembench.launch.serve import RankProgram, serve

PROGRAM = RankProgram(CharacterizeJob, lambda job: job.ranks, characterize, "profile.json")

if __name__ == "__main__":
    sys.exit(serve(PROGRAM, sys.argv[1]))
