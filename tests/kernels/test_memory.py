"""Memory of the kernels: what is released serves again, and any thread may ask."""

import subprocess
import sysconfig
from pathlib import Path

import numpy as np

from fembench.kernels.backend import kernels

HERE = Path(__file__).parent
KERNELS = HERE.parents[1] / "fembench/kernels"


def test_threads_that_allocate_at_once_never_hold_the_same_memory(tmp_path):
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    sources = (HERE / "memory_threads.c", KERNELS / "memory.c")
    program = tmp_path / "threads"
    subprocess.run([compiler, "-O2", "-pthread", f"-I{KERNELS}", *sources, "-o", program], check=True)
    assert subprocess.run([program], timeout=60).returncode == 0


def test_blocks_of_all_sizes_are_aligned_and_hold_what_is_written():
    for n in (1, 7, 2**15, 2**18 - 8, 2**18, 2**18 + 1, 3 * 2**18):
        arrays = [kernels.zeros(n) for _ in range(10)]
        for k, a in enumerate(arrays):
            assert a.ctypes.data % 64 == 0
            a[:] = k
        assert all((a == k).all() for k, a in enumerate(arrays))
        del arrays
    assert kernels.empty(0).size == 0
    assert kernels.empty((3, 0, 2), np.int32).shape == (3, 0, 2)
