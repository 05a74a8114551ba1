#!/usr/bin/env bash
# Install what is missing, then check format, lint and types and run all tests: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: tests/run.sh                       run everything: format, lint, types, the serial tests, the MPI tests on
                                          1, 2, 3 and 4 ranks, the quick serial tests again under python -O
       tests/run.sh --lint                run format, lint and types only
       tests/run.sh --quick               run these, and the serial tests of most rooms, in 90 seconds; says what it leaves out
       tests/run.sh PYTEST-ARGUMENTS ...  run only the selected tests, serially and on 1 to 4 ranks:
                                          tests/run.sh tests/mesh -k box
A serial test that fails is run once more; those that pass then are named as unsteady, and more than three of them are a failure.
The last line says 'N passed, N failed'. The exit status is 0 if nothing failed.
settings: FEMBENCH_WITH_PETSC=1   compile and install PETSc first (once, 10 to 20 minutes), so that its tests run
  FEMBENCH_WITH_OPENCL=1          install pyopencl and pocl, so that the tests of devices run
  FEMBENCH_WITH_PEERS=1           install scikit-fem and pyamg, so that the comparisons with them run
  FEMBENCH_WITH_EXPORTS=1         install what exports are written and read with, so that each is loaded by its reader
  FEMBENCH_TEST_RANKS="1 2"       numbers of ranks for the MPI tests (default: 1 2 3 4)
  FEMBENCH_TEST_WORKERS=N         worker processes for the serial tests (default: 3); 0: no extra process
  FEMBENCH_TEST_LIMIT=180         time limit of one test, in seconds
  FEMBENCH_ALLOWED_SKIPS=FILE     patterns, one per line; a skipped test that matches none counts as failed
  FEMBENCH_VENV, FEMBENCH_PYTHON, FEMBENCH_MPI   as for run_bench.sh
TEXT
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    help
    exit 0
fi

# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/environment.sh"
prepare_environment base test ${FEMBENCH_WITH_PEERS:+peers} ${FEMBENCH_WITH_OPENCL:+opencl} ${FEMBENCH_WITH_PETSC:+petsc} \
    ${FEMBENCH_WITH_EXPORTS:+exports}
# shellcheck source=tests/sessions.sh
source "$ROOT/tests/sessions.sh"

WORKERS=${FEMBENCH_TEST_WORKERS:-3} # of serial tests also on two cores, because jobs wait
BUSY=$((WORKERS < 2 ? WORKERS : 2)) # of tests that do not
read -ra RANKS <<<"${FEMBENCH_TEST_RANKS:-1 2 3 4}"

if [[ $# == 0 || $1 == --lint || $1 == --quick ]]; then
    check "ruff format" ruff format --check .
    check "ruff check" ruff check .
    (($# == 0)) || check "mypy" mypy
fi
if [[ ${1:-} == --lint ]]; then
    report
    exit
elif [[ ${1:-} == --quick ]]; then
    # left out: the rooms in which most tests start jobs or commands
    left_out=(balance bench characterize cli launch peers synthetic test_mutations.py test_setup.py test_shared_installation.py)
    session "quick serial tests" python -W error -m pytest -q -n "$WORKERS" --dist loadfile --max-worker-restart 1 \
        -m "not mpi and not alone and not slow" tests "${left_out[@]/#/--ignore=tests/}"
    printf '\nleft out: %s; tests on several ranks, slow ones, and those that run alone\n' "studies ${left_out[*]/#/tests/}"
    report
    exit
fi
if (($# == 0)); then
    # beside the types, which take one core. Assertions only narrow types (tests/test_architecture.py checks that), so a few
    # rooms represent all
    exec {types}< <(mypy 2>&1)
    mypy=$!
    session "quick serial tests under python -O" python -O -W error -m pytest -p no:cacheprovider -n "$BUSY" --dist loadfile \
        --max-worker-restart 1 -m "not mpi and not slow" -W "ignore:assertions not in test modules:pytest.PytestConfigWarning" \
        tests/base tests/records tests/weights
    finished() { cat <&"$types" && wait "$mypy"; }
    check "mypy" finished
fi
# tests that measure time run afterwards, alone
# (a worker that hangs or crashes is replaced once: pytest-xdist gives its successors the same test, for ever)
session "serial tests" python -W error -m pytest "${AGAIN[@]}" -n "$WORKERS" --dist loadfile --no-loadscope-reorder \
    --max-worker-restart 1 --durations 20 --durations-min 3 -m "not mpi and not alone" "$@"
session "serial tests that run alone" python -W error -m pytest -q --no-header "${AGAIN[@]}" "${LEAN[@]}" \
    -m "not mpi and alone" "$@"
for n in "${RANKS[@]}"; do
    if ((n == 1)); then # a process without a launcher is one rank
        session "MPI tests on 1 rank" python -W error -m pytest -q --no-header -n "$BUSY" --dist loadfile \
            --max-worker-restart 1 -p no:cacheprovider "${LEAN[@]}" -m mpi "$@"
    else
        mpi_session "$n" "$@"
    fi
done
report
