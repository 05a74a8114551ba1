"""What every rank of a job runs: `python -m fembench.launch.rank_start MODULE FOLDER`.

It connects to the witness of the job before MPI is imported and initialised: a rank
that dies in there leaves the others waiting for it, under some libraries for minutes.
"""

import fembench.launch.begun  # noqa: F401, I001  (start-up is counted from here)

import importlib
import os
import platform
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from fembench.base.errors import FembenchError, shown
from fembench.launch.witness import RankLine, witness_in

RANK = (  # variables of launchers; in the environment of another job, a launcher may leave one of the last
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)


def rank_given(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that this process will be, as its launcher says; None if it says nothing."""
    return next((int(text) for name in RANK if (text := environment.get(name, "")).isdecimal()), None)


def main(module: str, folder: str) -> int:
    """Run the PROGRAM of a module on this rank; see `serve.py`. Collective."""
    line = RankLine(witness_in(Path(folder)), rank_given())
    try:
        program = importlib.import_module(module).PROGRAM  # imports MPI, as does the next line
        from fembench.launch.serve import serve
    except (ImportError, RuntimeError, FembenchError) as error:  # RuntimeError: mpi4py without an MPI
        traceback.print_exc()
        rank, host = rank_given() or 0, platform.node()
        print(f"fembench: rank {rank} on {host} raised InputError: {_in_one_line(error)}", file=sys.stderr)
        return 2
    return serve(program, folder, line)


def _in_one_line(error: Exception) -> str:
    """What this host cannot load."""
    if isinstance(error, FembenchError):
        return str(error)
    cause: BaseException = error
    while cause.__cause__:
        cause = cause.__cause__
    return (
        f"host {platform.node()} cannot load what every rank needs ({shown(cause, 300)}): "
        "leave this host out, or install there what it lacks"
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
