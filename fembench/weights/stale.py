"""Do the weights still fit the hosts of a run?"""

from collections import defaultdict

import numpy as np

from fembench.records.phases import COMPUTING
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.records.weights import Weights, mismatch, stale_hosts
from fembench.weights.observe import hosts_of

CHANGED = 0.1  # relative; a host whose speed changed by more makes weights stale


def warning(weights: Weights, record: Record) -> str:
    """Why the weights do not fit a run, after its first set; '' if they do."""
    if reason := mismatch(weights, hosts_of(record)):
        return f"the weights do not fit this run: {reason}"
    if (weights.storage, weights.precond) != (record.case.method.storage, record.case.method.precond):
        return f"the weights were measured with {weights.storage}, {weights.precond}; speeds differ by kernel"
    stale = stale_hosts(weights, first_costs(record), CHANGED)
    if not stale:
        return ""
    changed = ", ".join(stale)
    return f"the weights are stale: {changed} changed by more than {CHANGED:.0%}; tune again"


def first_costs(record: Record) -> dict[str, float]:
    """Host -> mean seconds of computing per cell in the first set, warm-up or not."""
    seconds = times_of(record).all_sets[0][:, COMPUTING].sum(axis=1).tolist()
    cost = defaultdict(list)
    for host, spent, cells in zip(hosts_of(record), seconds, record.partition.cells):
        cost[host].append(spent / cells)
    return {host: float(np.mean(values)) for host, values in cost.items()}
