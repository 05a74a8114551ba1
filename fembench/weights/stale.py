"""Do the weights fit a run, before it starts, and do they still fit its hosts?"""

from collections import defaultdict

import numpy as np

from fembench.base.units import percent
from fembench.records.phases import COMPUTING
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.records.weights import UNDECIDED, Weights, loud_notes, mismatch, stale_hosts

CHANGED = 0.1  # relative; a host whose speed changed by more makes weights stale


def doubts(weights: Weights, synthetic: str) -> list[str]:
    """Why not to use the weights for a run whose ranks are emulated so; "": real ones."""
    notes = loud_notes(weights)
    found = [note if note.startswith(UNDECIDED) else f"weights: {note}" for note in notes]
    if weights.rule != "given" and weights.synthetic != synthetic:
        found.append(f"the weights are of {_ranks(weights.synthetic)}, but used for {_ranks(synthetic)}")
    return found


def _ranks(synthetic: str) -> str:
    return f"SYNTHETIC ranks ({synthetic})" if synthetic else "real ranks"


def warning(weights: Weights, record: Record) -> str:
    """Why the weights do not fit a run, after its first set; '' if they do."""
    if reason := mismatch(weights, record.environment.host_of_rank):
        return f"the weights do not fit this run: {reason}"
    method = record.case.method
    known = weights.storage or method.storage, weights.precond or method.precond  # a profile has no precond
    if known != (method.storage, method.precond):
        measured = ", ".join(filter(None, (weights.storage, weights.precond)))
        used = f"the run has {method.storage}, {method.precond}"
        return f"the weights were measured with {measured}, {used}; speeds differ by kernel"
    stale = stale_hosts(weights, first_costs(record), CHANGED)
    if not stale:
        return ""
    changed = ", ".join(stale)
    return f"the weights are stale: {changed} changed by more than {percent(CHANGED, 0)}; tune again"


def first_costs(record: Record) -> dict[str, float]:
    """Host -> mean seconds of computing per cell in the first set, warm-up or not."""
    seconds = times_of(record).all_sets[0][:, COMPUTING].sum(axis=1).tolist()
    cost = defaultdict(list)
    for host, spent, cells in zip(record.environment.host_of_rank, seconds, record.partition.cells):
        cost[host].append(spent / cells)
    return {host: float(np.mean(values)) for host, values in cost.items()}
