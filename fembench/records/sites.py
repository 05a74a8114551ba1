"""Classes of pairs of hosts, and which pairs stand for them (Mendes 2004, 4.3.5: modeller II(b)).

One class for two ranks of a host, one a site, one an ordered pair of sites. A site's first two hosts
measure its inside, its first host alone what lies between it and others: s sites need s * s pairs.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from fembench.base.errors import InputError, shown

SAME_HOST = "same host"
FEW = 4  # hosts, of which all pairs are measured unless classes are asked for


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


def grouped_as(
    asked: str, hosts: Sequence[str], sites: Sequence[str]
) -> tuple[Literal["all", "classes"], Classes]:
    """(what was taken, its classes) for 'all', 'classes', or '': all pairs of few hosts, classes of more."""
    if asked == "all" or (not asked and len(hosts) <= FEW):
        return "all", by_pair(hosts)
    return "classes", by_site(sites)


def _grouped(hosts: Sequence[str], name) -> Classes:
    found: dict[str, tuple[int, int]] = {}
    table = []
    for a in range(len(hosts)):
        row = [SAME_HOST if a == b else name(a, b) for b in range(len(hosts))]
        for b, label in enumerate(row):
            found.setdefault(label, (a, b))
        table.append(row)
    numbers = {label: k for k, label in enumerate(found)}
    pair_class = tuple(tuple(numbers[label] for label in row) for row in table)
    return Classes(tuple(found), pair_class, tuple(found.values()))


def sites_of(hosts: Sequence[str], given: str = "") -> tuple[str, ...]:
    """[host] its site: as 'uff=sn02,sn04;puc=n19' says, else its domain, else 'here'.

    Raises InputError for text that says something else, or names a host that is not there.
    """
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
    unknown = sorted(set(named) - set(hosts))
    if unknown:
        raise InputError(f"sites '{shown(given)}': no host {unknown[0]}; expected {', '.join(hosts)}")
    return tuple(named.get(host) or host.partition(".")[2] or "here" for host in hosts)
