"""Which of its host's cores a process runs on, counted from 0 among those that it may use."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.host.cgroup import ROOT
from fembench.host.host import affinity, core_of


def own_cores(usable: Sequence[int], root: Path = ROOT) -> list[int]:
    """One CPU of every physical core among the usable ones: the first hardware thread of each."""
    cores: dict[str, int] = {}
    for cpu in sorted(usable):
        cores.setdefault(core_of(cpu, root), cpu)
    return list(cores.values())


def confine(wanted: Sequence[int]) -> None:
    """Bind this process to these of its usable cores. Raises InputError if there are fewer."""
    cores = own_cores(affinity())
    if max(wanted) >= len(cores):
        raise InputError(
            f"host {platform.node()}: {max(wanted) + 1} cores requested, {len(cores)} usable; "
            "name fewer, as in HOST:CORES"
        )
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores[k] for k in wanted})
