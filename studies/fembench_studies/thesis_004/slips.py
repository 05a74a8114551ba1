"""Slips in the printed tables: numbers that contradict each other."""

from collections.abc import Iterator

from fembench.report.page import Section
from fembench.report.table import Table
from fembench_studies.layout import columns
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.plausible import (
    TIMER_TOLERANCE,
    compute_speedup,
    exceeds_work_ratio,
    phase_gap,
    phases_disagree,
    timer_error,
)
from fembench_studies.thesis_004.thesis import number

PHASES = ("partition_ms", "assembly_ms", "cg_ms")
TIMERS = {  # column of Table 5.3 -> timer in Table 5.2
    "rdtsc_instruction_ms": "rdtsc_instruction",
    "rdtscll_ms": "rdtscll",
    "gettimeofday_ms": "gettimeofday",
    "mpi_wtime_ms": "MPI_Wtime",
}
Row = tuple[str, str, int | None, str, float, float]  # table, where, tasks, what, printed, expected


def slips() -> Section:
    """The slips found by three checks."""
    table = Table(
        "slips",
        "Slips in the thesis' tables",
        "Printed numbers that violate one of three rules: phases add up to the total within 1e-4; computing "
        "(CG minus communication) falls at most by the square of the number of tasks, which is what "
        "splitting dense matrices can save; times of timers equal cycles / clock within "
        f"{TIMER_TOLERANCE:.0%}. The other tables of this page keep the printed numbers.",
        columns(
            "table words; where words; tasks count; what words; printed; expected value expected "
            "(computing: at most)"
        ),
        (*_totals(), *_computing(), *_timers()),
    )
    return Section("Slips of the thesis", [], [table])


def _totals() -> Iterator[Row]:
    for platform, names in thesis.PHASES.items():
        for name in names:
            for tasks, row in thesis.by_tasks(name).items():
                phases, total = [number(row, p) for p in PHASES], number(row, "total_ms")
                if phases_disagree(phases, total):
                    expected = total - phase_gap(phases, total)
                    yield (
                        _dotted(name),
                        f"Mesh {row['mesh']:g}, {platform}",
                        tasks,
                        "total, ms",
                        total,
                        expected,
                    )


def _computing() -> Iterator[Row]:
    for platform, names in thesis.COMMUNICATION.items():
        for alone, name in zip(thesis.PHASES[platform], names):
            one = number(thesis.by_tasks(alone)[1], "cg_ms")
            for tasks, row in thesis.by_tasks(name).items():
                times = one, number(row, "cg_ms"), number(row, "communication_ms")
                if exceeds_work_ratio(*times, tasks):
                    where = f"Mesh {row['mesh']:g}, {platform}"
                    yield (
                        _dotted(name),
                        where,
                        tasks,
                        "speedup of computing",
                        compute_speedup(*times),
                        tasks**2,
                    )


def _timers() -> Iterator[Row]:
    clocks = {number(r, "machine"): number(r, "clock_mhz") for r in thesis.rows("5_1")}
    means = {r["timer"]: r for r in thesis.rows("5_2") if r["statistic_of_100_calls"] == "mean"}
    for row in thesis.rows("5_3"):
        machine = number(row, "machine")
        for column, timer in TIMERS.items():
            printed, cycles = number(row, column), number(means[timer], f"machine_{machine:.0f}_cycles")
            error = float(timer_error(cycles, clocks[machine], printed))
            if abs(error) > TIMER_TOLERANCE:
                yield "5.3", f"machine {machine:.0f}", None, f"{timer}, ms", printed, printed / (1 + error)


def _dotted(table: str) -> str:
    return table.replace("_", ".")
