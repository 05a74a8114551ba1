"""The slots for the ranks of a run: the profile's hosts as they are, or edited.

fastest        every host becomes a copy of the one with the fastest rank      slowest      of the slowest
add:NAME       adds a copy of host NAME                                        add:NAME*3   three copies
share:2        two ranks in place of each, on the same host
"""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fembench.base.errors import InputError, shown
from fembench.base.units import few, plural
from fembench.model.heterogeneity import from_product
from fembench.model.machine import SMALL, Machine, checked_speeds, steady_class
from fembench.records.hlogp import GivenLink, message_cost
from fembench.records.network import Network, PairClass, class_of
from fembench.records.profile import NO_NETWORK, Profile

HOSTS_NAMED = 3
HELD_UP = 0.1  # fraction of a message's time; less counts as noise
POLLS = 1.2  # slowdown; less counts as noise, because sleeping ranks wake occasionally
NO_MESSAGES = GivenLink(latency=0.0, bandwidth=math.inf, overhead=0.0)  # of one rank


class Slot(NamedTuple):
    """The place of one rank."""

    host: int  # in the run; several may be copies of one host of the profile
    model: int  # host in the profile of which it is a copy
    rank: int  # rank in the profile whose speeds apply


def slots_of(profile: Profile, storage: str, edits: Sequence[str] = ()) -> list[Slot]:
    """Slots in the order of the profile's ranks, after the edits. Raises InputError."""
    placed = profile.environment.rank_host
    slots = [Slot(host, host, rank) for rank, host in enumerate(placed)]
    for edit in edits:
        slots = _edited(profile, storage, slots, edit)
    return slots


def _edited(profile: Profile, storage: str, slots: list[Slot], edit: str) -> list[Slot]:
    placed = profile.environment.rank_host
    if edit in ("fastest", "slowest"):
        H = from_product(profile, storage).tolist()
        rank = H.index(min(H) if edit == "fastest" else max(H))
        return [Slot(s.host, placed[rank], rank) for s in slots]
    if shared := re.fullmatch(r"share:([1-9]\d?)", edit):
        return [s for s in slots for _ in range(int(shared.group(1)))]
    found = re.fullmatch(r"add:([^*]+)(?:\*(\d{1,5}))?", edit)
    names = profile.environment.host_of_rank
    if not found or found.group(1) not in names:
        raise InputError(
            f"machines '{edit}': expected fastest, slowest, share:COUNT or add:NAME*COUNT with NAME one of "
            f"{', '.join(dict.fromkeys(names))}"
        )
    like = names.index(found.group(1))
    model = placed[like]
    ranks = [r for r, host in enumerate(placed) if host == model]
    new = max(s.host for s in slots) + 1
    return slots + [Slot(new + k, model, r) for k in range(int(found.group(2) or 1)) for r in ranks]


def chosen(profile: Profile, slots: Sequence[Slot], ranks: int) -> list[Slot]:
    """The first `ranks` slots. Raises InputError if there are fewer."""
    if ranks < 1 or ranks > len(slots):
        hosts = [host.name for host in profile.environment.hosts]
        alone = profile.network is None or len(profile.network.sites) < 2
        link = " and link = SECONDS,BYTES/S" if alone else ""
        expected = "1 to " * (len(slots) > 1) + plural(len(slots), "rank")
        raise InputError(
            f"{plural(ranks, 'rank')}; the profile has {plural(len(slots), 'slot')}: "
            f"expected {expected}, or machines = add:NAME*COUNT{link} "
            f"(NAME one of {few(hosts, HOSTS_NAMED)})"
        )
    return list(slots[:ranks])


def company(slots: Sequence[Slot]) -> list[int]:
    """[rank] number of ranks on its host, including itself."""
    count = Counter(s.host for s in slots)
    return [count[s.host] for s in slots]


def on_hosts(slots: Sequence[Slot], amounts: Sequence[float]) -> list[float]:
    """[rank] the sum of the amounts of all ranks on its host."""
    total = defaultdict[int, float](float)
    for slot, amount in zip(slots, amounts):
        total[slot.host] += amount
    return [total[slot.host] for slot in slots]


def machine_of(
    profile: Profile, slots: Sequence[Slot], link: GivenLink | None = None, contention: bool | None = None
) -> Machine:
    """The machine of a run on these slots. Raises InputError.

    `link` replaces the network between hosts; within a host, too,
    if the profile has none.

    `contention` None: modelled if the profile shows that pairs delay each other.
    """
    model = {s.host: s.model for s in slots}
    names = [h.name for h in profile.environment.hosts]
    network = profile.network
    if link is None and network is not None:
        lookup = _measured(network, model)
    elif link is None and len(slots) > 1:
        raise InputError(f"the profile has {NO_NETWORK}, or link = SECONDS,BYTES/S (latency, bandwidth)")
    else:
        lookup = _given(link or NO_MESSAGES, network, model)
    machine = Machine(
        host=tuple(s.host for s in slots),
        names=tuple(names[model[h]] if h in model else "" for h in range(max(model) + 1)),
        link=lookup,
        speeds=checked_speeds((), len(slots)),
        overlap=network is None or network.overlap is not False,
        contention=bool(contention),
    )
    if network is not None and network.across:
        found = network
        machine = replace(
            machine,
            numa=tuple(found.numa[s.rank] for s in slots),
            across=lambda host: class_of(found, model[host], model[host], apart=True),
        )
    if network is None or contention is False:
        return machine
    inside = share_of(network, "inside")
    between = share_of(network, "between")
    if link is not None:  # its hosts' cards hold nothing up unless asked for
        between = None if contention else 0.0
    held_up = max(inside or 0.0, between or 0.0) > HELD_UP
    return replace(machine, inside=inside or 0.0, between=between, contention=held_up or bool(contention))


def share_of(network: Network, where: str) -> float | None:
    """The part of a message's size-dependent time in which it blocks others; or None.

    It follows from the slowdown of k pairs at once, ended after T
    + (k - 1) share (T - T(8)).
    """
    pairs = range(len(network.sites))
    classes = {network.pair_class[a][b] for a in pairs for b in pairs if (a == b) == (where == "inside")}
    found = []
    for c in network.contention:
        if c.where != where or not classes:
            continue
        whole, small = (message_cost(network.classes[min(classes)], m).total for m in (c.m, SMALL))
        if whole > small:
            found.append((c.factor - 1) / (c.pairs - 1) * whole / (whole - small))
    return min(max(statistics.median(found), 0.0), 1.0) if found else None


def waiting_slows(profile: Profile, slots: Sequence[Slot]) -> list[float]:
    """[rank] slowdown by waiting ranks that keep their core, on crowded hosts.

    1 + (f - 1)(ranks - cores) / cores, with the polling factor
    f; 1 if waiting ranks sleep.
    """
    network = profile.network
    hosts = profile.environment.hosts
    polling = network.polling if network is not None and network.polling else 1.0
    if polling < POLLS or profile.emulated:
        return [1.0] * len(slots)
    cores = [max(hosts[s.model].cores, 1) for s in slots]
    return [1 + (polling - 1) * max(0, n - c) / c for n, c in zip(company(slots), cores)]


def _given(
    link: GivenLink, network: Network | None, model: dict[int, int]
) -> Callable[[int, int], PairClass]:
    """The link between hosts, and the profile's messages within one."""
    one = steady_class("given", link.latency, 1 / link.bandwidth, link.overhead)
    if network is None:
        return lambda a, b: one
    return lambda a, b: one if a != b else class_of(network, model[a], model[a])


def _measured(network: Network, model: dict[int, int]) -> Callable[[int, int], PairClass]:
    """The pair classes of the profile. A host and its copy are as two hosts of its site."""

    def lookup(a: int, b: int) -> PairClass:
        p, q = model[a], model[b]
        if a == b or p != q:
            return class_of(network, p, q)
        alike = [k for k, site in enumerate(network.sites) if site == network.sites[p] and k != p]
        others = alike or [k for k in range(len(network.sites)) if k != p]
        if not others:
            raise InputError(
                "the profile has the network of a single host only; expected link = SECONDS,BYTES/S"
            )
        return class_of(network, p, others[0])

    return lookup


def parse_factor(text: str) -> float:
    """The factor in 'x10' or '10'. Raises InputError."""
    found = re.fullmatch(r"x?([0-9]{1,12}(?:\.[0-9]*)?|\.[0-9]+)", text)
    if not found or not float(found.group(1)) > 0:
        raise InputError(f"network '{shown(text)}'; expected a factor such as x10")
    return float(found.group(1))
