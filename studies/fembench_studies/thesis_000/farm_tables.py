"""Tables of Herai (2005): the numbers of the virtual park and of MPI runs next to the printed ones."""

from collections.abc import Sequence

import numpy as np

from fembench.model.interval import TimeRange
from fembench.report.table import Table, words
from fembench_studies.layout import beside, columns, count, value
from fembench_studies.pamela.farm_models import VERSIONS
from fembench_studies.pamela.interval_score import IntervalScore
from fembench_studies.pamela.park import COUNTS, LABEL, ParkOutcome, pooled, tasks_of_fastest
from fembench_studies.pamela.true_park import SPEEDS
from fembench_studies.thesis_000.farm_live import PROGRAMS, FarmRun, worst_score
from fembench_studies.thesis_000.farm_printed import BEYOND, FASTEST, KINDS, printed, printed_runs

Results = dict[str, list[ParkOutcome]]


def means(results: Results, theirs: dict[tuple[str, int], IntervalScore]) -> Table:
    """Mean error and hits of each version."""
    rows = []
    for name in (n for n in (*KINDS, *BEYOND) if n in results):
        for version in VERSIONS:
            mine = pooled([o for o in results[name] if o.version == version])
            own = [theirs[f"{name}_{version}", p] for p in COUNTS] if name in KINDS else []
            rows.append(((f"{name}_{version}",), _summary([mine]), _summary(own)))
    return beside(
        "means",
        "Mean error and hits of 20 (Tables 5.8, 5.10, 5.12, 5.14, 5.16; Figs 5.2 to 5.10)",
        "SYNTHETIC: our numbers come from the virtual park. The mean error (per cent, Eqs 5.2, 5.3) counts "
        "runs inside the interval as 0; the middle error, |measured - middle| / measured, does not, so a "
        "wider interval cannot lower it. The thesis prints 4.218 for primQ_D, but its rows give 6.018; it "
        "counts 30 hits for mat, but its rows give 29. 'By phase' (bounds summed over phases) and 'rand with "
        "Q' (Q is the sampling fraction) are not in the thesis.",
        ("platform",),
        ("mean_error_percent", "hits", "middle_error_percent", "half_width_percent"),
        rows,
    )


def _summary(scores: Sequence[IntervalScore]) -> list[float]:
    """Mean error, hits, middle error and half width; all but the hits in per cent. nan without scores."""
    if not scores:
        return [np.nan] * 4
    error, middle, half = (
        100 * float(np.mean([getattr(s, name) for s in scores]))
        for name in ("mean_error", "middle_error", "half_width")
    )
    return [error, float(sum(s.hits for s in scores)), middle, half]


def _both(o: ParkOutcome, name: str) -> tuple[ParkOutcome, ParkOutcome]:
    """Our runs and the printed ones, of one version on one number of machines."""
    said = printed_runs()[f"{name}_{o.version}", o.machines]
    return o, ParkOutcome(o.version, o.machines, said.measured, TimeRange(said.low, said.high))


def by_machines(results: Results) -> Table:
    """Hits, errors with their signs, and the spread of the runs, by number of machines (all versions)."""
    rows = []
    for name, outcomes in results.items():
        for p in COUNTS:
            pairs = [_both(o, name) for o in outcomes if o.machines == p]
            mine, theirs = (_signed([pair[k] for pair in pairs]) for k in (0, 1))
            rows.append(((name, p), mine, theirs))
    return beside(
        "by_machines",
        "Hits and errors by number of machines (Section 5.4)",
        "SYNTHETIC here. All four versions together: runs inside the interval (of 16), mean error (Eq. 5.3), "
        "runs above and below their interval, and the coefficient of variation of the four runs of a "
        "version, mean over versions.",
        ("platform", "machines"),
        ("hits", "mean_error_percent", "above", "below", "variation_percent"),
        rows,
    )


def _signed(found: Sequence[ParkOutcome]) -> list[float]:
    score = pooled(found)
    spread = [float(np.std(o.measured, ddof=1) / np.mean(o.measured)) for o in found]
    above, below = (float(sum(sign * e > 0 for e in score.errors)) for sign in (1, -1))
    return [float(score.hits), 100 * score.mean_error, above, below, 100 * float(np.mean(spread))]


def speedups(results: Results) -> Table:
    """Speedup over two machines, from the mean of the runs."""
    rows = []
    for name, outcomes in results.items():
        two = {
            o.version: [float(np.mean(b.measured)) for b in _both(o, name)]
            for o in outcomes
            if o.machines == 2
        }
        for o in outcomes:
            base, pair = two[o.version], [float(np.mean(b.measured)) for b in _both(o, name)]
            mine, theirs = (b / t for b, t in zip(base, pair))
            rows.append(((f"{name}_{o.version}", o.machines), [mine], [theirs]))
    return beside(
        "speedups",
        "Speedup over two machines",
        "SYNTHETIC here. Mean time of the four runs on two machines over that on more; machines differ in "
        "speed, so the sum of their speeds is the bound, not their number.",
        ("platform", "machines"),
        ("speedup",),
        rows,
    )


def task_costs(results: Results) -> Table:
    """The predicted interval per task of the fastest machine."""
    rows = []
    for name, outcomes in results.items():
        for o in outcomes:
            each = FASTEST[VERSIONS[o.version][0]][COUNTS.index(o.machines)]
            counts = (tasks_of_fastest(o.version, o.machines), each)
            mine, theirs = (
                [k, b.predicted.low / k, b.predicted.high / k] for k, b in zip(counts, _both(o, name))
            )
            rows.append(((f"{name}_{o.version}", o.machines), mine, theirs))
    return beside(
        "task_costs",
        "Predicted time per task of the fastest machine",
        "SYNTHETIC here. Where the fastest machine decides (the term T_comp_1 of Eq. 3.4), the predicted "
        "interval is its number of tasks times the cost of a task, the same on any number of machines: 14.0 "
        "to 15.8 s for pi_D in the thesis.",
        ("platform", "machines"),
        ("tasks_of_fastest", "cost_from_s", "cost_to_s"),
        rows,
    )


def live_table(live: Sequence[FarmRun]) -> Table:
    """Farm programs under MPI, predicted and measured."""
    rows = []
    for one in live:
        informed, worst, record = one.informed, worst_score(one), one.record
        p = record.predicted or one.worst
        rows.append(
            (
                one.program,
                PROGRAMS[one.program],
                one.workers,
                float(np.median(record.seconds)),
                p.low,
                p.high,
                100 * informed.mean_error,
                100 * worst.mean_error,
                informed.hits,
                100 * informed.half_width,
            )
        )
    heads = columns(
        "program words; thesis words; workers count; measured_s; predicted_from_s; predicted_to_s; "
        "mean_error_percent; mean_error_worst_case_percent; hits count; half_width_percent"
    )
    label = live[0].record.environment.synthetic
    return Table(
        "live",
        "Farm programs under MPI, predicted before they ran",
        f"SYNTHETIC ({label.split(',')[0]}, …: three speeds, all dilated). Seconds; the measured time is the "
        "median over the runs of a job. The machine model is a calibration made just before. Errors are "
        "given with conditionals weighted by Q and with conditionals at their worst.",
        heads,
        tuple(rows),
    )


def machines() -> Table:
    """Table 5.1, and the speeds of the virtual park."""
    theirs = [r for r in printed("farm_machines") if r["performance_factor_w"]]
    rows = tuple(
        (int(r["machine"]), f"{r['subnet']}:{r['name']}", r["cpu"], float(r["performance_factor_w"]), mine)
        for r, mine in zip(theirs, SPEEDS)
    )
    heads = columns("machine count; name words; cpu words; thesis_w value W, thesis; w value W, here")
    return Table("machines", "Machines (Table 5.1)", f"Here: {LABEL}.", heads, rows)


def every_run(name: str, outcomes: Sequence[ParkOutcome]) -> Table:
    """Intervals, times and errors of every run."""
    rows = []
    for o in outcomes:
        s = o.score
        their = printed_runs()[f"{name}_{o.version}", o.machines]
        rows.append(
            (
                o.version,
                o.machines,
                o.predicted.low,
                o.predicted.high,
                *o.measured,
                100 * s.mean_error,
                their.low,
                their.high,
                *their.measured,
                their.mean_error_percent,
            )
        )
    mine = ["t_min_s", "t_max_s", "run_1_s", "run_2_s", "run_3_s", "run_4_s", "mean_error_percent"]
    columns = (
        words("version"),
        count("machines"),
        *(value(m) for m in mine),
        *(value(f"thesis_{m}", f"thesis {m.replace('_', ' ')}") for m in mine),
    )
    title = f"{KINDS[name][2]}: interval and four runs (Tables {KINDS[name][3]})"
    return Table(f"runs_{name}", title, f"SYNTHETIC here: {LABEL}. Seconds.", columns, tuple(rows))
