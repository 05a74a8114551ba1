"""Refuses to start a job from within a rank of another."""

import os
from collections.abc import Mapping

from fembench.base.errors import CopyError
from fembench.launch.rank_start import rank_given

_SLURM_STEPS = 0xFFFFFFF0  # from here on, Slurm's own steps: batch script, interactive shell


def check_not_a_step(environment: Mapping[str, str] = os.environ) -> None:
    """Raises CopyError if srun or mpiexec started this process, which starts jobs itself."""
    first = rank_given(environment) in (None, 0)
    step = environment.get("SLURM_STEP_ID", "")
    if step.isdecimal() and int(step) < _SLURM_STEPS:
        job = environment.get("SLURM_JOB_ID", "?")
        raise CopyError(
            f"fembench was started by srun (step {job}.{step}), but it starts the "
            "ranks itself: type the command without srun inside salloc, or in a script for sbatch",
            first=first,
        )
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"):
        if environment.get(name, "").isdecimal():
            raise CopyError(
                f"fembench was started by an MPI launcher ({name} is set), but it starts the ranks itself: "
                "type the command without mpiexec, with --ranks",
                first=first,
            )
