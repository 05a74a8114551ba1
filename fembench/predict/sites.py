"""Classes of pairs of hosts, and which pairs stand for them (thesis-001, 4.3.5: modeller II(b)).

One class for two ranks of a host, one a site, one an ordered pair of sites. A site's first two hosts
measure its inside, its first host alone what lies between it and others: s sites need s * s pairs.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Classes(NamedTuple):
    """Names of the classes, the class of every ordered pair of hosts, a pair of hosts to measure for each."""

    names: tuple[str, ...]
    pair_class: tuple[tuple[int, ...], ...]  # [host][host]
    pairs: tuple[tuple[int, int], ...]  # [class]; twice the same host: two of its ranks


def by_site(sites: Sequence[str]) -> Classes:
    """Classes of hosts grouped into sites, sites[host]."""
    return _grouped(sites, lambda a, b: sites[a] if sites[a] == sites[b] else f"{sites[a]} > {sites[b]}")


def by_pair(hosts: Sequence[str]) -> Classes:
    """A class for every ordered pair of hosts (II(a)); same host is one for all."""
    return _grouped(hosts, lambda a, b: f"{hosts[a]} > {hosts[b]}")


def _grouped(hosts: Sequence[str], name) -> Classes:
    found: dict[str, tuple[int, int]] = {}
    table = []
    for a in range(len(hosts)):
        row = ["same host" if a == b else name(a, b) for b in range(len(hosts))]
        for b, label in enumerate(row):
            found.setdefault(label, (a, b))
        table.append(row)
    numbers = {label: k for k, label in enumerate(found)}
    pair_class = tuple(tuple(numbers[label] for label in row) for row in table)
    return Classes(tuple(found), pair_class, tuple(found.values()))


def representatives(sites: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of different hosts that modeller II(b) measures."""
    return [pair for pair in by_site(sites).pairs if pair[0] != pair[1]]
