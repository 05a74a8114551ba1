"""The line that summarises a run in the progress of a campaign."""

import numpy as np

from fembench.base import units
from fembench.records.phases import CG
from fembench.records.record import Record, leads_to
from fembench.records.times import times_of
from fembench.report.measures import communication
from fembench.report.runs import case_name


def summary_line(record: Record) -> str:
    """Verdict, case, equations, iterations, CG time of the slowest rank, share of communication."""
    times = times_of(record)
    cg = times.slowest(CG)
    words = [
        f"{units.count(record.mesh.n_equations)} equations",
        units.plural(record.solve.iterations, "iteration"),
    ]
    if not record.solve.converged and not record.case.stop.iterations:
        words[-1] += " without convergence"
    if cg.any():
        words.append(f"cg {units.seconds(float(np.median(cg)))} ({units.plural(len(cg), 'set')})")
        if record.case.placement.ranks > 1:
            words.append(f"{communication([times]).share:.0%} communication")
    verdict = record.verdict
    broken = [f"{r.id}: {r.value}, expected {r.threshold}" for r in verdict.rules if leads_to(r) == "INVALID"]
    reason = f" [{broken[0]}]" if broken else ""
    synthetic = "SYNTHETIC " if record.environment.synthetic else ""
    return f"{verdict.status:<11} {synthetic}{case_name(record.case)}: {', '.join(words)}{reason}"
