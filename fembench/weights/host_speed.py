"""The speed of every host: the one statement that tables, plots, advice and plans print.

    speed      of its slowest rank while all ranks compute, over the typical host of the fastest kind
    interval   95 %, for all hosts together
    cause      of a slow host: its quota, another load, a core, its memory, its processor; "" if none is known

The statement is that of `fembench nodes` if it measured the hosts, else that of three
or more runs on the same hosts, one sample per run. Runs whose ranks take turns on
cores, or beside foreign work, say nothing about hosts. A host is slow only if its
whole interval lies below 1 - RELEVANT: no other host is named. Nothing is planned
from a disturbed measurement.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fembench.base.arrays import F64
from fembench.base.units import plural
from fembench.records.binding import oversubscribed, taking_turns
from fembench.records.compare import host_names
from fembench.records.nodes import NodesRecord
from fembench.records.quiet import foreign_work, withheld
from fembench.records.record import Environment, HostFacts, Record
from fembench.records.times import times_of
from fembench.records.weights import FAST
from fembench.stats.outliers import FEWEST_ALIKE, RELEVANT, joint_level
from fembench.stats.student import FEWEST, typical_interval
from fembench.weights.node_causes import by_load
from fembench.weights.node_verdicts import HostSpeed, KeepingCosts, beyond_doubt, with_ends
from fembench.weights.observe import observe, owners_of
from fembench.weights.slow_nodes import slow_nodes

NODES = "fembench nodes"  # a source


@dataclass(frozen=True, slots=True)
class HostSpeeds:
    """What is known of all hosts."""

    hosts: tuple[HostSpeed, ...] = ()
    source: str = ""  # "fembench nodes", "4 runs"
    unknown: str = ""  # why nothing is known
    disturbed: str = ""  # by what, if foreign work disturbed the measurement as a whole
    quotas: tuple[str, ...] = ()  # 'n3: a quota of 0.5 CPUs withheld 18 % of its CPU time'
    costs: KeepingCosts | None = None  # of the slow hosts, if fembench nodes found some

    @property
    def slow(self) -> list[HostSpeed]:
        """The slow hosts, the slowest first."""
        return sorted((host for host in self.hosts if host.slow), key=lambda host: host.speed)

    @property
    def faulty(self) -> list[HostSpeed]:
        """Those of the slow hosts that are not slow by kind alone: to be left out."""
        return [host for host in self.slow if host.faulty]

    @property
    def planned(self) -> dict[str, float]:
        """{host: speed} to give work by; {} if none matters, or nothing may be planned.

        A host not shown to be slow counts as typical, as does one with another load now.
        """
        found = {h.name: h.speed if h.slow and not by_load(h.cause) else 1.0 for h in self.hosts}
        return found if not self.disturbed and min(found.values(), default=1.0) < FAST else {}

    def none_slow(self, what: str = "host") -> str:
        """That no host is stated to be slow, or why nothing is known."""
        if not self.hosts:
            return f"not available: {self.unknown or self.disturbed}"
        least = min(host.low for host in self.hosts)
        doubt = "" if least >= 1 - RELEVANT else f" (intervals reach down to {100 * least:.0f} %)"
        return f"none: {self.source} found no slow one among {len(self.hosts)} {what}s{doubt}"

    def of(self, name: str) -> HostSpeed | None:
        """The statement on one host."""
        return next((host for host in self.hosts if host.name == name), None)


def host_speeds(nodes: NodesRecord | None, runs: Sequence[Record] = ()) -> HostSpeeds:
    """The speed of every host, from all that was measured."""
    return _of_nodes(nodes) if nodes else _of_runs(runs)


def _of_nodes(record: NodesRecord) -> HostSpeeds:
    found = slow_nodes(record)
    quotas = _quotas([record.first.environment])
    one = found.speeds[0]
    alone = f"one host ({one.name})" if len(found.speeds) == 1 and not one.slow else ""
    return HostSpeeds(() if alone else found.speeds, NODES, alone, found.disturbed, quotas, found.costs)


def owner_speeds(runs: Sequence[Record]) -> HostSpeeds:
    """The same of what a run could leave out: hosts, or ranks of one; also emulated."""
    return _of_runs(runs, lambda run: tuple(dict.fromkeys(owners_of(run))), emulated=True)


def _of_runs(
    runs: Sequence[Record],
    names_of: Callable[[Record], tuple[str, ...]] = host_names,
    emulated: bool = False,
) -> HostSpeeds:
    several = [run for run in runs if len(names_of(run)) > 1 and _computed(run, emulated)]
    if not several:
        names = sorted({name for run in runs for name in names_of(run)})
        return HostSpeeds(unknown=f"one host ({names[0]})" if len(names) == 1 else "no run on several hosts")
    quotas = _quotas([run.environment for run in several])
    quiet = [run for run in several if not foreign_work([run.environment])]
    if not quiet:
        return HostSpeeds(disturbed=foreign_work([run.environment for run in several]), quotas=quotas)
    apart = [run for run in quiet if not (oversubscribed(run.environment) or taking_turns(run.environment))]
    if not apart:
        why = taking_turns(quiet[0].environment) or "more ranks than cores"
        return HostSpeeds(unknown=f"{why} (fembench nodes measures hosts one by one)", quotas=quotas)
    most = max(map(names_of, apart), key=len)
    chosen = [run for run in apart if names_of(run) == most]
    if len(chosen) < FEWEST:
        left = len(several) - len(quiet)
        more = f" ({left} more DISTURBED)" if left else ""
        needed = f"{plural(len(chosen), 'run')} on these hosts{more}, and an interval needs {FEWEST}"
        nodes = ", or type fembench nodes" if len(host_names(chosen[0])) >= FEWEST_ALIKE else ""
        return HostSpeeds(unknown=f"{needed}; repeat the runs{nodes}", quotas=quotas)
    hosts = _compared(chosen, most)
    return HostSpeeds(hosts, plural(len(chosen), "run"), quotas=quotas)


def _computed(run: Record, emulated: bool) -> bool:
    """Whether the ranks computed at a speed that counts, for a measured time."""
    own = emulated or not run.case.synthetic.emulate
    timed = times_of(run).timed
    return own and run.verdict.status != "INVALID" and bool(len(timed) and observe(run).cost.all())


def _compared(runs: Sequence[Record], names: Sequence[str]) -> tuple[HostSpeed, ...]:
    speeds = np.array([_speeds(run, names) for run in runs])  # (n, H)
    first = runs[0].environment
    facts = {name: first.hosts[k] for name, k in zip(owners_of(runs[0]), first.rank_host)}
    reference = _fastest_kind(np.median(speeds, axis=0), [facts[name].cpu_model for name in names])
    ratios = speeds / np.median(speeds[:, reference], axis=1, keepdims=True)
    held = _withheld([run.environment for run in runs])
    found = []
    for name, samples in zip(names, ratios.T):
        interval = typical_interval(samples, joint_level(len(names)))
        value, low, high = with_ends(float(np.median(samples)), interval)
        slow = beyond_doubt(high, 0.0)
        other = facts[name].cpu_model != facts[names[reference[0]]].cpu_model
        cause = held.get(name, f"another processor: {facts[name].cpu_model}" if other else "")
        faulty = slow and (name in held or (len(reference) > 1 and not other))
        found.append(HostSpeed(name, value, low, high, slow, cause if slow else "", faulty))
    return tuple(found)


def _speeds(run: Record, names: Sequence[str]) -> list[float]:
    """Cells per second of computing of the median rank of each host."""
    each = 1 / np.median(observe(run).cost, axis=0)
    at = np.array(owners_of(run))
    return [float(np.median(each[at == name])) for name in names]


def _fastest_kind(speeds: F64, models: Sequence[str]) -> list[int]:
    """The hosts that are typical: those of the fastest processor, or its fastest host."""
    kinds = {model: [k for k, other in enumerate(models) if other == model] for model in models}
    typical = [k if len(k) >= FEWEST_ALIKE else [max(k, key=speeds.__getitem__)] for k in kinds.values()]
    return max(typical, key=lambda members: float(np.median(speeds[members])))


def _quotas(environments: Sequence[Environment]) -> tuple[str, ...]:
    return tuple(f"{name}: {text}" for name, text in _withheld(environments).items())


def _withheld(environments: Sequence[Environment]) -> dict[str, str]:
    """{host: what its quota withheld}, if that was more than chance."""
    worst: dict[str, HostFacts] = {}
    for host in (host for environment in environments for host in environment.hosts):
        worst[host.name] = max(worst.get(host.name, host), host, key=lambda h: h.throttled_percent)
    return {
        name: f"a quota of {h.cpu_quota:.3g} CPUs withheld {h.throttled_percent:.0f} % of its CPU time"
        for name, h in worst.items()
        if withheld(h)
    }
