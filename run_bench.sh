#!/usr/bin/env bash
# Install what is missing, then run a campaign or any verb of fembench: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: ./run_bench.sh [CAMPAIGN.toml] [options of 'fembench sweep']
       ./run_bench.sh VERB ...     any verb of fembench: doctor, mesh, run, ...
       ./run_bench.sh bundle [DIR] packages for hosts without a network

Installs fembench on the first start (two to three minutes, into .venv), then
hands its arguments to it. Without a verb, it runs a campaign: './run_bench.sh
FILE' is short for './run_bench.sh sweep FILE'. Each case of the campaign runs
on real MPI ranks and is verified; the tables and the path of the report are
printed. Without a CAMPAIGN.toml, it runs the default campaign, made for the
hosts of the job: two to three minutes on two cores. You can stop it at any time
(Ctrl-C): the same command continues where it stopped.

  CAMPAIGN.toml      what to run: meshes x storages x ranks x shares; see
                     docs/howto/campaign.md
  --minutes MINUTES  end after this time: repeat the cases as often as it
                     allows, or leave the last ones out
  --dry-run          list the runs, their hosts and how long they take, and stop
  --results DIR      folder for records and report (default: results/NAME)
  --hostfile FILE    run on the hosts of this host file. Inside a job of Slurm,
                     PBS, LSF, Flux, OAR or Grid Engine it is not needed:
                     fembench uses the hosts of the job. Install on a login
                     node first.

first steps:
  ./run_bench.sh                    the default campaign
  ./run_bench.sh --minutes 10       the same, as often as ten minutes allow
  ./run_bench.sh doctor             what this machine has, and what is missing
  ./run_bench.sh run m --ranks 2    one case: 200 000 equations on two ranks
  ./run_bench.sh sweep --help       every option of a campaign

requirements: Python >= 3.10 with venv; a C compiler and Python.h for the
  kernels (Debian, Ubuntu: apt-get install python3-venv python3-dev
  build-essential); network access on the first start. The mpiexec on PATH is
  used if there is one, else Open MPI is installed from PyPI. Without a
  compiler, nothing is measured, and a line names the missing package. Hosts
  that share the installation need none of these.
settings:
  FEMBENCH_VENV=DIR           put the environment somewhere other than .venv
  FEMBENCH_PYTHON=PYTHON      create it with this Python
  FEMBENCH_WITH_OPENCL=1      also install pyopencl and pocl, OpenCL on
                              processors
  FEMBENCH_WITH_PETSC=1       also compile and install PETSc, for comparison
                              (once, 10 to 20 minutes)
  FEMBENCH_MPI=wheel | path   change the MPI of the installation: Open MPI from
                              PyPI, or the mpiexec on PATH
exit status: 0 good, 1 measured but invalid or failed, 2 an error in your input,
  3 the installation failed
TEXT
}

case ${1:-} in
-h | --help | help)
    help
    exit 0
    ;;
--version | --completion | bundle) ;;
"" | -* | *.* | */*) set -- sweep "$@" ;; # an option or a file: a campaign
*) [[ ! -f $1 ]] || set -- sweep "$@" ;;
esac

# The folder of this script. Batch systems run a copy: the clone is then where the job was submitted, or in the path
# that was submitted.
clone() {
    local here submitted=""
    here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
    if [[ -n ${SLURM_JOB_ID:-} && ! -f $here/scripts/environment.sh ]]; then
        submitted=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null | sed -n 's|^ *Command=\(.*\)/run_bench\.sh.*|\1|p')
    fi
    for here in "$here" "$submitted" "${SLURM_SUBMIT_DIR:-}" "${PBS_O_WORKDIR:-}" "${LS_SUBCWD:-}"; do
        [[ ! -f $here/scripts/environment.sh ]] || { echo "$here" && return; }
    done
    echo "fembench: the batch system runs a copy of run_bench.sh: submit it from its clone (cd CLONE && sbatch run_bench.sh)" >&2
    exit 3
}

here=$(clone) || exit 3
[[ ${1:-} != bundle ]] || exec "$here/packaging/build.sh" "${@:2}"
# shellcheck source=scripts/environment.sh
source "$here/scripts/environment.sh"
prepare_environment base ${FEMBENCH_WITH_OPENCL:+opencl} ${FEMBENCH_WITH_PETSC:+petsc}
exec "$VENV/bin/fembench" "$@"
