#!/usr/bin/env bash
# Run the kernels' tests with the compiled modules under AddressSanitizer and UndefinedBehaviorSanitizer: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: scripts/sanitize.sh [PYTEST-ARGUMENTS ...]

Compiles the kernels, the tracer and the MPI calls with -fsanitize=address,undefined into a temporary folder and runs
on these modules the serial and one-rank tests of their rooms, and solves by every method (or the tests named). The
environment and the normal build stay as they are. The last line says how many tests ran and how many findings there were.
Exit status 0: all tests passed and no finding, 1: a finding or a failed test, 3: the modules could not be built.
needs: gcc with its sanitizer libraries (Debian, Ubuntu: libasan and libubsan come with gcc)
TEXT
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    help
    exit 0
fi

# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/environment.sh"
prepare_environment base test
cd "$ROOT" || exit 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CC=gcc
flags="-fsanitize=address,undefined -fno-omit-frame-pointer -g1 -O1 -DCLONES=" # one clone, as this machine runs one

build() {
    cmake -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DPython_EXECUTABLE="$VENV/bin/python" \
        -DCMAKE_C_FLAGS="$flags" -DFEMBENCH_OPTIONS="-fno-math-errno;-fno-trapping-math" &&
        cmake --build "$work/build" && cmake --install "$work/build" --prefix "$work/overlay"
}
say "compiling with $flags ..."
build >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2 && fail "the modules could not be built with sanitizers"; }

# The installed package would come first (its finder stands before all paths): it is taken out of the way.
find fembench -type f ! -name '*.so' ! -name '*.pyc' -print0 | xargs -0 cp --parents -t "$work/overlay"
cat >"$work/overlay/sitecustomize.py" <<'TEXT'
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
TEXT

# libstdc++: the sanitizer asks for its exceptions when it starts. PYTHONMALLOC: each block of Python is guarded too.
preload=""
for library in libasan.so libubsan.so libstdc++.so; do
    preload+="$(readlink -f "$(gcc -print-file-name=$library)") "
done
under_sanitizers() {
    PYTHONPATH=$work/overlay PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 LD_PRELOAD=$preload \
        ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:log_path=$work/report \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:log_path=$work/report "$@"
}
used=$(cd "$work/overlay" && under_sanitizers "$VENV/bin/python" -c \
    'import fembench.kernels._compiled as module; print(module.__file__)') || exit 3
[[ $used == "$work/overlay/"* ]] || fail "the modules under test are not those with sanitizers: $used"

# A finding ends its session, not those of the other folders.
(($# > 0)) || set -- tests/kernels tests/timing tests/ranks tests/solve/test_edges.py \
    tests/solve/test_solve_recurrences.py::test_a_case_chooses_its_recurrence_and_its_work_is_counted
failed=0
for tests in "$@"; do
    printf '\n== %s\n' "$tests"
    under_sanitizers timeout 600 "$VENV/bin/pytest" -W error -p no:cacheprovider -p no:hypothesispytest --no-header -v \
        --color=no "$tests" | tee -a "$work/tests" | grep -vE '(PASSED|SKIPPED).*\[ *[0-9]+%\]$'
    ((PIPESTATUS[0] == 0)) || failed=1
done
shopt -s nullglob
reports=("$work"/report.*)
findings=$(cat "$work/tests" "${reports[@]}" | grep -cE 'runtime error: |ERROR: AddressSanitizer')
((${#reports[@]} == 0)) || cat "${reports[@]}"
printf '\nsanitizers: %s tests ran, %s findings\n' "$(grep -cE ' (PASSED|FAILED|ERROR) ' "$work/tests")" "$findings"
((failed == 0 && findings == 0))
