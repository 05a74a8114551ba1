"""Clock rates, thermal events, and what a node consists of, from planted files."""

import pytest

from fembench.host.host import accelerators, node_facts
from fembench.host.machine_state import UNREADABLE, clock_rate, listed_clock_rate, throttle_events

CPUS = "sys/devices/system/cpu"


@pytest.fixture
def put(files):
    return lambda path, text: files({path: f"{text}\n"})


def test_the_clock_rate_is_the_median_of_the_cpus_asked_for(put, tmp_path):
    for cpu, khz in enumerate((3_000_000, 1_000_000, 2_000_000, 9_000_000)):
        put(f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq", khz)
    assert clock_rate((0, 1, 2), tmp_path) == 2e9
    assert clock_rate((7,), tmp_path) == 0.0


def test_a_listed_clock_rate_is_read_from_cpuinfo(put, tmp_path):
    assert listed_clock_rate(tmp_path) == 0.0
    put("proc/cpuinfo", "cpu MHz\t\t: 2000.5\ncpu MHz\t\t: 2100.5\ncpu MHz\t\t: 2200.5\nflags : x")
    assert listed_clock_rate(tmp_path) == pytest.approx(2.1005e9)


def test_thermal_events_of_a_core_count_once_for_all_its_threads(put, tmp_path):
    assert throttle_events(tmp_path) == UNREADABLE
    for cpu, core in enumerate(("0,2", "1,3", "0,2", "1,3")):
        put(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list", core)
        put(f"{CPUS}/cpu{cpu}/topology/physical_package_id", 0)
        put(f"{CPUS}/cpu{cpu}/thermal_throttle/core_throttle_count", 10 * (cpu % 2) + 1)
        put(f"{CPUS}/cpu{cpu}/thermal_throttle/package_throttle_count", 100)
    assert throttle_events(tmp_path) == 1 + 11 + 100


def test_a_node_has_numa_nodes_cores_and_threads(put, tmp_path):
    assert node_facts(tmp_path).numa_nodes == 1
    for number in (0, 1):
        put(f"sys/devices/system/node/node{number}/cpulist", number)
    put(f"{CPUS}/online", "0-3")
    for cpu in range(4):
        put(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list", f"{cpu % 2},{cpu % 2 + 2}")
    found = node_facts(tmp_path)
    assert (found.numa_nodes, found.physical_cores, found.threads, found.accelerators) == (2, 2, 4, ())


def test_accelerators_are_named_by_their_driver_and_counted_once(put, tmp_path):
    for number in range(2):
        put(f"proc/driver/nvidia/gpus/0000:0{number}:00.0/information", "Model: \t\t NVIDIA H100\nIRQ:   1")
        put(f"sys/class/drm/renderD{128 + number}/device/vendor", "0x10de")
    put("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0")
    put("sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 440\ngfx_target_version 90010")
    put("sys/class/drm/renderD130/device/vendor", "0x8086")
    put("sys/class/drm/renderD130/device/device", "0x56c0")
    put("sys/class/drm/card0/device/vendor", "0x1a03")  # a display without a render node
    assert accelerators(tmp_path) == ("AMD gfx 90010", "Intel device 0x56c0", "2 x NVIDIA H100")


def test_a_machine_without_these_files_has_no_accelerators(tmp_path):
    assert accelerators(tmp_path) == ()
