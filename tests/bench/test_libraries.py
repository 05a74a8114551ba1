"""No phase of a run contains an import."""

import json
import subprocess
import sys

import pytest

from fembench.mesh.box import box
from fembench.mesh.io import write

# Runs a case on one rank and prints what was imported while a span was open.
PROGRAM = """
import sys
from fembench.bench import case_run
from fembench.launch.job import Job
from fembench.ranks.comm import world
from fembench.records.case import Case
import json

tracers, found = [], []
made = case_run.make_tracer
def keep(*arguments):
    tracers.append(made(*arguments))
    return tracers[-1]
case_run.make_tracer = keep

class Watch:
    def find_spec(self, name, path=None, target=None):
        if tracers and tracers[0].depth:
            found.append(name)

sys.meta_path.insert(0, Watch())
case = Case.of(ranks=1, sets=2, warmups=1, **json.loads(sys.argv[1]))
case_run.run_case(world(), Job(case=case, id="x", command="", launcher=""), 0.0)
print(json.dumps(found))
"""


def imported(**case):
    """Modules imported inside a phase of a run, in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(case)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        {"mesh": "m1", "problem": "manufactured", "storage": "ebe", "precond": "two-level"},
        {"mesh": "m1", "precond": "multigrid", "recurrence": "pipelined"},
        {"mesh": "box:4x3x2:hex8", "partitioner": "blocks", "storage": "csr"},
    ],
    ids=lambda case: " ".join(case.values()),
)
def test_no_phase_of_a_run_contains_an_import(case):
    assert imported(**case) == []


@pytest.mark.slow
def test_reading_a_mesh_file_does_not_contain_the_import_of_its_library(tmp_path):
    write(box((4, 3, 2)), tmp_path / "box.vtu")
    assert imported(mesh=str(tmp_path / "box.vtu")) == []


NOT_OF_A_RANK = {
    *("asyncio", "bz2", "concurrent", "difflib", "email", "importlib.metadata", "json", "logging", "lzma"),
    *("multiprocessing", "random", "shutil", "statistics", "subprocess", "tempfile", "unittest"),
    *("jinja2", "matplotlib", "meshio", "pandas", "petsc4py", "pymetis", "pyopencl", "cupy", "scipy"),
    *("numpy.fft", "numpy.ma", "numpy.polynomial", "numpy.random", "numpy.testing"),
    *("fembench.balance", "fembench.characterize", "fembench.cli", "fembench.device", "fembench.model"),
    *("fembench.peers", "fembench.report", "fembench.weights", "fembench.workflows"),
    *("fembench.solve.coarse", "fembench.solve.levels", "fembench.solve.multigrid", "fembench.solve.petsc"),
}


def test_a_rank_does_not_import_what_a_plain_run_does_not_need():
    code = (
        "import sys, mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; import numpy, msgspec\n"
        "before = set(sys.modules); import fembench.bench.case_run; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = done.stdout.split()
    assert "fembench.kernels.backend" in found
    assert [name for name in found if name in NOT_OF_A_RANK] == []


def test_the_classes_of_a_rank_are_made_without_generating_code():
    """A dataclass takes a millisecond to define, a Struct a twentieth of one."""
    code = (
        "import sys, dataclasses, mpi4py; mpi4py.rc.initialize = False; import fembench.bench.case_run\n"
        "ours = [vars(module) for name, module in sys.modules.items() if name.startswith('fembench.')]\n"
        "classes = {x for names in ours for x in names.values() if isinstance(x, type)}\n"
        "found = [x for x in classes if x.__module__[:8] == 'fembench' and dataclasses.is_dataclass(x)]\n"
        "print(*sorted(x.__name__ for x in found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Mesh", "Option"]  # what a Struct cannot express


@pytest.mark.parametrize(
    ("rank", "placement", "loaded"),
    [(0, {}, True), (1, {}, False), (1, {"replicated": True}, True), (0, {"partitioner": "rcb"}, False)],
)
def test_metis_is_loaded_on_the_ranks_that_partition_before_their_clock_runs(rank, placement, loaded):
    program = (
        "import sys; from fembench.bench.case_run import load_libraries;"
        "from fembench.records.case import Case;"
        f"load_libraries(Case.of(mesh='m1', ranks=2, **{placement}), {rank}); print('pymetis' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(loaded)
