"""The settings of a small program, as values."""

from collections.abc import Sequence
from dataclasses import dataclass

ROOM = 2.5  # spare capacity of the cores, so that slow moments do not delay emulated ranks


@dataclass(frozen=True)
class ProgramSettings:
    """One run of a program. 0 and "" mean the program's own default."""

    program: str
    ranks: int = 2  # of a farm: the coordinator and its workers
    tasks: int = 0
    size: int = 0  # points, numbers or rows; units of work of one task of a graph
    n_bytes: int = 65536  # per message between tasks of a graph
    static: float = 1.0  # fraction of the tasks dealt before the run
    repetitions: int = 4
    samples: int = 20  # per operation, in a calibration
    emulate: str = ""  # SYNTHETIC: speed per rank
    dilate: float = 1.0  # SYNTHETIC: factor by which all ranks are slowed down
    seed: int = 0
    schedule: str = "turn"  # how tasks of a graph are placed


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
    """Settings for ranks of these speeds, dilated to fit on the cores.

    `idle`: number of first ranks that compute nothing; `dilate`: smallest dilation.
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
