#!/usr/bin/env bash
# Install what is missing, then check format, lint and types and run all tests: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: tests/run.sh                       run everything: format, lint, types, the serial tests, the MPI tests on
                                          1, 2, 3 and 4 ranks, the quick serial tests again under python -O
       tests/run.sh PYTEST-ARGUMENTS ...  run only the selected tests, serially and on 1 to 4 ranks:
                                          tests/run.sh tests/mesh -k box
The last line says 'N passed, N failed'. The exit status is 0 if nothing failed.
settings: FEMBENCH_WITH_PETSC=1   compile and install PETSc first (once, 10 minutes), so that its tests run
  FEMBENCH_WITH_PEERS=1           install scikit-fem and pyamg, so that the comparisons with them run
  FEMBENCH_TEST_RANKS="1 2"       numbers of ranks for the MPI tests (default: 1 2 3 4)
  FEMBENCH_TEST_WORKERS=N         worker processes for the serial tests (default: 2); 0: no extra process
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
prepare_environment base test ${FEMBENCH_WITH_PEERS:+peers} ${FEMBENCH_WITH_PETSC:+petsc}

# tests run more ranks than cores, and waiting ranks must yield (Open MPI 4, 5; MPICH needs no setting)
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none

cd "$ROOT" || exit 3
tally=$(mktemp)
trap 'rm -f "$tally"' EXIT
export FEMBENCH_TEST_TALLY=$tally
color=no # under mpiexec pytest sees a terminal where there is none
[[ ! -t 1 ]] || color=yes
WORKERS=${FEMBENCH_TEST_WORKERS:-2}
read -ra RANKS <<<"${FEMBENCH_TEST_RANKS:-1 2 3 4}"

total() { awk -v word="$1" '$1 == word { n += $2 } END { print n + 0 }' "$tally"; }

# check NAME COMMAND...: a check that counts as one
check() {
    printf '\n== %s\n' "$1"
    if "${@:2}"; then echo "passed 1" >>"$tally"; else echo "failed 1" >>"$tally"; fi
}

# session NAME COMMAND...: a pytest session, which adds its own counts; one that crashes counts as a failure
session() {
    local status before
    before=$(total failed)
    printf '\n== %s\n' "$1"
    timeout 1200 "${@:2}"
    status=$?
    ((status == 0 || status == 5 || $(total failed) > before)) || # 5: nothing was selected
        { echo "failed 1" >>"$tally" && echo "'$1' broke down with status $status"; }
}

if (($# == 0)); then
    check "ruff format" ruff format --check .
    check "ruff check" ruff check .
    check "mypy" mypy
fi
# on two workers, because half of the time jobs wait; tests that measure time run afterwards, alone
session "serial tests" python -W error -m pytest -n "$WORKERS" --dist loadfile -m "not mpi and not alone" "$@"
session "serial tests that run alone" python -W error -m pytest -q --no-header -m "not mpi and alone" "$@"
for n in "${RANKS[@]}"; do
    session "MPI tests on $n rank(s)" mpiexec -n "$n" python -W error -m pytest -q --no-header --color=$color \
        -p no:cacheprovider -m mpi "$@"
done
if (($# == 0)); then
    # assertions only narrow types (tests/test_architecture.py checks that), so a few rooms represent all
    session "quick serial tests under python -O" python -O -W error -m pytest -p no:cacheprovider -n "$WORKERS" --dist loadfile \
        -m "not mpi and not slow" -W "ignore:assertions not in test modules:pytest.PytestConfigWarning" \
        tests/base tests/records tests/solve tests/weights tests/cli
fi

skipped=$(grep '^skipped' "$tally" | sort -u)
if [[ -n ${FEMBENCH_ALLOWED_SKIPS:-} ]]; then
    while IFS= read -r line; do
        echo "failed 1" >>"$tally"
        echo "must not be skipped here: ${line#skipped }"
    done < <(grep -vE -f <(grep -vE '^(#|$)' "$FEMBENCH_ALLOWED_SKIPS") <<<"$skipped" | grep .)
elif [[ -n $skipped ]]; then
    printf '\n%s\n' "$skipped"
fi
printf '\n%s passed, %s failed\n' "$(total passed)" "$(total failed)"
(($(total failed) == 0))
