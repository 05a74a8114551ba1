"""examples/: the commands of its README.md run with the programs of the system, on the parts of the map."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^### (\w+)\n.*?^```sh\n(.*?)^```", README, re.M | re.S))
THERE = {
    "dolfinx": "python3 -c 'import dolfinx, meshio'",
    "petsc": "python3 -c 'from petsc4py import PETSc'",
    "openfoam": "command -v blockMesh",
}
PLAIN = {
    "PATH": "/usr/bin:/bin",
    "WM_PROJECT_DIR": "/usr/share/openfoam",
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def typed(line, folder):
    """What a command prints: one of fembench in this environment, others in that of the system."""
    words = line.replace("24x24x24", "8x8x8")
    ours = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    variables = ours if words.startswith("fembench") else {**PLAIN, "HOME": str(folder)}
    done = subprocess.run(
        ["bash", "-c", words], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture
def printed(request, tmp_path):
    """What the commands of an example print, in order."""
    name = request.param
    if subprocess.run(["bash", "-c", THERE[name]], env=PLAIN, capture_output=True, check=False).returncode:
        pytest.skip(f"no {name} on this system")
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name)
    for path in folder.rglob("blockMeshDict"):
        path.write_text(path.read_text().replace("n 40;", "n 8;"))
    return [typed(line, folder) for line in BLOCKS[name].splitlines()]


def test_every_example_has_its_commands_or_a_guide():
    assert set(BLOCKS) == set(THERE)
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == set(THERE) | {"reframe", "jube"}
    assert "`reframe` and `jube` run fembench" in README


@pytest.mark.parametrize("printed", ["dolfinx", "petsc"], indirect=True)
def test_a_program_solves_the_same_on_the_parts_of_the_map(printed):
    runs = [re.search(r"cells \[(\d+), (\d+)\] .* energy (\S+) seconds", text) for text in printed[1::2]]
    equal, weighted = ([int(run[1]), int(run[2]), float(run[3])] for run in runs)
    assert equal[0] + equal[1] == sum(weighted[:2]) == 3072
    assert weighted[:2] == pytest.approx([2048, 1024], abs=10)
    assert equal[0] == pytest.approx(1536, rel=0.1)
    assert weighted[2] == pytest.approx(equal[2], rel=1e-5)
    assert equal[2] == pytest.approx(1 / 6, rel=0.01)  # of x - x²/2, over a volume of 1/2


@pytest.mark.parametrize("printed", ["openfoam"], indirect=True)
def test_openfoam_decomposes_by_the_map_and_solves_the_same(printed):
    equal, weighted = (re.findall(r"Number of cells = (\d+)", printed[k]) for k in (3, 6))
    assert [*map(int, equal)] == pytest.approx([256, 256], abs=2)
    assert [*map(int, weighted)] == pytest.approx([341, 171], abs=2)
    solved = [re.findall(r"Initial residual = (\S+),", printed[k])[-1] for k in (4, 7)]
    assert float(solved[0]) == pytest.approx(float(solved[1]), rel=1e-4)
