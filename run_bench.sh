#!/usr/bin/env bash
# Install what is missing, then run a campaign of the benchmark and print its report: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: ./run_bench.sh [CAMPAIGN.toml] [--results DIR] [--hostfile FILE] [more options of 'fembench sweep']
       ./run_bench.sh VERB ...        any other verb of fembench: doctor, mesh, run, report, ...

Runs a campaign of the fembench benchmark: builds everything on the first start (under 2 minutes, into .venv),
runs every case of the campaign on real MPI ranks, verifies it, prints the tables and the path of the report.
Without a CAMPAIGN.toml it runs the default campaign: about 2 minutes on 2 cores. Ctrl-C loses nothing:
the same command goes on where it stopped.

  CAMPAIGN.toml      what to run: meshes x storages x ranks x shares; see docs/ and fembench/bench/default.toml
  --results DIR      where records and report go (results/<campaign>/ unless told)
  --hostfile FILE    an MPI host file: run on these machines. Inside a Slurm allocation nothing is needed:
                     the same command, from the batch script or an interactive shell, uses the allocation.

first steps:
  ./run_bench.sh                        the default campaign
  ./run_bench.sh doctor                 what this machine has, and what is missing
  ./run_bench.sh run m1 --ranks 2       one case: 630 equations on two ranks
  ./run_bench.sh sweep --help           every option of a campaign

needs: Python >= 3.10 with venv; a C compiler and Python.h for the fast kernels (Debian, Ubuntu: apt-get install
  python3-venv python3-dev build-essential); the network on the first start. Takes the mpiexec on PATH, else
  Open MPI from PyPI. A machine without a compiler runs the slow reference kernels, and says so.
settings: FEMBENCH_VENV=DIR     another place for the environment than .venv
  FEMBENCH_PYTHON=PYTHON        the Python to make it with
  FEMBENCH_WITH_PETSC=1         also compile and install PETSc, to compare with (10 minutes, once)
  FEMBENCH_MPI=wheel            Open MPI from PyPI even where an mpiexec is on PATH
exit status: 0 good, 1 measured but invalid or failed, 2 something in your input, 3 the installation failed
TEXT
}

case ${1:-} in
-h | --help | help)
    help
    exit 0
    ;;
--version | --completion) ;;
"" | -* | *.* | */*) set -- sweep "$@" ;; # an option or a file: it belongs to a campaign
*) [[ ! -f $1 ]] || set -- sweep "$@" ;;
esac

# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/scripts/environment.sh"
prepare_environment base ${FEMBENCH_WITH_PETSC:+petsc}
exec "$VENV/bin/fembench" "$@"
