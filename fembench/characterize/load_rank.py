"""The program of `predict --now` on another host."""

from fembench.characterize.load_now import LoadJob, measured_here
from fembench.launch.serve import RankProgram

PROGRAM = RankProgram(LoadJob, lambda job: 1, lambda comm, job, tell: measured_here(), "load.json")
