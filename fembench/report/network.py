"""The network of a profile as text: messages, all-reduces, contention, H of the ranks."""

from collections.abc import Sequence

from fembench.base.tables import table
from fembench.base.units import percent, seconds, size
from fembench.records.network import PROVISIONAL, Network, PairClass, both_ways_at, value_at

SHOWN = (8, 1024, 16384, 262144, 1048576)  # bytes
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


def as_text(
    network: Network,
    slowness: Sequence[Sequence[object]] = (),
    synthetic: str = "",
    disturbed: Sequence[str] = (),
) -> str:
    """All tables; `slowness`: rows (rank, host, H by …) or none; `disturbed`: by whom."""
    label = f" (SYNTHETIC: {synthetic})" if synthetic else ""
    parts = [f"Messages{label}: {_how(network)}", costs_table(network, bool(disturbed))]
    if disturbed:
        why = "; ".join(disturbed)
        parts.insert(0, f"{PROVISIONAL}{why}; costs and the size of the rendezvous may be wrong: repeat")
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

    The slowdown by a message in the opposite direction, the gap, and T with MPI_Send.
    """
    heads = ["pair", "rendezvous from", "bytes", "Os", "L", "Or", "T", "both ways", "gap", "T by MPI_Send"]
    rows = []
    for k, one in enumerate(network.classes[:MOST]):
        blocking = network.blocking[k] if k < len(network.blocking) else None
        for number, m in enumerate(_shown(network)):
            switch = size(one.switch) if one.switch else "never"
            if disturbed:
                switch = f"{switch}, PROVISIONAL"
            head = ["", ""] if number else [one.name, switch]
            total = seconds(_total(blocking, m)) if blocking else None
            rows.append([*head, size(m), *_costs(one, m), total])
    more = len(network.classes) - MOST
    text = table(heads, rows, align="llrrrrrrrr")
    return f"{text}\n{more} more classes; --json shows all" if more > 0 else text


def _shown(network: Network) -> tuple[int, ...]:
    """Sizes whose costs are printed: SHOWN if measured, else a selection."""
    known = (network.settings.sizes if network.settings else ()) or SHOWN
    if set(SHOWN) <= set(known):
        return SHOWN
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
