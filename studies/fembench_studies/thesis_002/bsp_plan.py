"""The experiments of Gomes (2014): two programs, twenty scenarios, strategies
over alpha x D (Tables 12-15).

The seven machines are emulated: dilated ranks of relative speeds SPEEDS on the cores here. The thesis does
not give the speeds; ours are a guess from the processors that it lists.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

from fembench_studies.bsp.bsp_job import PolicyRun, ProgramJob
from fembench_studies.layout import source_table

# 2 x Celeron 430, Celeron 520, E5400, i7-3632QM, i3-2330M, Atom Z530
SPEEDS = (1.0, 1.0, 0.9, 1.6, 2.2, 1.6, 0.5)
ROOM = 2.0  # spare capacity of the cores: one that is slow for seconds still keeps up
ALPHAS, BANDS = (2, 4, 8), (0.3, 0.2, 0.1)
# strategy of the thesis -> our policy; we lack Scotch and TopoCent. The thesis lacks OURS
STRATEGIES = {
    "NullLB": "none",
    "GreedyCommLB": "greedy-comm",
    "RefineCommLB": "refine-comm",
    "RandCentLB": "random",
    "SC": "observe",
    "MigBSPLB-A": "migbsp",
    "MigBSPLB-B": "migbsp++",
}
OURS = ("amortised", "migbsp++-scan", "greedy", "refine", "metis-shares", "rcb")
GRID = ("SC", "MigBSPLB-A", "MigBSPLB-B")  # run with every alpha and band


class BspScenario(NamedTuple):
    """One column of a table."""

    table: str  # "12" … "15"
    name: str  # "i" … "xii"
    program: str
    size: tuple[int, ...]
    n_blocks: int
    supersteps: int  # of the sort; 0 for the fractal

    @property
    def key(self) -> str:
        """'12-iii'."""
        return f"{self.table}-{self.name}"


SHEAR = {"i": (49, 7), "ii": (98, 7), "iii": (196, 7), "iv": (98, 14), "v": (196, 14), "vi": (147, 21),
         "vii": (294, 21), "viii": (196, 28)}  # fmt: skip
FRACTAL = {"13": (32, ("i", "iv", "vii", "x")), "14": (16, ("ii", "v", "viii", "xi")),
           "15": (8, ("iii", "vi", "ix", "xii"))}  # fmt: skip


@dataclass(frozen=True)
class BspEffort:
    """How much is run."""

    scenarios: tuple[tuple[str, str], ...]  # (table, name)
    repetitions: int
    alphas: tuple[int, ...]
    bands: tuple[float, ...]
    shrink: int  # the fractal's picture is 1920 / shrink wide
    coarser: int  # ranges are 1 / coarser of the thesis' size
    ring: int  # supersteps of the fractal, in whole rounds
    dilate: float  # in addition to the dilation that fits the ranks on the cores
    supersteps: int = 0  # largest number for a sort; 0: the rows of the matrix


def scenarios() -> tuple[BspScenario, ...]:
    """All scenarios, in the order of the tables."""
    found = [BspScenario("12", k, "shear-sort", (n,), v, n) for k, (n, v) in SHEAR.items()]
    for table, (r, names) in FRACTAL.items():
        found += [BspScenario(table, k, "fractal", (1080, 1920, r), 7 * c, 0) for c, k in enumerate(names, 1)]
    return tuple(found)


FULL = BspEffort(tuple((s.table, s.name) for s in scenarios()), 15, ALPHAS, BANDS, 4, 2, 56, 1.2)
SOME = (("12", "iii"), ("14", "v"))
QUICK = BspEffort(SOME, 5, (2,), BANDS, 11, 4, 28, 1.0, supersteps=40)


def job_of(scenario: BspScenario, effort: BspEffort, cores: int) -> ProgramJob:
    """The scenario as a job on this machine."""
    size, supersteps = scenario.size, scenario.supersteps
    if scenario.program == "fractal":
        height, width, r = size
        size = (height // effort.shrink, width // effort.shrink, max(2, r // effort.coarser))
        supersteps = max(1, effort.ring // scenario.n_blocks)  # rounds
    elif effort.supersteps:
        supersteps = min(supersteps, effort.supersteps)
    fastest = max(SPEEDS)
    speeds = tuple(s / fastest for s in SPEEDS)
    return ProgramJob(
        program=scenario.program,  # type: ignore[arg-type]
        size=size,
        n_blocks=scenario.n_blocks,
        supersteps=supersteps,
        speeds=speeds,
        dilate=round(ROOM * sum(speeds) / cores * effort.dilate, 2),
        cells=cells(effort),
        repetitions=effort.repetitions,
    )


def cells(effort: BspEffort) -> tuple[PolicyRun, ...]:
    """The runs of every strategy; strategies in GRID run with every alpha and band."""
    plain = [STRATEGIES[s] for s in STRATEGIES if s not in GRID] + list(OURS)
    made = [PolicyRun(policy=policy) for policy in plain]
    made += [
        PolicyRun(policy=STRATEGIES[s], alpha=alpha, band=band)
        for alpha in effort.alphas
        for s in GRID
        for band in effort.bands
    ]
    return tuple(made)


@functools.cache
def thesis(table: str) -> dict[tuple[str, str, str], dict[str, float]]:
    """(strategy, alpha, band) -> scenario -> seconds, as printed."""
    keys = ("strategy", "alpha", "band")
    return {
        (row["strategy"], row["alpha"], row["band"]): {k: float(v) for k, v in row.items() if k not in keys}
        for row in source_table("thesis_002", f"table_{table}")
    }


def thesis_seconds(scenario: BspScenario, strategy: str, alpha: int, band: float) -> float | None:
    """The printed time; None if the thesis did not run the strategy."""
    table = thesis(scenario.table)
    row = table.get((strategy, str(alpha), f"{band:g}")) or table.get((strategy, "", ""))
    return None if row is None else row[scenario.name]
