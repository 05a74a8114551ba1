"""The process of each rank of a program's job."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from fembench.balance.control import Settings
from fembench.balance.link import probe
from fembench.balance.observation import Tuning
from fembench.host.others import others_meter
from fembench.launch.job import RankProgram
from fembench.ranks.comm import Comm
from fembench.records.ledger import Ledger
from fembench.synthetic.slowness import slowness_of
from fembench.synthetic.waits import FINE, timer_slack
from fembench_studies.bsp.bsp_job import CellTimes, PolicyRun, ProgramJob, ProgramTimes
from fembench_studies.bsp.fractal import Fractal
from fembench_studies.bsp.shear_sort import ShearSort
from fembench_studies.bsp.supersteps import BspProgram, Ran, learn, run_program


def program_of(job: ProgramJob) -> BspProgram:
    """A new instance of the program."""
    if job.program == "shear-sort":
        return ShearSort(job.size[0], job.n_blocks, job.supersteps)
    height, width, r = job.size
    return Fractal(height, width, r, job.n_blocks, job.supersteps)


def run_job(comm: Comm, job: ProgramJob) -> ProgramTimes | None:
    """The result on rank 0, None elsewhere; runs are interleaved over
    the repetitions. Collective."""
    timer_slack(FINE)
    others = others_meter(comm)
    pairs = probe(comm)
    ran: dict[PolicyRun, list[Ran]] = {cell: [] for cell in job.cells}
    slowness = slowness_of(comm.rank, job.speeds, job.dilate, crowded=True)
    learn(comm, program_of(job), slowness)
    for _ in range(job.repetitions):
        for cell in job.cells:
            ran[cell].append(run_program(comm, program_of(job), settings_of(cell), slowness, pairs))
    shares = comm.gather(others())
    if shares is None:
        return None
    busiest = max(shares, key=lambda s: s.others_percent - s.others_resolution)
    answer = cast(NDArray, next(iter(ran.values()))[0].result)  # never None on rank 0
    cells = [
        CellTimes(
            cell=cell,
            seconds=tuple(r.seconds for r in runs),
            ledger=cast(Ledger, runs[-1].ledger),
            agrees=all(np.array_equal(cast(NDArray, r.result), answer) for r in runs),
        )
        for cell, runs in ran.items()
    ]
    return ProgramTimes(job=job, cells=tuple(cells), others=tuple(busiest))


def settings_of(cell: PolicyRun) -> Settings:
    """The balancer's settings; the published algorithms run
    without hysteresis or cooldown."""
    literal = cell.policy.startswith("migbsp")
    tuning = Tuning(band=cell.band, hysteresis=0.0 if literal else 0.02)
    return Settings(
        policy=cell.policy, alpha=cell.alpha, gamma=cell.gamma, cooldown=0 if literal else 2, tuning=tuning
    )


PROGRAM = RankProgram(
    ProgramJob,
    lambda job: len(job.speeds),
    lambda comm, job, tell: run_job(comm, job),
)
