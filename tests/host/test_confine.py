"""Which of its host's cores a process may be bound to."""

import os
import platform

import pytest

from fembench.base.errors import InputError
from fembench.host.host import confine, own_cores


def test_hardware_threads_of_one_core_count_once(files, tmp_path):
    for cpu, threads in enumerate(("0,2", "1,3", "0,2", "1,3")):
        files({f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": threads})
    assert own_cores((0, 1, 2, 3), tmp_path) == [0, 1]
    assert own_cores((0, 2, 3), tmp_path) == [0, 3]
    assert own_cores((4, 5), tmp_path) == [4, 5]  # nothing is known of them


def test_a_host_with_too_few_cores_is_named():
    before = os.sched_getaffinity(0)
    with pytest.raises(InputError, match=f"{platform.node()}: 10001 cores requested"):
        confine((10000,))
    assert os.sched_getaffinity(0) == before
