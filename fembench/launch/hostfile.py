"""Host files: one reader for all their dialects.

rankfile   'rank 0=host1 slot=0': a host and a core for every rank (Open MPI)
else       'host1 slots=2', 'host1:2', 'host1' once per slot, 'host[1-8] slots=2': hosts with their slots

A file is read before anything starts, because launchers do not say what is wrong with it. Each launcher gets
the hosts in its own form (`launchers`).
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.launch.hostlist import expand_hosts

HOSTFILE = "FEMBENCH_HOSTFILE"  # names the host file where no option does; a lab sets it
_RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*(\S+)")

_HOST = re.compile(
    r"([^\s=:]+|[^\s=]*:[^\s=]*:[^\s=]*)(?::([^:\s]*))?((?:\s+[\w-]+\s*[=:]\s*[^\s=:][^\s=]*)*)"
)
_SLOTS = re.compile(r"\s(?:slots|count|cpus?)\s*[=:]\s*(\S+)")


class HostSlots(NamedTuple):
    """A host and the ranks that it takes."""

    name: str
    slots: int
    component: int = 0  # of a heterogeneous Slurm job


class HostfileLine(NamedTuple):
    """One line of a list of hosts."""

    line: int
    name: str
    slots: int  # 0: not given, one rank


def hostfile_of(asked: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path of the job's host file: the one asked for, else that of FEMBENCH_HOSTFILE; "" for none."""
    return asked or environment.get(HOSTFILE, "")


def host_slots(path: str) -> list[HostSlots]:
    """The hosts of a file in any dialect, in its order, repeated if the file does so. Raises InputError."""
    text = read_text(path)
    if is_rankfile(text):
        return [HostSlots(host, 1) for host, _ in placed(text, path)]
    found = []
    for host in hosts_of(text, path):
        names = expand_hosts(host.name, f"{path}, line {host.line}") if "[" in host.name else [host.name]
        found += [HostSlots(name, host.slots or 1) for name in names]
    return found


def hostfile_text(hosts: Iterable[tuple[str, int]]) -> str:
    """A host file of (name, slots), which `host_slots` reads again, and Open MPI as well."""
    return "".join(f"{name} slots={slots}\n" for name, slots in hosts)


def is_rankfile(text: str) -> bool:
    """Whether the first line that is neither empty nor a comment places a rank."""
    first = next((line for line in _lines(text)), "")
    return first.startswith("rank ")


def hosts_of(text: str, where: str) -> list[HostfileLine]:
    """The hosts in a list. Raises InputError that names the line."""
    found = [_host(number, line, where) for number, line in _numbered(text)]
    if not found:
        raise InputError(f"{where}: no hosts in it; expected lines such as 'host1 slots=2'")
    return found


def _host(number: int, line: str, where: str) -> HostfileLine:
    match = None if _RANK.match(line) else _HOST.fullmatch(line)  # a rank among hosts belongs to no dialect
    named = _SLOTS.search(match.group(3)) if match else None
    slots = named.group(1) if named else match.group(2) if match else None
    if not match or (slots is not None and not re.fullmatch(r"0*[1-9][0-9]{0,8}", slots)):
        raise InputError(
            f"{where}, line {number}: cannot read '{shown(line)}'; expected lines such as 'host1 slots=2', "
            "with at least 1 slot"
        )
    return HostfileLine(number, match.group(1), int(slots or 0))


def names_in(text: str) -> list[str]:
    """The names in a host file that was written for a launcher, or in a rankfile, each once."""
    if is_rankfile(text):
        return list(dict.fromkeys(host for host, _ in placed(text, "rankfile")))
    return list(dict.fromkeys(host.name for host in hosts_of(text, "host file")))


def in_one_line(path: str) -> str:
    """The lines of a host file without comments: 'a slots=2; b'. Raises InputError."""
    return "; ".join(" ".join(line.split()) for line in _lines(read_text(path)))


def placed(text: str, where: str) -> list[tuple[str, str]]:
    """[rank] -> (host, slot) of a rankfile. Raises InputError."""
    found: dict[int, tuple[str, str]] = {}
    for line in _lines(text):
        match = _RANK.fullmatch(line)
        if not match:
            raise InputError(f"{where}: cannot read '{shown(line)}'; expected 'rank 0=HOST slot=0'")
        if int(match.group(1)) in found:
            raise InputError(f"{where}: rank {match.group(1)} is placed twice")
        found[int(match.group(1))] = match.group(2), match.group(3)
    missing = set(range(len(found))) - set(found)
    if missing:
        raise InputError(f"{where}: no line for rank {min(missing)}; expected ranks 0 to {max(found)}")
    return [found[r] for r in range(len(found))]


def _lines(text: str) -> list[str]:
    return [line for _, line in _numbered(text)]


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of the lines that are neither empty nor comments."""
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.split("#")[0].strip()
        if plain:
            yield number, plain
