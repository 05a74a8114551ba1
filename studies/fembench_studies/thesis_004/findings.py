"""Findings: statements of the thesis with its numbers and ours."""

from collections.abc import Iterator, Sequence

import numpy as np

from fembench.report.page import Section
from fembench.report.table import Table, words
from fembench.weights.scaling import growth_exponents
from fembench_studies.study import wanted
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.overview import EXPECTED
from fembench_studies.thesis_004.pair_tables import HOSTS, alone, run_totals, set_ratios
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ONE_HOST, RUNS, StudyPlan
from fembench_studies.thesis_004.split import bottleneck_time
from fembench_studies.thesis_004.storage_tables import printed_work, work_of
from fembench_studies.thesis_004.thesis import MESHES, number
from fembench_studies.thesis_004.weighted import Weighted, results

NOT_MEASURED = "not measured"
Row = tuple[str, ...]  # experiment, statement, thesis, here


def findings(plan: StudyPlan, found: StudyRecords, notes: str, only: Sequence[str] = ()) -> Section:
    """The first section of the page: findings of the experiments in `only`; () means all."""
    rows = [*_slowness(plan, found), *_runs(plan, found), *_storage(plan, found), *_weighted(plan, found)]
    rows = [row for row in rows if wanted(row[0], only)] or [("", "see the tables below", "", "")]
    heads = (words("experiment"), words("statement"), words("thesis"), words("here"))
    return Section("Findings", [], [Table("findings", "Findings", notes, heads, tuple(rows))])


def _slowness(plan: StudyPlan, found: StudyRecords) -> Iterator[Row]:
    mine = {h: [alone(plan, found, h, m) for m in MESHES] for h in HOSTS}
    theirs = {h: [thesis.totals(h, k) for k in (1, 2, 3)] for h in HOSTS}
    ratios = [
        [float(np.mean([s[p] / f[p] for s, f in zip(t["node00"], t["node8"])])) for p in ONE_HOST]
        for t in (theirs, mine)
    ]
    yield (
        "E9",
        "slowness of node00 relative to node8, mean over meshes; 1, 2, 4 and 8 tasks"
        + (f". {set_ratios(plan)}" if plan.machines.emulated else ""),
        *(", ".join(f"{r:.1f}" for r in each) for each in ratios),
    )
    mine_cg = [found.phases(plan.here(mesh, 1, "one-core")).iteration for mesh in MESHES]
    theirs_cg = [
        number(thesis.by_tasks(t)[1], "cg_ms") / i
        for t, i in zip(thesis.PHASES["cluster1"], EXPECTED.values())
    ]
    printed = growth_exponents([number(r, "equations") for r in thesis.rows("5_5")], theirs_cg)
    here = growth_exponents([630, 2592, 5460], mine_cg) if all(np.isfinite(mine_cg)) else [np.nan] * 2
    yield (
        "E3",
        "time per iteration grows as a power of the equations (dense: 2, less if a cache helps; sparse: 1)",
        *(", ".join(f"{v:.2f}" for v in each) for each in (printed, here)),
    )


def _runs(plan: StudyPlan, found: StudyRecords) -> Iterator[Row]:
    mine = [run_totals(plan, found, mesh) for mesh in MESHES]
    theirs = [thesis.run_seconds(k) for k in (1, 2, 3)]
    sides = ((theirs, _thesis_alone()), (mine, _alone(plan, found)))
    yield "E10", "fastest of runs 1 to 11 on Meshes 1, 2 and 3", *(
        ", ".join(_best(runs) for runs in side) for side, _ in sides
    )  # fmt: skip
    for host in HOSTS:
        yield "E10", f"runs, out of 33, that are faster than one task on {host}", *(
            _faster([(t, hosts[k][host][1]) for k, runs in enumerate(side) for t in runs.values()])
            for side, hosts in sides
        )  # fmt: skip
    yield "E10", "time of the fastest run / best time of node8 alone", *(
        ", ".join(_known(_least(r) / _least(hosts[k]["node8"]), ".2f") for k, r in enumerate(side))
        for side, hosts in sides
    )  # fmt: skip
    yield "E10", "mean error of the bottleneck model over the 11 runs, %", *(
        ", ".join(_known(_model_error(runs, hosts[k]), ".1f") for k, runs in enumerate(side))
        for side, hosts in sides
    )  # fmt: skip


def _faster(pairs: Sequence[tuple[float, float]]) -> str:
    """How many runs, of (its seconds, those of one task), are faster; of those measured, if not all are."""
    known = [(run, task) for run, task in pairs if np.isfinite(run) and np.isfinite(task)]
    if not known:
        return NOT_MEASURED
    count = sum(run < task for run, task in known)
    return str(count) if len(known) == len(pairs) else f"{count} of {len(known)} measured"


def _least(times: dict[int, float]) -> float:
    """The shortest of the measured times; nan if there is none."""
    return min((t for t in times.values() if np.isfinite(t)), default=np.nan)


def _known(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else NOT_MEASURED


def _alone(plan: StudyPlan, found: StudyRecords) -> list[dict[str, dict[int, float]]]:
    return [{h: alone(plan, found, h, mesh) for h in HOSTS} for mesh in MESHES]


def _thesis_alone() -> list[dict[str, dict[int, float]]]:
    return [{h: thesis.totals(h, k) for h in HOSTS} for k in (1, 2, 3)]


def _best(runs: dict[int, float]) -> str:
    known = {r: t for r, t in runs.items() if np.isfinite(t)}
    if not known:
        return NOT_MEASURED
    run = min(known, key=lambda r: known[r])
    a, b = RUNS[run]
    return f"run {run} ({a}:{b})"


def _model_error(runs: dict[int, float], hosts: dict[str, dict[int, float]]) -> float:
    errors = [
        bottleneck_time((a, b), (hosts["node00"][a + b], hosts["node8"][a + b])) / runs[r] - 1
        for r, (a, b) in RUNS.items()
    ]
    return 100 * float(np.mean(np.abs(errors)))


def _storage(plan: StudyPlan, found: StudyRecords) -> Iterator[Row]:
    mine, printed = work_of(plan, found).get(8), printed_work()[8]
    if mine:
        yield (
            "E14",
            "Mesh 3, dense, 8 tasks on one core: speedup of CG (in brackets: predicted from the work saved)",
            f"{printed.one_dense:.2f} ({printed.dense.gain_on_one:.2f})",
            f"{mine.one_dense:.2f} ({mine.dense.gain_on_one:.2f})",
        )
        yield "E14", "the same with csr, where no work is saved", "–", f"{mine.one_csr:.2f}"


def _weighted(plan: StudyPlan, found: StudyRecords) -> Iterator[Row]:
    runs = results(plan, found)
    for storage in ("dense", "csr"):
        best = [_fastest([w for w in runs if (w.mesh, w.kind.storage) == (m, storage)]) for m in MESHES]
        each = [w for w in best if w]
        if not each:
            continue
        tasks = ", ".join(dict.fromkeys(w.kind.tasks for w in each)) + " tasks"
        if storage == "dense":
            gains = ", ".join(f"{w.best_seconds / w.seconds:.2f}" for w in each)
            yield "E13", f"weighted, dense, {tasks}: speedup over the best of runs 1 to 11", "–", gains
        ideal = ", ".join(f"{w.seconds / w.ideal:.2f}" for w in each)
        yield "E13", f"weighted, {storage}, {tasks}: time / time of the ideal split", "–", ideal
        verdicts = "; ".join(f"{w.mesh}: {w.verdict}" for w in each)
        yield (
            "E13",
            f"weighted, {storage}, {tasks}: compared with node8 alone with as many tasks",
            "–",
            verdicts,
        )


def _fastest(runs: list[Weighted]) -> Weighted | None:
    return min(runs, key=lambda w: w.seconds, default=None)
