"""Heterogeneous Slurm jobs: one line that starts ranks on several of their components."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.launch.hostfile import HostSlots
from fembench.launch.job_hosts import Allocation
from fembench.launch.launchers import SETTINGS, Launcher, absent, recognised
from fembench.launch.line import JobLine, one_part, selecting


def across_components(
    program: str, launcher: Launcher, runs: Sequence[HostSlots], options: Sequence[str], where: Allocation
) -> JobLine:
    """Ranks on several components of a heterogeneous Slurm job: one part of an srun line for each."""
    if not launcher.component:
        program, launcher = _srun_instead(program, launcher, where.source)
    parts: list[tuple[str, ...]] = []
    files: list[str] = []
    for group in dict.fromkeys(run.component for run in runs):
        own = [run for run in runs if run.component == group]
        select = [word.replace("{group}", str(group)) for word in launcher.component]
        select += selecting(launcher, own)
        ranks = sum(run.slots for run in own)
        part = one_part(program, launcher, ranks, select, absent(launcher.bound, options), options)
        parts.append(part[1:] if parts else part)
        files.append(launcher.host_file(own))
    return JobLine(launcher, tuple(parts), tuple(files))


def _srun_instead(program: str, launcher: Launcher, where: str) -> tuple[str, Launcher]:
    """srun, for a job that this launcher cannot start. Raises InputError if the user chose the launcher."""
    srun = shutil.which("srun")
    if srun and not os.environ.get(SETTINGS["launcher"]):
        return srun, recognised(srun)
    how = "type the same command with --launcher srun" if srun else "srun, which can, is not on PATH"
    raise InputError(
        f"{where}: {Path(program).name} ({launcher.name}) cannot start ranks on several components of a "
        f"heterogeneous job: {how}, or ask for hosts in one component (salloc -N3 -n6, without a colon)"
    )
