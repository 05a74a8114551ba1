"""A host of a job that cannot load what was installed is named in one line; slow kernels do not stand in."""

import platform
from pathlib import Path

import pytest
from mpi_job import cli

FAULT = Path(__file__).parent / "unloadable"
HOST = platform.node()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("fembench.kernels._compiled", "the compiled module fembench.kernels._compiled ("),
        ("numpy", "what every rank needs ("),
    ],
)
def test_a_rank_whose_host_cannot_load_a_module_ends_the_job_with_one_line(tmp_path, module, said):
    done = cli("run", "m1", "--ranks", "2", "--sets", "1", cwd=tmp_path, PYTHONPATH=FAULT, UNLOADABLE=module)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"fembench: host {HOST} cannot load {said}")
    assert "GLIBC_2.38" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.rglob("*.json"))
