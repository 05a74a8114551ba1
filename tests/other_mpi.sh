#!/usr/bin/env bash
# Run the MPI tests with another MPI library: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: tests/other_mpi.sh PACKAGE                       run the MPI tests with an MPI library from PyPI, mpich or impi-rt:
                                                        those of the rooms that talk to MPI on 2 ranks, fewer on 3, where
                                                        ranks that spin take long, and serial tests of jobs that fail
       tests/other_mpi.sh PACKAGE PYTEST-ARGUMENTS ...  run only the selected tests, serially and on 2 and 3 ranks
The library gets an environment of its own in .venv/mpi; it shares all other packages, the compiled kernels included.
The last line says 'N passed, N failed'. The exit status is 0 if nothing failed.
settings: FEMBENCH_TEST_LIMIT, FEMBENCH_ALLOWED_SKIPS   as for tests/run.sh
  FEMBENCH_VENV, FEMBENCH_PYTHON, FEMBENCH_MPI          as for run_bench.sh
TEXT
}

case ${1:-} in
mpich | impi-rt) ;;
*)
    help
    [[ ${1:-} == -h || ${1:-} == --help ]]
    exit $(($? * 2))
    ;;
esac

# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/environment.sh"
prepare_environment base test
use_mpi "$1"
shift
# shellcheck source=tests/sessions.sh
source "$ROOT/tests/sessions.sh"

jobs=("$@") two=("$@") three=("$@")
if (($# == 0)); then
    jobs=(tests/test_ranks.py tests/bench/test_failures.py)
    for name in heterogeneous_job_runs_across_its_components \
        rank_that_is_killed_on_another_host_ends_the_job_within_ten_seconds; do
        jobs+=("tests/launch/test_slurm.py::test_a_$name")
    done
    # other tests compute what they do with Open MPI: their messages are those of these rooms
    two=(tests/{ranks,launch,balance,bench,characterize} tests/solve/test_solve_recurrences.py studies/tests)
    three=(tests/ranks) # what other rooms send, they send through it
fi
session "serial tests" python -W error -m pytest -q --no-header "${AGAIN[@]}" "${LEAN[@]}" -n 2 --dist loadfile \
    --max-worker-restart 1 -m "not mpi" "${jobs[@]}"
mpi_session 2 "${two[@]}"
mpi_session 3 "${three[@]}"
report
