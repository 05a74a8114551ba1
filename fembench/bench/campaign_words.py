"""Words of a campaign file: ranks, hosts and meshes that depend on the hosts of the job.

ranks                2, "node" (all slots of a host), "2 nodes", "half", "all" ("cores": its older name)
per_node             ranks per host
hosts                "n1,n3", "n[1-3]", "each" (a case per host), "fast" (within 10 % of the fastest), "all"
equations_per_rank   200_000: a box of this number of equations times the number of ranks
memory               "25%": the box whose run takes this part of the memory of the hosts, as estimated

A case without `ranks` runs on one rank; with `hosts` or `per_node`, on all of these.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from fembench.base.config import as_typed
from fembench.base.errors import InputError, shown
from fembench.base.units import plural, size
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.duration import DOFS_PER_NODE, RANK_BYTES, WHOLE_BYTES, bytes_per_equation
from fembench.launch.allocation import HostsError, chosen, in_words, layout, room_of
from fembench.launch.hosts import Allocation, HostSlots, filled, folded, merged
from fembench.mesh.box import MOST_EQUATIONS
from fembench.partition.shares import parse_shares
from fembench.records.case import Case, new_case

WORDS = {  # key -> what it takes, beside numbers for ranks
    "ranks": "a number, 'node', '2 nodes', 'half' or 'all'",
    "hosts": "names such as 'n1,n3' or 'n[1-3]', or 'each', 'fast' or 'all'",
}
SIZES = ("equations_per_rank", "memory")  # keys that size a box in place of `mesh`
HOST_KEYS = ("hosts", "per_node")
_NODES = re.compile(r"(?:0*([1-9][0-9]{0,6}) )?nodes?")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


class PlacedCase(NamedTuple):
    """A case of a campaign and where its ranks run."""

    case: Case
    hosts: tuple[HostSlots, ...]  # in the order of ranks


def spread(lists: Mapping[str, list[Any]], there: CampaignHosts, where: str) -> dict[str, list[Any]]:
    """The lists of a table, with host words as lists of hosts. Raises InputError."""
    sized = [key for key in ("mesh", *SIZES) if key in lists]
    if len(sized) > 1:
        raise InputError(f"{where} {sized[0]} and {sized[1]}: expected one of them")
    found = dict(lists)
    if "hosts" in lists:
        found["hosts"] = [names for value in lists["hosts"] for names in _hosts(value, there)]
    return found


def _hosts(value: Any, there: CampaignHosts) -> list[Any]:
    """The hosts of each case that a value of `hosts` stands for."""
    if value == "each":
        return [host.name for host in there.job.hosts]
    if value == "fast":
        return [folded(host.name for host in there.fast())]
    return [""] if value == "all" else [value]


def placed_case(row: Mapping[str, Any], there: CampaignHosts, where: str) -> PlacedCase:
    """The case of a row, its mesh not yet sized. Raises HostsError for too few slots."""
    plain = {key: value for key, value in row.items() if key not in SIZES}
    for key, takes in WORDS.items():
        if type(row.get(key, "")) is not str and (key != "ranks" or type(row[key]) is not int):
            raise InputError(f"{where} {key} = {as_typed(row[key])}: expected {takes}")
    if any(key in row for key in HOST_KEYS) or isinstance(row.get("ranks"), str):
        plain |= _resolved(plain, there.job, where)
    case = new_case(plain, where)
    placed = tuple(layout(case.placement, there.job))
    return PlacedCase(_shortest(case, placed, there.job), placed)


def sized(found: PlacedCase, row: Mapping[str, Any], there: CampaignHosts, where: str) -> PlacedCase:
    """The case on the box that its row asks for. Raises InputError."""
    case, placed = found
    try:
        if "equations_per_rank" in row:
            n = _per_rank(row["equations_per_rank"]) * case.placement.ranks
        elif "memory" in row:
            n = _equations(row["memory"], case, placed, there)
        else:
            return found
        if n > MOST_EQUATIONS:
            raise InputError(f"a box of {n} equations; expected at most {MOST_EQUATIONS:.0e}")
    except InputError as error:
        raise InputError(f"{where} {error}") from None
    return PlacedCase(case.with_(mesh=f"box:{n}"), placed)


def _resolved(row: Mapping[str, Any], job: Allocation, where: str) -> dict[str, Any]:
    """ranks, hosts and per_node of a row, as numbers and names."""
    keys = (*HOST_KEYS, "threads")
    asked = new_case({key: row[key] for key in keys if key in row}, where).placement
    word = row.get("ranks", "all")
    if not isinstance(word, str):
        return {}
    room = room_of(asked.hosts, asked.per_node, job, asked.threads)
    ranks = _ranks(word, room, where)
    found: dict[str, Any] = {"ranks": ranks}
    if not asked.hosts and _NODES.fullmatch(word) and job.order:
        packed = filled(room, ranks)
        if filled(job.order, ranks) != packed:  # the host file has another order
            found["hosts"] = folded(host.name for host in packed)
    return found


def _ranks(word: str, room: Sequence[HostSlots], where: str) -> int:
    """The number of ranks that a word stands for, on hosts with this room."""
    slots = [host.slots for host in room]
    nodes = _NODES.fullmatch(word)
    if nodes:
        n = int(nodes[1] or 1)
        if n > len(room):
            raise HostsError(f"ranks = '{word}': the job has {plural(len(room), 'host')} ({in_words(room)})")
        return sum(slots[:n])
    if word in ("all", "cores"):
        return sum(slots)
    if word == "half":
        return max(1, sum(slots) // 2)
    raise InputError(f"{where} ranks = '{shown(word)}': expected {WORDS['ranks']}")


def _per_rank(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MOST_EQUATIONS:
        raise InputError(f"equations_per_rank = {shown(value)}: expected a whole number, as in 200_000")
    return value


def _equations(value: Any, case: Case, placed: Sequence[HostSlots], there: CampaignHosts) -> int:
    """Equations of the largest box whose run takes this part of the memory of each host."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    part = float(match[1]) / 100 if match else 0.0
    if not 0 < part <= 1:
        raise InputError(f"memory = '{shown(value)}': expected a part of the memory, as in '25%'")
    fits = []
    for host, each in zip(merged(placed), _bytes_per_equation(case, placed)):
        given = part * there.memory_of(host.name)
        taken = host.slots * RANK_BYTES
        if given - taken < each:
            raise InputError(
                f"memory = '{value}' of {host.name} is {size(given)}; expected more than "
                f"{size(taken)}, which {plural(host.slots, 'rank')} need without a mesh"
            )
        fits.append((given - taken) / each)
    return int(min(fits))


def _bytes_per_equation(case: Case, placed: Sequence[HostSlots]) -> list[float]:
    """[host, each once] memory that it needs per equation of the whole mesh."""
    shares = parse_shares(case.placement.shares, case.placement.ranks)
    ranks = [host.name for host in placed for _ in range(host.slots)]
    p = case.placement
    whole = WHOLE_BYTES / DOFS_PER_NODE if p.ranks > 1 and p.partitioner != "blocks" else 0.0
    needs = dict.fromkeys(ranks, 0.0)
    for rank, (name, share) in enumerate(zip(ranks, shares)):
        partitions = rank == 0 or p.replicated
        needs[name] += bytes_per_equation(case.method) * share + (whole if partitions else 0.0)
    return list(needs.values())


def _shortest(case: Case, placed: Sequence[HostSlots], job: Allocation) -> Case:
    """The case with the fewest words that place its ranks alike; names stay unless all."""
    p = case.placement
    if not p.hosts and not p.per_node:
        return case
    hosts = chosen(p.hosts, job)
    names = folded(host.name for host in hosts)
    choices = [("", 0), ("", p.per_node)] if hosts == list(job.hosts) else []
    for some, per_node in [*choices, (names, 0)]:
        tried = structs.replace(p, hosts=some, per_node=per_node)
        if layout(tried, job) == list(placed):
            return case.with_(hosts=some, per_node=per_node)
    return case.with_(hosts=names)
