"""Which ranks share a host, and which hosts share a machine.

A host is identified by its name and by the boot of its kernel: machines may share a
name ("localhost"), and labs or containers have several on one machine.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fembench.host.cgroup import ROOT, read

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm

Key = tuple[str, str]  # a host: its name, and its machine's


def machine_key(root: Path = ROOT) -> str:
    """The same for all processes under one kernel; failing that, the host's name."""
    return read(root / "proc/sys/kernel/random/boot_id") or platform.node()


def host_key() -> Key:
    """The same for all processes on one host."""
    return platform.node(), machine_key()


def distinct_names(keys: Sequence[Key]) -> list[str]:
    """A name for each host, one for each key: a second host of one name is 'name-2'."""
    names: dict[Key, str] = {}
    taken = {name for name, _ in keys}
    for key in dict.fromkeys(keys):
        free = (f"{key[0]}-{number}" for number in itertools.count(2))
        names[key] = key[0] if key[0] not in names.values() else next(n for n in free if n not in taken)
        taken.add(names[key])
    return [names[key] for key in keys]


def host_names(comm: Comm) -> list[str]:
    """[rank] -> name of its host, unique in this job. Collective."""
    return distinct_names(comm.allgather(host_key()))
