"""Provenance: versions, variables, BLAS threads."""

import os
import subprocess
import sys

import pytest

from fembench.host import provenance
from fembench.host.provenance import variables, version_of, versions


def test_versions_name_python_and_what_is_installed():
    found = versions()
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"numpy", "mpi4py", "msgspec", "fembench"} <= set(found)
    assert version_of("no-such-package-at-all") == ""


def test_only_variables_that_matter_are_kept():
    environment = {
        "OMP_NUM_THREADS": "1",
        "OMPI_MCA_btl": "self,tcp",
        "FEMBENCH_LAUNCHER": "srun",
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "3",  # of the launcher's daemons
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_MCA_num_procs": "4",
        "HOME": "/root",
        "FEMBENCH_SECRET": "x",
        "PATH": "/bin",
    }
    kept = ["FEMBENCH_LAUNCHER", "OMPI_MCA_btl", "OMP_NUM_THREADS", "SLURM_JOB_ID"]
    assert list(variables(environment)) == kept


@pytest.mark.parametrize("threads", ["1", "2"])
def test_blas_threads_are_those_that_the_library_uses(threads):
    line = "from fembench.host.provenance import blas_threads; print(blas_threads())"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, env=environment)
    assert (done.stdout.strip(), done.stderr) == (str(min(int(threads), os.cpu_count() or 1)), "")


def test_without_a_library_that_answers_the_environment_does(monkeypatch):
    monkeypatch.setattr(provenance, "blas_libraries", list)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert provenance.blas_threads() == 3
    for name in provenance.THREADS:
        monkeypatch.delenv(name, raising=False)
    assert provenance.blas_threads() == (os.cpu_count() or 1)
