"""What `fembench nodes` prints: one line, a table of nodes, a table of kinds, and what slow nodes cost."""

from collections.abc import Iterator, Sequence

from fembench.base.tables import table
from fembench.base.units import few, plural, size
from fembench.records.binding import too_few_cores
from fembench.records.nodes import NodeSamples, NodesRecord
from fembench.records.quiet import narrow_quotas
from fembench.report.table import Column, Table, missing, words
from fembench.stats.outliers import FEWEST_ALIKE, RELEVANT
from fembench.stats.summary import median
from fembench.weights.host_speed import HostSpeeds, host_speeds
from fembench.weights.node_verdicts import (
    KeepingCosts,
    NodeKind,
    NodeRatio,
    NodesFindings,
    NodeVerdict,
    Quantity,
    differing,
)
from fembench.weights.slow_nodes import slow_nodes
from fembench.weights.stale import disturbance

MOST_ROWS = 32  # of a table with all nodes; of more nodes, those that are not normal are shown
NAMED = 4  # nodes in the headline
GIGA = 1e9
SHOWN: tuple[Quantity, ...] = ("all cores", "memory")


def headline(found: NodesFindings) -> str:
    """The result in one line."""
    slow, disturbed, n = found.named("slow"), found.named("disturbed"), len(found.nodes)
    label = "SYNTHETIC: " if found.synthetic else ""
    if slow:
        named = slow if len(slow) == NAMED + 1 else slow[:NAMED]
        causes = "; ".join(f"{node.name}: {node.cause}" for node in named)
        more = f"; and {len(slow) - NAMED} more" if len(slow) > len(named) else ""
        pace = 1 - found.costs.equal if found.costs else 1.0
        waits = f"With equal shares, all nodes run at {_percent(pace)} of their speed"
        return f"{label}{len(slow)} of {plural(n, 'node')} slow: {causes}{more}. {waits}."
    if len(found.named("not compared")) == n:
        return f"{label}{plural(n, 'node')}, none compared: that takes {FEWEST_ALIKE} nodes of a kind."
    if found.disturbed:
        return f"{label}DISTURBED: {found.disturbed}: of {plural(n, 'node')}, none is named as slow."
    if differing(found):
        names = _names(differing(found))
        return (
            f"{label}no node stands out as slow among {n}, but they are not equal: more than "
            f"{_percent(RELEVANT)} off the typical speed: {names}. None stands out if half of them are slow."
        )
    seldom = f"; disturbed by others: {_names(disturbed)}" if disturbed else ""
    least = min((one.low for node in found.nodes for one in node.ratios.values()), default=1.0)
    sure = least >= 1 - RELEVANT
    shown = "none lacks" if sure else "none is shown to lack"
    doubt = "" if sure else f" (intervals reach down to {_percent(least)})"
    lacks = f"{shown} {_percent(RELEVANT)} of the speed of its kind{doubt}"
    return f"{label}no slow node among {n}: {lacks}{seldom}."


def cautions(record: NodesRecord) -> list[str]:
    """A line on hosts with less than a CPU per rank, and one on disturbance, if there are any."""
    environment = record.first.environment
    found = dict.fromkeys([*too_few_cores(environment), *narrow_quotas(environment)])
    crowded = [] if environment.synthetic else list(found)
    more = f"; and {len(crowded) - NAMED} more" if len(crowded) > NAMED else ""
    lacks = [f"less than a CPU per rank: {'; '.join(crowded[:NAMED])}{more}"] if crowded else []
    return [*lacks, *filter(None, [disturbance([environment])])]


def as_text(record: NodesRecord, found: NodesFindings) -> str:
    """The headline, and what limits or disturbed the nodes; then the tables."""
    costs = [cost_table(found.costs)] if found.costs else []
    parts = [headline(found), *cautions(record), node_table(record, found), *costs, kind_table(record, found)]
    note = f"SYNTHETIC: {found.synthetic}." if found.synthetic else ""
    return "\n\n".join(filter(None, [*parts, _test(record, found), note]))


def report_table(record: NodesRecord | None) -> Table:
    """The table of nodes of a report; without rows if there is no measurement."""
    speeds = host_speeds(record)
    rows = zip(record.first.nodes, slow_nodes(record).nodes) if record else ()
    return Table(
        "nodes",
        "Nodes",
        "What fembench nodes measured before the campaign: the speed of all cores of a node together and its "
        "memory bandwidth, and both over those of the typical node of its kind, with the 95 % interval. "
        "Kinds of one or two nodes are only compared with the fastest kind. The speed is that of the slowest "
        "rank over the typical node of the fastest kind; every other table and plot prints it.",
        (
            words("node"),
            words("kind"),
            Column("cores GFLOP/s", "cores_flops_per_s", _giga, number=True),
            Column("memory GB/s", "memory_bytes_per_s", _giga, number=True),
            Column("cores / kind", "cores_ratio cores_low cores_high", _shown_ratio, number=True),
            Column("memory / kind", "memory_ratio memory_low memory_high", _shown_ratio, number=True),
            words("verdict"),
            words("cause"),
            Column("speed", "speed speed_low speed_high", _shown_ratio, number=True),
        ),
        tuple((*_report_row(node, verdict), _speed(speeds, node.name)) for node, verdict in rows),
    )


def _speed(speeds: HostSpeeds, name: str) -> tuple[float, float, float] | None:
    one = speeds.of(name)
    return (one.speed, one.low, one.high) if one else None


def _report_row(node: NodeSamples, verdict: NodeVerdict) -> tuple[object, ...]:
    ratios = [verdict.ratios.get(quantity) for quantity in SHOWN]
    versus = [(one.ratio, one.low, one.high) if one else (None, None, None) for one in ratios]
    rates = float(median(node.together)), float(median(node.memory))
    return (node.name, _letters(verdict.kind), *rates, *versus, verdict.verdict, verdict.cause)


def _giga(value: float) -> str:
    return f"{value / GIGA:.3g}"


def _shown_ratio(value: tuple[float, float, float]) -> str:
    return f"{value[0]:.2f} ({value[1]:.2f}–{value[2]:.2f})"


def node_table(record: NodesRecord, found: NodesFindings) -> str:
    """One row per node; of many nodes, one per node that is not normal, and one for the others."""
    samples = record.first.nodes
    rows = list(zip(samples, found.nodes))
    few = [row for row in rows if len(rows) <= MOST_ROWS or row[1].verdict in ("slow", "disturbed")]
    speeds = host_speeds(record)
    cells = [[*_row(node, verdict), _shown_speed(speeds, node.name)] for node, verdict in few]
    if len(few) < len(rows):
        left = [verdict for _, verdict in rows if verdict.verdict not in ("slow", "disturbed")]
        cells.append([plural(len(left), "other node"), None, None, None, *_range(left), "not slow", "", None])
    heads = [
        "node",
        "kind",
        "cores GFLOP/s",
        "memory GB/s",
        "cores / kind",
        "memory / kind",
        "verdict",
        "cause",
        "speed",
    ]
    return table(heads, cells, align="llrrrrllr")


def _shown_speed(speeds: HostSpeeds, name: str) -> str | None:
    found = _speed(speeds, name)
    return None if found is None or missing(found) else _shown_ratio(found)


def _row(node: NodeSamples, verdict: NodeVerdict) -> list[object]:
    versus = [_ratio(verdict.ratios.get(quantity)) for quantity in SHOWN]
    again = [one.alone for one in (*verdict.ratios.values(), *verdict.cores.values()) if one.slow]
    measured = [ratio for ratio in again if ratio is not None]
    alone = f" (alone: {min(measured):.2f})" if measured else ""
    rates = [_giga(median(rates)) for rates in (node.together, node.memory)]
    return [node.name, _letters(verdict.kind), *rates, *versus, verdict.verdict, f"{verdict.cause}{alone}"]


def _letters(number: int) -> str:
    """A, B, …, Z, AA, …: the name of a kind."""
    last = chr(ord("A") + number % 26)
    return last if number < 26 else _letters(number // 26 - 1) + last


def _ratio(one: NodeRatio | None) -> str | None:
    """'0.85 (0.83–0.87)'."""
    return None if one is None else _shown_ratio((one.ratio, one.low, one.high))


def _range(nodes: Sequence[NodeVerdict]) -> Iterator[str | None]:
    """The smallest and the largest ratio of each quantity."""
    for quantity in SHOWN:
        found = [node.ratios[quantity].ratio for node in nodes if quantity in node.ratios]
        yield f"{min(found):.2f} to {max(found):.2f}" if found else None


def kind_table(record: NodesRecord, found: NodesFindings) -> str:
    """The kinds of nodes with what they consist of and their typical rates."""
    heads = ["kind", "processor", "nodes", "sockets", "NUMA", "cores", "threads", "memory", "accelerators"]
    heads += ["clock", "ranks", "GFLOP/s", "GB/s"]
    rows = [[_letters(k), *_kind_row(record, kind)] for k, kind in enumerate(found.kinds)]
    return table(heads, rows, align="llrrrrrrlrrrr")


def _kind_row(record: NodesRecord, kind: NodeKind) -> list[object]:
    node = record.first.nodes[kind.nodes[0]]
    host, facts = record.first.environment.hosts[node.host], node.facts
    return [
        kind.key.cpu_model,
        len(kind.nodes),
        host.sockets,
        facts.numa_nodes,
        facts.physical_cores or host.cores,
        facts.threads or None,
        size(host.memory_bytes) if host.memory_bytes else None,
        ", ".join(facts.accelerators) or "none",
        f"{kind.clock / GIGA:.2f} GHz" if kind.clock else None,
        kind.key.ranks,
        f"{kind.typical['all cores'] / GIGA:.3g}",
        f"{kind.typical['memory'] / GIGA:.3g}",
    ]


def cost_table(costs: KeepingCosts) -> str:
    """What is lost by keeping the slow nodes, and by leaving them out."""
    rows = [
        ["keep them, with equal shares", _percent(costs.equal), "all nodes wait for the slowest"],
        ["keep them, with weighted shares", _percent(costs.weighted), "fembench tune finds the shares"],
        ["leave them out", _percent(costs.left_out), "run on the other nodes (--without FILE)"],
    ]
    return table(["what to do with the slow nodes", "lost", "because, and how"], rows, align="lrl")


def _test(record: NodesRecord, found: NodesFindings) -> str:
    """How the verdicts were reached."""
    rounds = plural(found.rounds, "round")
    words = [f"{rounds} on all nodes at once; intervals hold together at 95 % for all nodes and cores."]
    words += [f"Slow: the interval ends below {1 - RELEVANT:.2f}, and unusual for its kind."]
    if record.second is not None:
        words.append(f"The slow ones were then measured alone: {plural(len(record.second.nodes), 'node')}.")
    return " ".join(words)


def _percent(fraction: float) -> str:
    """'12.5 %'."""
    return f"{100 * fraction:.3g} %"


def _names(nodes: Sequence[NodeVerdict]) -> str:
    """'n1, n2 and 3 more'."""
    return few([node.name for node in nodes], NAMED)
