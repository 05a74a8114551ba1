"""Which file of hosts it is, and the options with which a launcher takes it.

rankfile   'rank 0=node1 slot=0'   Open MPI: every rank has its host and core
else       'node1 slots=2', 'node1:2', 'node1'   Open MPI's, MPICH's or Slurm's list of hosts
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown

SHARED = "core:overload-allowed"  # how ranks are bound where a host may take more of them than it has cores
_RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*(\S+)")


def host_options(path: str, kind: str, ranks: int) -> list[str]:
    """The options that hand the file to Open MPI, MPICH or Slurm. Raises InputError."""
    text = read_text(path)
    if is_rankfile(text):
        return _rankfile_options(path, text, kind, ranks)
    if kind == "openmpi":
        return ["--hostfile", _without(",", path)]
    if kind == "srun":  # a name with a slash in it is a file; task k runs on the host of line k
        return ["--distribution=arbitrary", f"--nodelist={Path(path).resolve()}"]
    return ["-f", path] if kind == "mpich" else []


def is_rankfile(text: str) -> bool:
    """Whether its first line that says something places a rank."""
    first = next((line for line in _lines(text)), "")
    return first.startswith("rank ")


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
    """Its hosts with as many slots as it uses, and each rank on its own; ranks of one core may share it."""
    if kind != "openmpi":
        raise InputError(f"{path}: a rankfile is Open MPI's; expected a list of hosts ({kind})")
    places = placed(text, path)
    if len(places) != ranks:
        raise InputError(f"{path} places {len(places)} ranks; the case has {ranks}")
    slots = Counter(host for host, _ in places)
    hosts = ",".join(f"{host}:{n}" for host, n in slots.items())
    binding = "core" if len(set(places)) == len(places) else SHARED
    return ["--host", hosts, "--map-by", f"rankfile:file={_without(':', path)}", "--bind-to", binding]


def _without(character: str, path: str) -> str:
    """The path. Raises InputError where Open MPI would cut it in two at this character."""
    if character in path:
        raise InputError(f"{path}: Open MPI takes no host file with '{character}' in its path")
    return path


def _lines(text: str) -> Sequence[str]:
    plain = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in plain if line]
