"""What messages cost, as text: classes of pairs, all-reduces, several pairs at once, H of the ranks."""

from collections.abc import Sequence

from fembench.base.tables import table
from fembench.base.units import seconds, size
from fembench.records.network import Network, PairClass, both_ways_at, value_at

SHOWN = (8, 1024, 16384, 262144, 1048576)  # bytes
MOST_SIZES = 6  # whose costs are printed where others than SHOWN were asked for
MOST = 12  # classes whose costs are printed; the profile has all
H_HEADS = ["rank", "host", "product", "kernels", "processor", "by queue", "by load", "by clock"]
H_TITLE = (
    "H, time of a rank over the fastest rank's: by the product, by three kernels, by their processor time; "
    "the last also corrected for the load then, by the run queue (4.1), the load average (4.2), or elapsed "
    "over processor time, the clock (4.3); numbers are equations of Mendes (2004)"
)
POLLS = 1.3  # factor from which waiting ranks keep their core (Mendes 2004)


def as_text(network: Network, slowness: Sequence[Sequence[object]] = (), synthetic: str = "") -> str:
    """All tables; `slowness` rows (rank, host, H by …) where somebody worked them out."""
    label = f" (SYNTHETIC: {synthetic})" if synthetic else ""
    parts = [f"Messages{label}: {_how(network)}", costs_table(network)]
    if any(one.beside for one in network.classes):
        parts += ["Messages both ways beside computing", beside_table(network)]
    if network.kielmann:
        parts += ["Kielmann's method for comparison: one way L + g(m)", kielmann_table(network)]
    if network.allreduce:
        parts += ["All-reduce, back to back", allreduce_table(network)]
    if network.contention:
        parts += ["Several pairs at once: time of a message over its time alone", contention_table(network)]
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


def costs_table(network: Network) -> str:
    """One row per class and size: T = Os + L + Or and its parts; the factor of T while a message travels the
    other way; the gap; T of MPI_Send."""
    heads = ["pair", "rendezvous from", "bytes", "Os", "L", "Or", "T", "both ways", "gap", "T by MPI_Send"]
    rows = []
    for k, one in enumerate(network.classes[:MOST]):
        blocking = network.blocking[k] if k < len(network.blocking) else None
        for number, m in enumerate(_shown(network)):
            head = [one.name, size(one.switch) if one.switch else "never"] if number == 0 else ["", ""]
            rows.append([*head, size(m), *_costs(one, m), seconds(_total(blocking, m)) if blocking else None])
    more = len(network.classes) - MOST
    text = table(heads, rows, align="llrrrrrrrr")
    return f"{text}\n{more} more classes: --json has all" if more > 0 else text


def _shown(network: Network) -> tuple[int, ...]:
    """Bytes of the messages whose costs are printed: the usual ones where they were measured."""
    known = (network.settings.sizes if network.settings else ()) or SHOWN
    if set(SHOWN) <= set(known):
        return SHOWN
    return tuple(
        dict.fromkeys(known[round(k * (len(known) - 1) / (MOST_SIZES - 1))] for k in range(MOST_SIZES))
    )


def beside_table(network: Network) -> str:
    """One row per class and size: how much longer computing takes while messages travel both ways, and how
    long the rank then still waits."""
    heads = ["pair", "bytes", "computing takes longer", "then waits"]
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
    """One row per class and size, with T = Os + L + Or of the same class beside."""
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
    """What MPI does while nobody is in it, and what waiting ranks cost."""
    lines = []
    if network.overlap_left is not None:
        does = "travels" if network.overlap else "does not travel"
        left = f"{network.overlap_left:.0%} of its time is left then"
        lines.append(f"a large message {does} while ranks compute: {left}")
    if network.polling is not None:
        keeps = "keep their core" if network.polling > POLLS else "leave their core to others"
        took = f"beside one, on one core, computing takes {network.polling:.2f} times as long"
        lines.append(f"ranks that wait {keeps}: {took}")
    return lines
