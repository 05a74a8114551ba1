"""What `fembench sweep --dry-run` prints: ranks, hosts, mesh and minutes of each job."""

from typing import Any

from fembench.base.tables import table
from fembench.base.units import count, plural
from fembench.records.case import FIELDS, Case
from fembench.report.results import short_shares
from fembench.workflows.sweep_plan import PlannedJob, SweepPlan

OWN_COLUMNS = {"mesh", "ranks", "hosts", "per_node", "iterations", "storage"}
OWN_COLUMNS |= {"sets", "seconds", "precision", "max_seconds"}


def as_text(plan: SweepPlan) -> str:
    """A row per job, then how long all take and how that is known."""
    rows = [_row(k, job) for k, job in enumerate(plan.jobs, 1)]
    recorded = sum(job.recorded for job in plan.jobs)
    unknown = sum(job.seconds is None and not job.recorded for job in plan.jobs)
    words = [plural(len(rows), "run")]
    words += [f"{recorded} recorded already"] if recorded else []
    words += [f"{unknown} of unknown duration (mesh files)"] if unknown else []
    heads = ("run", "mesh", "equations", "ranks", "hosts", "case", "timed", "minutes", "id")
    total = f"{plan.seconds:.0f} s" if plan.seconds < 60 else f"{_minutes(plan.seconds)} minutes"
    expected = f"about {total} expected ({plan.source})"
    lines = [f"before the runs: {name}, about {seconds:.0f} s" for name, seconds in plan.first.items()]
    lines += [f"{', '.join(words)}; {expected}", *(f"left out (no time): {x}" for x in plan.left_out)]
    return "\n".join([table(heads, rows, align="rlrrlllrl"), *lines])


def _row(k: int, job: PlannedJob) -> tuple[object, ...]:
    case = job.run.case
    minutes = "recorded" if job.recorded else None if job.seconds is None else _minutes(job.seconds)
    equations = None if job.equations is None else count(job.equations)
    place = case.question.mesh, equations, case.placement.ranks, job.place
    return (k, *place, _others(case), timed(case), minutes, job.run.id)


def _others(case: Case) -> str:
    """What is not at its default and in no column of its own: 'csr · jacobi'."""
    said = {name: value for name, value in case.said().items() if name not in OWN_COLUMNS}
    if "shares" in said:
        said["shares"] = short_shares(said["shares"])
    return " · ".join([case.method.storage, *(FIELDS[name].shown(value) for name, value in said.items())])


def timed(case: Case) -> str:
    """'20 sets', '10 sets of 50 iterations, at least 10.5 s'."""
    words = plural(case.effort.sets, "set")
    words += f" of {plural(case.stop.iterations, 'iteration')}" if case.stop.iterations else ""
    words += f", at least {case.effort.seconds:g} s" if case.effort.seconds else ""
    precise = f", then until ± {case.effort.precision:g} % or {case.effort.max_seconds:g} s"
    return words + precise if case.effort.precision else words


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.2f}" if minutes < 1 else f"{minutes:.1f}" if minutes < 100 else f"{minutes:.0f}"


def as_tree(plan: SweepPlan) -> dict[str, Any]:
    """The same for JSON."""
    runs = [
        {
            "id": job.run.id,
            "mesh": job.run.case.question.mesh,
            "equations": job.equations,
            "ranks": job.run.case.placement.ranks,
            "hosts": {host.name: host.slots for host in job.hosts},
            "sets": job.run.case.effort.sets,
            "seconds": job.run.case.effort.seconds,
            "precision": job.run.case.effort.precision,
            "max_seconds": job.run.case.effort.max_seconds,
            "recorded": job.recorded,
            "minutes": None if job.seconds is None else job.seconds / 60,
        }
        for job in plan.jobs
    ]
    found = {"runs": runs, "minutes": plan.seconds / 60, "expected": plan.source}
    return found | {"first": dict(plan.first), "left_out": list(plan.left_out)}
