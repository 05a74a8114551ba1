"""The settings of a small program, as values."""

from collections.abc import Sequence
from dataclasses import dataclass

from fembench.studies.pamela.bounds import Compose

ROOM = 2.5  # cores kept free per emulated rank's share: a slow moment delays no rank


@dataclass(frozen=True)
class ProgramSettings:
    """One run of a program. 0 and "" mean the program's own default."""

    program: str
    ranks: int = 2  # of a farm: the coordinator and its workers
    tasks: int = 0
    size: int = 0  # points, numbers or rows; units of work of one task of a graph
    n_bytes: int = 65536  # of a message between tasks of a graph
    static: float = 1.0  # fraction of the tasks dealt before the run
    repetitions: int = 4
    samples: int = 20  # of each operation, in a calibration
    emulate: str = ""  # SYNTHETIC: speed of each rank
    dilate: float = 1.0  # SYNTHETIC: factor by which all ranks compute more slowly
    seed: int = 0
    schedule: str = "turn"  # how tasks of a graph are placed
    compose: Compose = "phase"  # bounds per phase, or of the whole run: "global"
    policy: str = "q"  # conditionals: by their probability Q, or "worst"
    cores: int = 0  # that the workers share; 0: one each


def emulated_settings(
    program: str,
    speeds: Sequence[float],
    cores: int,
    *,
    size: int,
    repetitions: int,
    samples: int,
    tasks: int = 0,
    n_bytes: int = 0,
    idle: int = 0,
    dilate: float = 1.0,
) -> ProgramSettings:
    """The compute speeds of the ranks, dilated so that the ranks fit on the cores.

    The first `idle` ranks compute nothing; `dilate` is the smallest factor allowed.
    """
    return ProgramSettings(
        program=program,
        ranks=len(speeds),
        tasks=tasks,
        size=size,
        n_bytes=n_bytes,
        repetitions=repetitions,
        samples=samples,
        emulate=",".join(f"{s:g}" for s in speeds),
        dilate=max(dilate, round(ROOM * sum(speeds[idle:]) / cores, 1)),
    )
