"""Host files: their format, and the options that pass them to a launcher.

rankfile   'rank 0=host1 slot=0'   Open MPI: a host and a core for every rank
else       'host1 slots=2', 'host1:2', 'host1'   a list of hosts for Open MPI, MPICH or Slurm

A list of hosts is checked before anything starts, because launchers do not say what is wrong with it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.base.units import plural

SHARED = "core:overload-allowed"  # how ranks are bound if a host may take more ranks than it has cores
_RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*(\S+)")

_HOST = re.compile(
    r"([^\s=:]+|[^\s=]*:[^\s=]*:[^\s=]*)(?::([^:\s]*))?((?:\s+[\w-]+\s*[=:]\s*[^\s=:][^\s=]*)*)"
)
_SLOTS = re.compile(r"\s(?:slots|count|cpus?)\s*[=:]\s*(\S+)")


class HostfileLine(NamedTuple):
    """One line of a list of hosts."""

    line: int
    name: str
    slots: int  # 0: not given, one rank
    colon: bool  # given as 'host1:2'


def host_options(path: str, kind: str, ranks: int) -> list[str]:
    """The options that pass the file to Open MPI, MPICH or Slurm. Raises InputError."""
    text = read_text(path)
    if is_rankfile(text):
        return _rankfile_options(path, text, kind, ranks)
    hosts = hosts_of(text, path)
    if kind == "openmpi":
        _check_open_mpi(hosts, path)
        return ["--hostfile", _without(",", path)]
    if kind == "srun":  # a name with a slash in it is a file; task k runs on the host of line k
        return ["--distribution=arbitrary", f"--nodelist={Path(path).resolve()}"]
    return ["-f", path] if kind == "mpich" else []


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
    match = _HOST.fullmatch(line)
    named = _SLOTS.search(match.group(3)) if match else None
    slots = named.group(1) if named else match.group(2) if match else None
    if not match or (slots is not None and not re.fullmatch(r"0*[1-9][0-9]{0,8}", slots)):
        raise InputError(
            f"{where}, line {number}: cannot read '{shown(line)}'; expected lines such as 'host1 slots=2', "
            "with at least 1 slot"
        )
    return HostfileLine(number, match.group(1), int(slots or 0), match.group(2) is not None)


def _check_open_mpi(hosts: list[HostfileLine], where: str) -> None:
    """Raises InputError for syntax that only MPICH reads, and for a host with slots on several lines."""
    first: dict[str, HostfileLine] = {}
    for host in hosts:
        if host.colon:
            found, expected = f"'{host.name}:{host.slots}' is MPICH's", f"'{host.name} slots={host.slots}'"
            raise InputError(f"{where}, line {host.line}: {found}; expected {expected} for Open MPI")
        before = first.setdefault(host.name, host)
        if before is not host and (before.slots or host.slots):
            raise InputError(
                f"{where}, line {host.line}: host {host.name} is on line {before.line} already; expected one "
                "line per host with all its slots"
            )


def hosts_asked(path: str) -> str:
    """The host file as a record keeps it: its lines without comments; '' without a host file.

    In a lab FEMBENCH_HOSTFILE names it. Raises InputError.
    """
    path = path or os.environ.get("FEMBENCH_HOSTFILE", "")
    return "; ".join(" ".join(line.split()) for line in _lines(read_text(path))) if path else ""


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


def _rankfile_options(path: str, text: str, kind: str, ranks: int) -> list[str]:
    """The options for a rankfile: its hosts with the slots used; each rank on its core."""
    if kind != "openmpi":
        raise InputError(f"{path}: a rankfile is Open MPI's; expected a list of hosts ({kind})")
    places = placed(text, path)
    if len(places) != ranks:
        raise InputError(f"{path} places {plural(len(places), 'rank')}; the case has {ranks}")
    slots = Counter(host for host, _ in places)
    hosts = ",".join(f"{host}:{n}" for host, n in slots.items())
    binding = "core" if len(set(places)) == len(places) else SHARED
    return ["--host", hosts, "--map-by", f"rankfile:file={_without(':', path)}", "--bind-to", binding]


def _without(character: str, path: str) -> str:
    """The path. Raises InputError if Open MPI would split it at this character."""
    if character in path:
        raise InputError(f"{path}: Open MPI takes no host file with '{character}' in its path")
    return path


def _lines(text: str) -> list[str]:
    return [line for _, line in _numbered(text)]


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of the lines that are neither empty nor comments."""
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.split("#")[0].strip()
        if plain:
            yield number, plain
