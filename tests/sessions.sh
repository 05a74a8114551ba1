# shellcheck shell=bash
# What tests/run.sh and tests/other_mpi.sh share. Source it after scripts/environment.sh, run sessions, end with `report`.

# tests run more ranks than cores: waiting ranks must yield (Open MPI), and no rank is bound (Open MPI, Intel MPI)
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
export I_MPI_PIN=off

# Byte code is kept, whatever the environment says. Without it some thousand processes, and every rank of a session, would
# each compile all modules again.
unset PYTHONDONTWRITEBYTECODE

cd "$ROOT" || exit 3
tally=$(mktemp)
trap 'rm -f "$tally"' EXIT
export FEMBENCH_TEST_TALLY=$tally
color=no # under mpiexec pytest sees a terminal where there is none
[[ ! -t 1 ]] || color=yes

total() { awk -v word="$1" '$1 == word { n += $2 } END { print n + 0 }' "$tally"; }

# A test that fails is run once more: it may start a job that a busy machine refuses, or measure one. Those that pass then are
# named; more than three of them are a failure. Not under mpiexec, where all ranks would have to agree.
AGAIN=(--reruns 1 --reruns-delay 2)
UNSTEADY=3

# Sessions without a test of hypothesis do not load its plugin, which takes every rank a second and a half.
LEAN=(-p no:hypothesispytest)

# check NAME COMMAND...: a check that counts as one
check() {
    printf '\n== %s\n' "$1"
    if "${@:2}"; then echo "passed 1" >>"$tally"; else printf "failed 1\nfailure '%s' did not pass\n" "$1" >>"$tally"; fi
}

# session NAME COMMAND...: a pytest session, which adds its own counts; one that crashes counts as a failure
session() {
    local status before
    before=$(total failed)
    printf '\n== %s\n' "$1"
    timeout 1200 "${@:2}"
    status=$?
    ((status == 0 || status == 5 || $(total failed) > before)) || # 5: nothing was selected
        printf "failed 1\nfailure '%s' broke down with status %s\n" "$1" "$status" >>"$tally"
}

# mpi_session RANKS PYTEST-ARGUMENT...
mpi_session() {
    session "MPI tests on $1 rank(s)" mpiexec -n "$1" python -W error -m pytest -q --no-header --color=$color \
        -p no:cacheprovider "${LEAN[@]}" -m mpi "${@:2}"
}

# The last line, 'N passed, N failed', after the skipped, unsteady and failed tests; its status is that of the script.
report() {
    local skipped unsteady
    skipped=$(grep '^skipped' "$tally" | sort -u)
    if [[ -n ${FEMBENCH_ALLOWED_SKIPS:-} ]]; then
        while IFS= read -r line; do
            printf 'failed 1\nfailure must not be skipped here: %s\n' "${line#skipped }" >>"$tally"
        done < <(grep -vE -f <(grep -vE '^(#|$)' "$FEMBENCH_ALLOWED_SKIPS") <<<"$skipped" | grep .)
    elif [[ -n $skipped ]]; then
        printf '\n%s\n' "$skipped"
    fi
    echo
    unsteady=$(grep -c '^unsteady ' "$tally")
    ((unsteady <= UNSTEADY)) || printf 'failed 1\nfailure %d tests are unsteady, at most %d may be\n' "$unsteady" "$UNSTEADY" >>"$tally"
    grep -E '^(unsteady|failure) ' "$tally"
    printf '%s passed, %s failed\n' "$(total passed)" "$(total failed)"
    (($(total failed) == 0))
}
