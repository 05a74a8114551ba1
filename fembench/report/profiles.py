"""A machine profile as text: hosts, the speed matrix, speeds by size and ranks."""

import math
import statistics
from collections.abc import Sequence

from fembench.base.tables import table
from fembench.base.units import percent, plural, size
from fembench.records.profile import LEVELS, Profile, Speed, speed_matrix, speeds_disturbed
from fembench.report.table import Rows, declared, text

SHOWN = 8  # hosts whose speeds by size are printed; --json gives all
SCALES = {
    "cells": (1e6, "M cells/s"),
    "blocks": (1e6, "M blocks/s"),
    "dofs": (1e6, "M dofs/s"),
    "bytes": (1e9, "GB/s"),
}
HELD_BACK = 0.05  # fraction of the time without a processor: above it, the rank was disturbed


def as_text(profile: Profile, relative: Sequence[float] = ()) -> str:
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
    ranks, hosts = plural(len(e.rank_host), "rank"), plural(len(e.hosts), "host")
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
        rows.append([rank, host, *cells, *([f"{relative[rank]:.3f}"] if relative else [])])
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


def _median(speeds: Sequence[Speed], name: str, level: str, corunning: int, scale: float) -> float | None:
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
    held = [(part, rank) for rank, part in enumerate(profile.held_back) if part > HELD_BACK]
    if held:
        part, rank = max(held)
        most = f"rank {rank} on {e.host_of_rank[rank]} most: {percent(part, 0)} of its time"
        lines.append(f"{plural(len(held), 'rank')} kept off their CPU, {most}")
    lines += [line for host in range(len(e.hosts)) if (line := _still_cached(profile, host))]
    lines += speeds_disturbed(profile)
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
