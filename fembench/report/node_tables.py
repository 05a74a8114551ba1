"""What `fembench nodes` prints: a line, tables of nodes and kinds, what slow nodes cost."""

from collections.abc import Sequence

from fembench.base.units import few, plural
from fembench.records.binding import too_few_cores
from fembench.records.nodes import NodesRecord
from fembench.records.quiet import disturbance, narrow_quotas
from fembench.report.slow_hosts import host_advice
from fembench.report.table import Rows, declared, text
from fembench.stats.outliers import FEWEST_ALIKE, RELEVANT
from fembench.stats.summary import median
from fembench.weights.host_speed import host_speeds
from fembench.weights.node_verdicts import KeepingCosts, NodesFindings, NodeVerdict, Quantity, differing
from fembench.weights.slow_nodes import slow_nodes

MOST_ROWS = 32  # of a table with all nodes; else, only others than normal ones
NAMED = 4  # nodes in the headline
GIGA = 1e9
NAMELY = ("slow", "disturbed")  # verdicts of nodes that are always shown
SHOWN: tuple[Quantity, ...] = ("all cores", "memory")
RATIOS = (
    "GFLOP/s and GB/s are medians over rounds; ratios are taken in each round, so that a speed "
    "that changes does not spoil them."
)


def headline(found: NodesFindings) -> str:
    """The result in one line."""
    slow = found.named("slow")
    disturbed = found.named("disturbed")
    n = len(found.nodes)
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


def _crowded(record: NodesRecord) -> str:
    """A line on hosts with less than a CPU per rank, if any."""
    environment = record.first.environment
    found = dict.fromkeys([*too_few_cores(environment), *narrow_quotas(environment)])
    crowded = [] if environment.synthetic else list(found)
    more = f"; and {len(crowded) - NAMED} more" if len(crowded) > NAMED else ""
    return f"less than a CPU per rank: {'; '.join(crowded[:NAMED])}{more}" if crowded else ""


def _advice(record: NodesRecord) -> str:
    """What to do with slow nodes, if there are any that matter."""
    found = host_advice([], host_speeds(record))
    if found is None:
        return ""
    rest = "`fembench nodes --without good` writes a host file of the others, for --hostfile"
    how = rest if found.do.startswith("leave") else "`fembench tune` finds the shares"
    return f"What to do: {found.do}; {how}."


def conclusions(record: NodesRecord, found: NodesFindings) -> list[str]:
    """What disturbed the nodes, which are slow, what they lack, and what to do."""
    loud = disturbance([record.first.environment]) if found.disturbed else ""
    said = [loud, headline(found), _crowded(record), _advice(record)]
    return list(filter(None, said))


def as_text(record: NodesRecord, found: NodesFindings, everything: bool = False) -> str:
    """The tables that support the conclusions, or `everything`."""
    tables = [nodes_table(record, MOST_ROWS), *([costs_table(found.costs)] if found.costs else [])]
    shown = [text(tables[0]), _others(found), *map(text, tables[1:])]
    shown += [text(kinds_table(record, found)), _test(record, found)] if everything else []
    note = f"SYNTHETIC: {found.synthetic}." if found.synthetic else ""
    compared = RATIOS if any(node.ratios for node in found.nodes) else ""
    return "\n\n".join(filter(None, [*shown, " ".join(filter(None, [compared, note]))]))


@declared(
    "nodes",
    "Nodes",
    "What fembench nodes measured before the campaign: the speed of all cores of a node together and its "
    "memory bandwidth, and both over those of the typical node of its kind, compared round by round, with "
    "the 95 % interval. Kinds of one or two nodes are only compared with the fastest kind. The speed is "
    "that of the slowest rank over the typical node of the fastest kind; every other table and plot "
    "prints it.",
    "node; kind; cores_flops_per_s: cores GFLOP/s | >{0:giga}; memory_bytes_per_s: memory GB/s | >{0:giga}",
    "cores_ratio cores_low cores_high: cores / kind | .2f",
    "memory_ratio memory_low memory_high: memory / kind | .2f; verdict; cause",
    "speed speed_low speed_high: speed | .2f",
)
def nodes_table(record: NodesRecord | None, most: int = 0) -> Rows:
    """One row per node; of more than `most`, those slow or disturbed (0: all)."""
    speeds = host_speeds(record)
    rows = list(zip(record.first.nodes, slow_nodes(record).nodes)) if record else []
    for node, verdict in rows:
        if 0 < most < len(rows) and verdict.verdict not in NAMELY:
            continue
        ratios = [verdict.ratios.get(quantity) for quantity in SHOWN]
        versus = [(one.ratio, one.low, one.high) if one else None for one in ratios]
        rates = float(median(node.together)), float(median(node.memory))
        one = speeds.of(node.name)
        yield (
            (node.name, _letters(verdict.kind), *rates, *versus, verdict.verdict, _cause(verdict))
            + ((one.speed, one.low, one.high) if one else None,)
        )


def _cause(verdict: NodeVerdict) -> str:
    """The cause, and the ratio of a node that was slow when it was measured alone."""
    again = [one.alone for one in (*verdict.ratios.values(), *verdict.cores.values()) if one.slow]
    measured = [ratio for ratio in again if ratio is not None]
    return f"{verdict.cause} (alone: {min(measured):.2f})" if measured else verdict.cause


def _others(found: NodesFindings) -> str:
    """A sentence on the nodes that the table leaves out, with the range of their ratios."""
    left = [node for node in found.nodes if node.verdict not in NAMELY]
    if len(found.nodes) <= MOST_ROWS or not left:
        return ""
    ranges = []
    for quantity in SHOWN:
        ratios = [node.ratios[quantity].ratio for node in left if quantity in node.ratios]
        ranges += [f"{quantity} {min(ratios):.2f} to {max(ratios):.2f}"] if ratios else []
    return f"{plural(len(left), 'other node')} not slow: {', '.join(ranges)} of the typical node of the kind."


def _letters(number: int) -> str:
    """A, B, …, Z, AA, …: the name of a kind."""
    last = chr(ord("A") + number % 26)
    return last if number < 26 else _letters(number // 26 - 1) + last


@declared(
    "node_kinds",
    "Kinds of nodes",
    "",
    "kind; processor; nodes; sockets; numa: NUMA; cores; threads; memory_bytes; accelerators",
    "clock_hz: clock | >{0:.2f} GHz; ranks; flops_per_s: GFLOP/s | >{0:giga}; bytes_per_s: GB/s | >{0:giga}",
)
def kinds_table(record: NodesRecord, found: NodesFindings) -> Rows:
    """The kinds of nodes with what they consist of and their typical rates."""
    for number, kind in enumerate(found.kinds):
        node = record.first.nodes[kind.nodes[0]]
        host = record.first.environment.hosts[node.host]
        facts = node.facts
        made = host.sockets, facts.numa_nodes, facts.physical_cores or host.cores, facts.threads or None
        has = host.memory_bytes or None, ", ".join(facts.accelerators) or "none"
        clock = kind.clock / GIGA if kind.clock else None
        rates = kind.key.ranks, kind.typical["all cores"], kind.typical["memory"]
        yield _letters(number), kind.key.cpu_model, len(kind.nodes), *made, *has, clock, *rates


@declared(
    "node_costs",
    "What slow nodes cost",
    "",
    "do: what to do with the slow nodes; lost | >{0} %; how: because, and how",
)
def costs_table(costs: KeepingCosts) -> Rows:
    """What is lost by keeping the slow nodes, and by leaving them out."""
    lost = [f"{100 * part:.3g}" for part in (costs.equal, costs.weighted, costs.left_out)]
    return [
        ("keep them, with equal shares", lost[0], "all nodes wait for the slowest"),
        ("keep them, with weighted shares", lost[1], "fembench tune finds the shares"),
        ("leave them out", lost[2], "run on the other nodes (--without FILE)"),
    ]


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
