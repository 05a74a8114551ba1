"""How messages are measured: settings, and the pairs (Mendes 2004, 4.3.5, modeller II(b)).

There is one class for two ranks of a host, one per site, and one per ordered pair of
sites. The first two hosts of a site measure its class, its first host the links to
other sites: s sites need s * s pairs. Os and Or depend on the processor: if hosts
differ in kind, there is one class for two ranks of a host per kind, and the hosts of
one kind within a site are treated as a site. Where they are known, levels have classes
of their
own: ranks on two NUMA nodes of a host, and hosts of a site on two switches.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from fembench.base.errors import InputError, shown
from fembench.records.record import Frozen

Mode = Literal["isend", "send"]  # the call that sends
Method = Literal["I", "II"]  # I: Kielmann's trains, II: ping-pongs (Mendes 2004)
METHODS: dict[str, tuple[Method, ...]] = {"trains": ("I",), "pingpong": ("II",), "both": ("I", "II")}
SENDS: dict[str, tuple[Mode, ...]] = {"isend": ("isend",), "send": ("send",), "both": ("isend", "send")}
Pairs = Literal["all", "classes"]  # every pair of hosts, or one per class (Mendes's II(a), II(b))
PAIRS = get_args(Pairs)


class NetworkSettings(Frozen, frozen=True):
    """How messages are measured."""

    sizes: tuple[int, ...] = ()  # bytes, ascending; (): the usual ones
    repetitions: int = 0  # round trips per size; 0: as many as fit into the default time
    methods: tuple[Method, ...] = METHODS["both"]
    modes: tuple[Mode, ...] = SENDS["both"]  # calls whose ping-pongs are timed


SAME_HOST = "same host"
UNKNOWN = "unknown"  # a processor that the system does not name
FEW = 4  # hosts; up to this number, all pairs are measured by default


class Classes(NamedTuple):
    """The classes, that of every ordered pair of hosts, and the pair measured for each."""

    names: tuple[str, ...]
    pair_class: tuple[tuple[int, ...], ...]  # [host][host]
    pairs: tuple[tuple[int, int], ...]  # [class]; the same host twice: two of its ranks


def by_site(sites: Sequence[str], kinds: Sequence[str] = (), switches: Sequence[str] = ()) -> Classes:
    """Classes by site, kind and switch of each host; (): all are alike."""
    named = kinds or sites
    places = [f"{s}, {kind}" if _differ(kinds, sites, s) else s for s, kind in zip(sites, named)]

    def name(a: int, b: int) -> str:
        if places[a] != places[b]:
            return f"{places[a]} > {places[b]}"
        return f"{places[a]}, other switch" if switches and switches[a] != switches[b] else places[a]

    return _grouped(named, name, several=len(set(kinds)) > 1)


def _differ(kinds: Sequence[str], sites: Sequence[str], site: str) -> bool:
    """Whether the hosts of a site are of several kinds."""
    return len({kind for kind, other in zip(kinds, sites) if other == site}) > 1


def by_pair(hosts: Sequence[str], kinds: Sequence[str] = ()) -> Classes:
    """One class per ordered pair of hosts (II(a)), and one per kind within a host."""
    return _grouped(kinds or hosts, lambda a, b: f"{hosts[a]} > {hosts[b]}", several=len(set(kinds)) > 1)


def grouped_as(
    asked: str,
    hosts: Sequence[str],
    sites: Sequence[str],
    kinds: Sequence[str] = (),
    switches: Sequence[str] = (),
) -> tuple[Pairs, Classes]:
    """(choice, its classes) for 'all', 'classes', or '': all pairs of up to FEW hosts."""
    if asked == "all" or (not asked and len(hosts) <= FEW):
        return "all", by_pair(hosts, kinds)
    return "classes", by_site(sites, kinds, switches)


def with_nodes(
    classes: Classes, placed: Sequence[int], numa: Sequence[int]
) -> tuple[Classes, tuple[int, ...]]:
    """(the classes, with one per kind of host across its NUMA nodes, [host] that class or -1).

    Only kinds that can compare such messages with those on one node.

    placed, numa: [rank] -> host, NUMA node (-1: unknown).
    """
    names, pairs = list(classes.names), list(classes.pairs)
    inside = [f"{classes.names[row[host]]}, other NUMA node" for host, row in enumerate(classes.pair_class)]
    nodes = [
        Counter(node for at, node in zip(placed, numa) if at == host and node >= 0)
        for host in range(len(inside))
    ]
    for host, name in enumerate(inside):
        if len(nodes[host]) > 1 < max(nodes[host].values()) and name not in names:
            names.append(name)
            pairs.append((host, host))
    across = [
        names.index(name) if len(nodes[host]) > 1 and name in names else -1
        for host, name in enumerate(inside)
    ]
    return Classes(tuple(names), classes.pair_class, tuple(pairs)), tuple(across)


def switch_of(host: str, environment: Mapping[str, str]) -> str:
    """The switches above a host, as Slurm names them ('s0.s4'); '' where unknown."""
    above, _, name = environment.get("SLURM_TOPOLOGY_ADDR", "").rpartition(".")
    return above if name == host.partition(".")[0] else ""


def kind_of(cpu_model: str, cpus: int) -> str:
    """The kind of a host with so many CPUs."""
    return f"{cpu_model or UNKNOWN}, {cpus} CPUs"


def guessed(hosts: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """A note on hosts whose kind is known by their number of cores alone."""
    unknown = [host for host, kind in zip(hosts, kinds) if kind.startswith(UNKNOWN)]
    if not unknown or len(hosts) == 1:
        return []
    names = ", ".join(unknown[:4])
    return [f"{names}: processor unknown; hosts with equally many CPUs are taken to be of one kind"]


def _grouped(kinds: Sequence[str], name: Callable[[int, int], str], *, several: bool) -> Classes:
    found: dict[str, tuple[int, int]] = {}
    table = []
    hosts = range(len(kinds))
    for a in hosts:
        inside = f"{SAME_HOST}, {kinds[a]}" if several else SAME_HOST
        row = [inside if a == b else name(a, b) for b in hosts]
        for b, label in enumerate(row):
            found.setdefault(label, (a, b))
        table.append(row)
    numbers = {label: k for k, label in enumerate(found)}
    pair_class = tuple(tuple(numbers[label] for label in row) for row in table)
    return Classes(tuple(found), pair_class, tuple(found.values()))


def sites_of(hosts: Sequence[str], given: str = "") -> tuple[str, ...]:
    """[host] site: as in 'uff=sn02,sn04;puc=n19', or its domain, or 'here' without one.

    Raises InputError for malformed text, an unknown host, or a host given twice.
    """
    named = named_sites(given)
    unknown = sorted(set(named) - set(hosts))
    if unknown:
        raise InputError(f"sites '{shown(given)}': no host {unknown[0]}; expected one of {', '.join(hosts)}")
    return tuple(named.get(host) or host.partition(".")[2] or "here" for host in hosts)


def named_sites(given: str) -> dict[str, str]:
    """{host: site} in 'uff=sn02,sn04;puc=n19'. Raises InputError."""
    named: dict[str, str] = {}
    for word in filter(None, given.split(";")):
        site, _, members = word.partition("=")
        if not site.strip() or not members.strip():
            raise InputError(
                f"sites '{shown(given)}': cannot read '{shown(word)}'; expected SITE=HOST,HOST;SITE=HOST"
            )
        for host in (name.strip() for name in members.split(",")):
            if host in named:
                raise InputError(
                    f"sites '{shown(given)}': host {host} is given twice; expected one site per host"
                )
            named[host] = site.strip()
    return named
