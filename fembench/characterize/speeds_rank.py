"""The ranks of `fembench characterize`."""

from fembench.characterize.jobs import CharacterizeJob
from fembench.characterize.speeds import characterize
from fembench.launch.serve import RankProgram

PROGRAM = RankProgram(CharacterizeJob, lambda job: job.ranks, characterize, "profile.json")
