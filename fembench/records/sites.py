"""Classes of host pairs, and the pair measured for each (Mendes 2004, 4.3.5, modeller II(b)).

There is one class for two ranks of a host, one per site, and one per ordered pair of sites. The first two
hosts of a site measure its class, its first host the links to other sites: s sites need s * s pairs.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from fembench.base.errors import InputError, shown

SAME_HOST = "same host"
FEW = 4  # hosts; up to this number, all pairs are measured by default


class Classes(NamedTuple):
    """The classes, the class of every ordered pair of hosts, and the pair of hosts measured per class."""

    names: tuple[str, ...]
    pair_class: tuple[tuple[int, ...], ...]  # [host][host]
    pairs: tuple[tuple[int, int], ...]  # [class]; the same host twice: two of its ranks


def by_site(sites: Sequence[str]) -> Classes:
    """Classes by the site of each host, sites[host]."""
    return _grouped(sites, lambda a, b: sites[a] if sites[a] == sites[b] else f"{sites[a]} > {sites[b]}")


def by_pair(hosts: Sequence[str]) -> Classes:
    """One class per ordered pair of different hosts (II(a)), and one for pairs on the same host."""
    return _grouped(hosts, lambda a, b: f"{hosts[a]} > {hosts[b]}")


def grouped_as(
    asked: str, hosts: Sequence[str], sites: Sequence[str]
) -> tuple[Literal["all", "classes"], Classes]:
    """(choice, its classes) for 'all', 'classes', or '': all pairs of up to FEW hosts, else classes."""
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
    """[host] site: as given in 'uff=sn02,sn04;puc=n19'; otherwise the host's domain, or 'here' without one.

    Raises InputError for malformed text, an unknown host, or a host given twice.
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
        raise InputError(f"sites '{shown(given)}': no host {unknown[0]}; expected one of {', '.join(hosts)}")
    return tuple(named.get(host) or host.partition(".")[2] or "here" for host in hosts)
