"""One line a run, for the progress of a campaign."""

import numpy as np

from fembench.base import units
from fembench.records.compare import Pool
from fembench.records.record import Record, leads_to
from fembench.report.measures import communication, samples
from fembench.report.runs import case_name


def summary_line(record: Record) -> str:
    """Verdict, case, equations, iterations, CG time of the slowest rank, share of communication."""
    found = samples(Pool(record.case, (record,)))
    words = [f"{units.count(record.mesh.n_equations)} equations", f"{record.solve.iterations} iterations"]
    if not record.solve.converged and not record.case.iterations:
        words[-1] += " without convergence"
    if "cg" in found:
        n = len(found["cg"])
        worst = float(np.median(found["cg"].max(axis=1)))
        words.append(f"cg {units.seconds(worst)} ({n} set{'s' if n != 1 else ''})")
        if record.case.ranks > 1:
            words.append(f"{communication([found]).share:.0%} communication")
    verdict = record.verdict
    broken = [f"{r.id}: {r.value}, expected {r.threshold}" for r in verdict.rules if leads_to(r) == "INVALID"]
    reason = f" [{broken[0]}]" if broken else ""
    synthetic = "SYNTHETIC " if record.environment.synthetic else ""
    return f"{verdict.status:<11} {synthetic}{case_name(record.case)}: {', '.join(words)}{reason}"
