"""Refuses to start a job from within a rank of another."""

import os
from collections.abc import Mapping

from fembench.base.errors import InputError

_SLURM_STEPS = 0xFFFFFFF0  # from here on, Slurm's own steps: batch script, interactive shell


def check_not_a_step(environment: Mapping[str, str] = os.environ) -> None:
    """Raises InputError if srun or mpiexec started this process, which starts jobs itself."""
    step = environment.get("SLURM_STEP_ID", "")
    if step.isdecimal() and int(step) < _SLURM_STEPS:
        job = environment.get("SLURM_JOB_ID", "?")
        raise InputError(
            f"fembench was started by srun (step {job}.{step}), but it starts the "
            "ranks itself: type the command without srun inside salloc, or in a script for sbatch"
        )
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"):
        if environment.get(name, "").isdecimal():
            raise InputError(
                f"fembench was started by an MPI launcher ({name} is set), but it starts the ranks itself: "
                "type the command without mpiexec, with --ranks"
            )
