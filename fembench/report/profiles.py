"""A machine profile as text: hosts, speeds by kernel, size and ranks; its network.

Of the network: messages, all-reduces, contention, H of the ranks.
"""

import math
import statistics
from collections.abc import Sequence

from fembench.base.tables import table
from fembench.base.units import percent, plural, seconds, size
from fembench.records.binding import sharing_device
from fembench.records.case import CPU
from fembench.records.hlogp import Computed, message_cost
from fembench.records.network import Network, PairClass, both_ways_at, value_at
from fembench.records.profile import LEVELS, Profile, Speed, speed_matrix
from fembench.report.table import Rows, declared, text

SHOWN = 8  # hosts whose speeds by size are printed; --json gives all
SCALES = {
    "cells": (1e6, "M cells/s"),
    "blocks": (1e6, "M blocks/s"),
    "dofs": (1e6, "M dofs/s"),
    "bytes": (1e9, "GB/s"),
}
HELD_BACK = 0.05  # fraction of the time without a processor: above it, the rank was disturbed


def profile_text(profile: Profile, relative: Sequence[float] = ()) -> str:
    """All tables; `relative`: relative speeds of the ranks over all phases, if known."""
    parts = [head(profile), text(hosts_table(profile)), "", speeds_table(profile, relative)]
    names = [h.name for h in profile.environment.hosts]
    for host in range(min(len(names), SHOWN)):
        parts += ["", sizes_table(profile, host)]
    if len(names) > SHOWN:
        parts += ["", f"{len(names) - SHOWN} more hosts; --json shows all"]
    lines = warnings(profile) + list(profile.notes)
    return "\n".join(parts + ([""] + lines if lines else []))


def head(profile: Profile) -> str:
    """The heading: ranks, hosts, software, and SYNTHETIC if the speeds are emulated."""
    e = profile.environment
    kind = "quick, " if profile.quick else ""
    ranks = plural(len(e.rank_host), "rank")
    hosts = plural(len(e.hosts), "host")
    first = f"{ranks} on {hosts} ({kind}{profile.seconds:.0f} s), {e.mpi}"
    second = f"kernels {e.kernels} ({profile.isa}), clock {profile.clock.name}"
    label = [f"SYNTHETIC: {e.synthetic}"] if e.synthetic else []
    return "\n".join([first, second, *label, ""])


@declared(
    "profile_hosts",
    "Hosts",
    "",
    "host; processor; cores; ranks; memory_bytes; l2_bytes: L2; l3_bytes: L3; governor",
    "load; steal: steal %; others: others % | .1f",
)
def hosts_table(profile: Profile) -> Rows:
    """One row per host."""
    e = profile.environment
    for number, h in enumerate(e.hosts):
        sizes = h.memory_bytes, h.caches.get("L2", 0), h.caches.get("L3", 0)
        others = h.others_percent if h.others_percent >= 0 else None
        use = h.load_average, h.steal_percent, others
        yield h.name, h.cpu_model, h.cores, e.rank_host.count(number), *sizes, h.governor, *use


def speeds_table(profile: Profile, relative: Sequence[float] = ()) -> str:
    """The speed matrix, a row per rank, a column per phase: values with half intervals."""
    matrix = speed_matrix(profile)
    label = " (SYNTHETIC)" if profile.environment.synthetic else ""
    title = f"Speeds{label}, data in memory, all ranks of a host at once; ± half the 95 % interval"
    scales = [SCALES[unit] for unit in matrix.units]
    heads = ["rank", "host", *(f"{n}, {unit}" for n, (_, unit) in zip(matrix.names, scales))]
    rows: list[list[object]] = []
    for rank, host in enumerate(profile.environment.host_of_rank):
        cells = [
            _with_interval(s / scale, (high - low) / 2 / s)
            for s, low, high, (scale, _) in zip(
                matrix.speed[rank], matrix.low[rank], matrix.high[rank], scales
            )
        ]
        kind = profile.devices[rank]
        where = host if kind == CPU else f"{host}, {kind}"
        rows.append([rank, where, *cells, *([f"{relative[rank]:.3f}"] if relative else [])])
    heads += ["relative speed"] if relative else []
    return f"{title}\n\n{table(heads, rows, align='rl' + 'r' * len(heads))}"


def _with_interval(value: float, part: float) -> str | None:
    if math.isnan(value):
        return None
    return f"{value:.4g}" if math.isnan(part) else f"{value:.4g} ±{percent(part)}"


def sizes_table(profile: Profile, host: int) -> str:
    """Speeds of a host's median rank by level, all at once; in memory, also with fewer."""
    e = profile.environment
    everyone = e.rank_host.count(host)
    mine = [s for s in profile.speeds if e.rank_host[s.rank] == host]
    counts = sorted({s.corunning for s in mine})
    label = " (SYNTHETIC)" if e.synthetic else ""
    title = f"{e.hosts[host].name}{label}: median rank, {everyone} at once; in memory also with fewer at once"
    heads = ["phase", "unit", *LEVELS, *(f"memory, {k} at once" for k in counts if k < everyone)]
    rows = []
    for name, unit in {s.name: s.unit for s in mine}.items():
        scale, text = SCALES[unit]
        wanted = [(level, everyone) for level in LEVELS]
        wanted += [("memory", k) for k in counts if k < everyone]
        rows.append([name, text, *(_median(mine, name, level, k, scale) for level, k in wanted)])
    return f"{title}\n\n{table(heads, rows, align='ll' + 'r' * len(heads))}"


def _median(
    speeds: Sequence[Speed],
    name: str,
    level: str,
    corunning: int,
    scale: float,
) -> float | None:
    found = [s.speed for s in speeds if (s.name, s.level, s.corunning) == (name, level, corunning)]
    return statistics.median(found) / scale if found else None


def warnings(profile: Profile) -> list[str]:
    """Reasons why these may not be the speeds of undisturbed hosts."""
    e = profile.environment
    lines = []
    if e.oversubscribed:
        lines.append(
            "OVERSUBSCRIBED: more ranks than cores; not the speeds of ranks with a core of their own"
        )
    if device := sharing_device(e):
        lines.append(f"OVERSUBSCRIBED: {device}; not the speeds of ranks with a device of their own")
    held = [(part, rank) for rank, part in enumerate(profile.held_back) if part > HELD_BACK]
    if held:
        part, rank = max(held)
        most = f"rank {rank} on {e.host_of_rank[rank]} most: {percent(part, 0)} of its time"
        lines.append(f"{plural(len(held), 'rank')} kept off their CPU, {most}")
    lines += [line for host in range(len(e.hosts)) if (line := _still_cached(profile, host))]
    for h in e.hosts:
        if h.throttled_percent > 0:
            lines.append(
                f"{h.name}: {h.throttled_percent:.1f} % of its CPU time was withheld by the quota of "
                f"{h.cpu_quota:.3g} CPUs on control group {h.quota_group}"
            )
    return lines


def _still_cached(profile: Profile, host: int) -> str:
    """A warning if matrices 'in memory' are less than twice a host's L3 cache, else ""."""
    e = profile.environment
    facts, ranks = e.hosts[host], e.rank_host.count(host)
    inside = [
        s.n_bytes
        for s in profile.speeds
        if e.rank_host[s.rank] == host and (s.name, s.level) == ("product sym", "memory")
    ]
    third = facts.caches.get("L3", 0)
    if not inside or ranks * min(inside) >= 2 * third:
        return ""
    return (
        f"{facts.name}: its L3 cache ({size(third)}) may hold part of the data 'in memory' "
        f"({ranks} x {size(min(inside))})"
    )


SIZES = (8, 1024, 16384, 262144, 1048576)  # bytes
MOST_SIZES = 6  # sizes printed if the measured ones do not include SHOWN
MOST = 12  # classes whose costs are printed; --json gives all
H_HEADS = ["rank", "host", "product", "kernels", "processor", "by queue", "by load", "by clock"]
H_TITLE = (
    "H: time of each rank over that of the fastest rank, for the product, for three kernels, and for their "
    "processor time. The last is also multiplied by the load of the rank's own host at that time: by the "
    "run queue (Mendes 2004, Eq. 4.1), by the load average (Eq. 4.2), and by elapsed over processor time "
    "('by clock', Eq. 4.3)"
)
POLLS = 1.3  # slowdown above which waiting ranks are taken to keep their core (Mendes 2004)


def network_text(
    network: Network,
    slowness: Sequence[Sequence[object]] = (),
    synthetic: str = "",
    disturbed: bool = False,
) -> str:
    """All tables; `slowness`: rows (rank, host, H by …) or none; `disturbed`: by foreign work."""
    label = f" (SYNTHETIC: {synthetic})" if synthetic else ""
    parts = [f"Messages{label}: {_how(network)}", costs_table(network, disturbed)]
    if any(one.beside for one in network.classes):
        parts += ["Messages both ways while a rank computes", beside_table(network)]
    if network.kielmann:
        parts += ["For comparison, Kielmann's method: one way L + g(m)", kielmann_table(network)]
    if network.allreduce:
        parts += ["All-reduce, back to back", allreduce_table(network)]
    if network.contention:
        parts += ["Several pairs at once: time of a message, relative to one pair", contention_table(network)]
    if slowness:
        parts += [H_TITLE, table(H_HEADS, slowness, align="rl" + "r" * (len(H_HEADS) - 2), digits=3)]
    return "\n\n".join([*parts, "\n".join([*progress_lines(network), *network.notes])])


def _how(network: Network) -> str:
    what = (
        "all pairs of hosts" if network.pairs == "all" else f"sites {', '.join(dict.fromkeys(network.sites))}"
    )
    calls = "MPI_Isend" if network.send_mode == "isend" else "MPI_Send"
    if not network.samples and network.trains:
        calls = "trains of MPI_Isend alone"
    trips = network.settings.repetitions if network.settings else 0
    often = f", {trips} round trips per size" if trips else ""
    return f"{what}, {calls}{often}, {network.seconds:.0f} s"


def costs_table(network: Network, disturbed: bool = False) -> str:
    """One row per class and size: T = Os + L + Or and its parts, and what changes it.

    The slowdown by a message in the opposite direction, the gap, and T with MPI_Send; last,
    a small message after computing.
    """
    heads = ["pair", "bytes", "rendezvous from", "Os", "L", "Or", "T", "both ways", "gap", "T by MPI_Send"]
    rows = []
    for k, one in enumerate(network.classes[:MOST]):
        blocking = network.blocking[k] if k < len(network.blocking) else None
        for number, m in enumerate(_shown(network)):
            switch = size(one.switch) if one.switch else "never"
            if disturbed:
                switch = f"{switch}, DISTURBED"
            total = seconds(_total(blocking, m)) if blocking else None
            rows.append([one.name, size(m), "" if number else switch, *_costs(one, m), total])
        rows += _after_computing(one)
    more = len(network.classes) - MOST
    text = table(heads, rows, align="lrlrrrrrrr")
    return f"{text}\n{more} more classes; --json shows all" if more > 0 else text


def _after_computing(one: PairClass) -> list[list[str | None]]:
    """The row of a small message after the longest computing that was measured, if any."""
    cold = [c for c in one.cold if c.swept]
    if not cold:
        return []
    m = min(c.m for c in cold)
    after = max(c.computed for c in cold)
    cost = message_cost(one, m, computed=Computed(after, after))
    parts = map(seconds, (*cost, cost.total))
    return [[f"{one.name}, after computing {seconds(after)}", size(m), "", *parts, None, None, None]]


def _shown(network: Network) -> tuple[int, ...]:
    """Sizes whose costs are printed: SHOWN if measured, else a selection."""
    known = (network.settings.sizes if network.settings else ()) or SIZES
    if set(SIZES) <= set(known):
        return SIZES
    return tuple(
        dict.fromkeys(known[round(k * (len(known) - 1) / (MOST_SIZES - 1))] for k in range(MOST_SIZES))
    )


def beside_table(network: Network) -> str:
    """One row per class and size: messages beside computing, and the wait after."""
    heads = ["pair", "bytes", "computing takes longer by", "then waits"]
    rows = [
        [one.name if number == 0 else "", size(b.m), seconds(b.longer), seconds(b.left)]
        for one in network.classes[:MOST]
        for number, b in enumerate(one.beside)
    ]
    return table(heads, rows, align="lrrr")


def _costs(one: PairClass, m: int) -> list[str | None]:
    parts = [value_at(function, m) for function in (one.send, one.latency, one.receive)]
    gap = seconds(value_at(one.gap, m)) if one.gap else None
    both = f"x {both_ways_at(one, m):.2f}" if one.both_ways else None
    return [*map(seconds, parts), seconds(sum(parts)), both, gap]


def _total(one: PairClass, m: int) -> float:
    return sum(value_at(function, m) for function in (one.send, one.latency, one.receive))


def kielmann_table(network: Network) -> str:
    """One row per class and size, compared with T = Os + L + Or of the same class."""
    classes = {c.name: c for c in network.classes[:MOST]}
    rows: list[list[object]] = [
        [
            k.class_name,
            size(k.m),
            *map(seconds, (k.latency, k.gap, k.latency + k.gap, _total(classes[k.class_name], k.m))),
        ]
        for k in network.kielmann
        if k.class_name in classes
    ]
    return table(["pair", "bytes", "L", "g", "L + g", "Os + L + Or"], rows, align="lrrrrr")


def allreduce_table(network: Network) -> str:
    """One row per number of ranks and size."""
    rows = [
        [a.ranks, size(a.m), seconds(a.seconds), *(seconds(end) if end else None for end in (a.low, a.high))]
        for a in network.allreduce
    ]
    return table(["ranks", "bytes", "time", "from", "to"], rows, align="rrrrr")


def contention_table(network: Network) -> str:
    """One row per number of pairs, place and size."""
    rows = [[c.where, c.pairs, size(c.m), f"{c.factor:.2f}"] for c in network.contention]
    return table(["where", "pairs", "bytes", "factor"], rows, align="lrrr")


def progress_lines(network: Network) -> list[str]:
    """Whether messages progress while ranks compute, and what waiting ranks cost."""
    lines = []
    if network.overlap_left is not None:
        does = "travels" if network.overlap else "does not travel"
        measured = percent(network.overlap_left, 0)
        left = f"{measured} of its time remains afterwards"
        if network.overlap_left > 1:
            left = f"all of its time remains afterwards (measured: {measured}; more is a disturbance)"
        lines.append(f"a large message {does} while ranks compute: {left}")
    if network.polling is not None:
        keeps = "keep their core" if network.polling > POLLS else "leave their core to others"
        took = f"computing on the same core takes {network.polling:.2f} times as long"
        lines.append(f"waiting ranks {keeps}: {took}")
    return lines
