"""The hosts of a job with their slots: in lists and files, and the order of ranks.

A list is written as batch systems do: 'n[1-3,07],login' and, for the tasks on each,
'2(x3),1'. Of host files, there is one reader for all dialects:

rankfile   'rank 0=host1 slot=0': a host and a core for every rank (Open MPI)
else       'host1 slots=2', 'host1:2', 'host1' once per slot, 'host[1-8] slots=2': hosts with their slots

A file is read before anything starts, because launchers do not say what is wrong with
it. Each launcher gets the hosts in its own form (`launchers`)."""

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown

MOST_HOSTS = 100_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D*)")
_COUNT = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?")


def expand_hosts(text: str, where: str) -> list[str]:
    """The names in a list such as 'n[1-3,07],r[0-1]c[1-2]', in order. Raises InputError.

    `where` names the list in messages. Source: Slurm, `man scontrol`, SHOW HOSTNAMES.
    """
    found: list[str] = []
    for word in _words(text, where):
        names = [""]
        for piece in re.findall(r"\[[^][]*\]|[^][]+|.", word):
            if piece.startswith("[") and len(piece) > 1:
                numbers = list(_numbers(piece[1:-1], text, where))
                _check_count(len(names) * len(numbers), text, where)
                names = [name + number for name in names for number in numbers]
            elif piece in "[]":
                raise _unreadable(text, where)
            else:
                names = [name + piece for name in names]
        found += names
        _check_count(len(found), text, where)
    return found


def _check_count(n_hosts: int, text: str, where: str) -> None:
    if n_hosts > MOST_HOSTS:
        raise InputError(f"{where} = '{shown(text)}': expected at most {MOST_HOSTS} hosts")


def expand_counts(text: str, where: str) -> list[int]:
    """The numbers in a list such as '2(x3),1': 2, 2, 2, 1. Raises InputError."""
    found: list[int] = []
    for word in text.split(","):
        match = _COUNT.fullmatch(word.strip())
        times = int(match.group(2) or 1) if match else 0
        if not match or len(found) + times > MOST_HOSTS:
            raise InputError(f"{where} = '{shown(text)}': expected counts such as 2(x3),1")
        found += [int(match.group(1))] * times
    return found


def folded(names: Iterable[str]) -> str:
    """The names as a short list, 'n[1-3],login', which `expand_hosts` reads."""
    groups: list[tuple[tuple[str, str], list[str]]] = []  # text around a number, the numbers
    for name in names:
        match = _NUMBERED.fullmatch(name)
        head, number, tail = match.groups() if match else (name, "", "")
        if match and groups and groups[-1][0] == (head, tail) and groups[-1][1][0]:
            groups[-1][1].append(number)
        else:
            groups.append(((head, tail), [number]))
    return ",".join(
        f"{head}[{_ranges(numbers)}]{tail}" if len(numbers) > 1 else f"{head}{numbers[0]}{tail}"
        for (head, tail), numbers in groups
    )


def same_host(a: str, b: str) -> bool:
    """Whether two names are of one host: one of them may lack the domain."""
    return a == b or (("." in a) != ("." in b) and a.split(".")[0] == b.split(".")[0])


def is_this_host(name: str) -> bool:
    """Whether a name, with or without domain, is of the host that this process runs on."""
    return same_host(name, platform.node())


def one_name_each(names: Iterable[str], where: str) -> dict[str, str]:
    """{name: the first name of its host}, for hosts listed with and without domain.

    Raises InputError if a name without a domain fits several
    hosts; `where` names the list.
    """
    place = {name: k for k, name in enumerate(dict.fromkeys(names))}
    complete: dict[str, list[str]] = {}
    for name in place:
        if "." in name:
            complete.setdefault(name.split(".")[0], []).append(name)
    found = dict[str, str]()
    for short in (name for name in place if name in complete):
        if len(complete[short]) > 1:
            fits = " or ".join(map(shown, complete[short][:2]))
            raise InputError(f"{where}: host {shown(short)} may be {fits}; expected its domain as well")
        first, second = sorted((short, *complete[short]), key=lambda name: place[name])
        found[second] = first
    return found


def _ranges(numbers: Sequence[str]) -> str:
    """'1', '2', '3', '07' as '1-3,07'."""
    found: list[list[str]] = []  # first and last of each range
    for number in numbers:
        if found and number == str(int(found[-1][1]) + 1).zfill(len(found[-1][0])):
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(first if first == last else f"{first}-{last}" for first, last in found)


def _words(text: str, where: str) -> Iterator[str]:
    """The parts between the commas that are outside brackets."""
    for word in re.split(r",(?![^[]*\])", text):
        if not word.strip():
            raise _unreadable(text, where)
        yield word.strip()


def _numbers(inside: str, text: str, where: str) -> Iterator[str]:
    """'1-3,07' as '1', '2', '3', '07'; leading zeros are kept."""
    for part in inside.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (match.group(1), match.group(2) or match.group(1)) if match else ("1", "0")
        if not 0 <= int(last) - int(first) < MOST_HOSTS:
            raise _unreadable(text, where)
        yield from (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))


def _unreadable(text: str, where: str) -> InputError:
    return InputError(f"{where} = '{shown(text)}': expected a list of hosts such as n[1-3,7],login")


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


def hostfile_of(asked: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path of the job's host file, or else of FEMBENCH_HOSTFILE; "" for none."""
    return asked or environment.get(HOSTFILE, "")


def host_slots(path: str) -> list[HostSlots]:
    """The hosts of a file in any dialect, in its order, with repeats. Raises InputError."""
    return _hosts_in(read_text(path), path)


def names_in(text: str) -> list[str]:
    """The names in a host file that was written for a launcher, each once."""
    return list(dict.fromkeys(host.name for host in _hosts_in(text, "host file")))


def hostfile_text(hosts: Iterable[tuple[str, int]]) -> str:
    """A host file of (name, slots), which `host_slots` reads again, and Open MPI as well."""
    return "".join(f"{name} slots={slots}\n" for name, slots in hosts)


def hostfile_of_names(text: str) -> str:
    """The host file for 'a,b:4': two hosts, the second with 4 ranks. Raises InputError."""
    found: list[tuple[str, int]] = []
    for word in text.split(","):
        host = re.fullmatch(r"([\w.-]+)(?::(\d+))?", word.strip())
        if not host or host[2] == "0":
            raise InputError(
                f"hosts '{shown(text)}': cannot read '{shown(word)}'; expected names such as a,b or a:2,b:4"
            )
        found.append((host[1], int(host[2] or 1)))
    return hostfile_text(found)


def is_rankfile(text: str) -> bool:
    """Whether the first line that is neither empty nor a comment places a rank."""
    first = next((line for line in _lines(text)), "")
    return first.startswith("rank ")


def _hosts_in(text: str, where: str) -> list[HostSlots]:
    """The hosts in a text of any dialect. Raises InputError that names the line."""
    if is_rankfile(text):
        return [HostSlots(host, 1) for host, _ in placed(text, where)]
    found = [host for number, line in _numbered(text) for host in _hosts_of(line, f"{where}, line {number}")]
    if not found:
        raise InputError(f"{where}: no hosts in it; expected lines such as 'host1 slots=2'")
    return found


def _hosts_of(line: str, where: str) -> list[HostSlots]:
    """The hosts in a line: one, or those of a list such as n[1-8]."""
    match = None if _RANK.match(line) else _HOST.fullmatch(line)  # a rank among hosts is no dialect
    named = _SLOTS.search(match.group(3)) if match else None
    slots = named.group(1) if named else match.group(2) if match else None
    if not match or (slots is not None and not re.fullmatch(r"0*[1-9][0-9]{0,8}", slots)):
        raise InputError(
            f"{where}: cannot read '{shown(line)}'; expected lines such as 'host1 slots=2', "
            "with at least 1 slot"
        )
    name = match.group(1)
    names = expand_hosts(name, where) if "[" in name else [name]
    return [HostSlots(name, int(slots or 1)) for name in names]


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


@dataclass(frozen=True)
class Allocation:
    """The hosts of a job, each once, in the order in which they are filled."""

    source: str  # 'Slurm job 7', 'PBS_NODEFILE', 'host file FILE', 'this machine'
    hosts: tuple[HostSlots, ...]
    batch: bool = False  # a batch system gave it
    order: tuple[HostSlots, ...] = ()  # of the ranks, if a host file has one of its own
    crowded: bool = False  # a host file asks for more slots than the batch system gave
    heterogeneous: bool = False  # a Slurm job of several components
    cores_per_slot: int = 1  # a slot of Slurm is a task, which may have several

    @property
    def slots(self) -> int:
        """Ranks that all hosts take together."""
        return sum(host.slots for host in self.hosts)

    def __str__(self) -> str:
        shown = ", ".join(f"{host.name}:{host.slots}" for host in self.hosts[:8])
        more = f", … ({len(self.hosts)} hosts)" if len(self.hosts) > 8 else ""
        return f"{self.slots} slots, {self.source}: {shown}{more}"


def merged(hosts: Iterable[HostSlots]) -> tuple[HostSlots, ...]:
    """Each host once, where it is named first, with all its slots."""
    found: dict[str, HostSlots] = {}
    for host in hosts:
        known = found.get(host.name, host._replace(slots=0))
        found[host.name] = known._replace(slots=known.slots + host.slots)
    return tuple(found.values())


def filled(hosts: Iterable[HostSlots], ranks: int) -> list[HostSlots]:
    """Hosts with the ranks that they take, one host after another."""
    found: list[HostSlots] = []
    for host in hosts:
        taken = min(host.slots, ranks)
        ranks -= taken
        if taken and found and found[-1].name == host.name:
            found[-1] = host._replace(slots=found[-1].slots + taken)
        elif taken:
            found.append(host._replace(slots=taken))
    return found


def in_turns(hosts: Iterable[HostSlots], ranks: int) -> list[HostSlots]:
    """Hosts in the order of ranks if each host takes the next one in turn."""
    left, found = list(hosts), list[HostSlots]()
    while left and len(found) < ranks:
        found += [host._replace(slots=1) for host in left]
        left = [host._replace(slots=host.slots - 1) for host in left if host.slots > 1]
    return filled(found, ranks)
