"""Energy counters of planted machines: exact joules, wraps, and why there are none."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fembench.host import energy
from fembench.host.energy import EnergyMeter, check_energy, energy_facts, energy_meter, sources
from fembench.ranks.comm import alone
from fembench.records.record import NO_JOULES

POWERCAP = "sys/class/powercap"
TOP = 262_143_328_850  # max_energy_range_uj of a server: 2**32 - 1 units of 61.04 microjoules
UNIT = 61


def zone(number, name, count, top=TOP):
    folder = f"{POWERCAP}/intel-rapl:{number}"
    return {
        f"{folder}/name": f"{name}\n",
        f"{folder}/energy_uj": f"{count}\n",
        f"{folder}/max_energy_range_uj": f"{top}\n",
    }


def two_packages(first=0, second=0, dram=0, rest=0):
    """The zones of two packages, one with memory, and zones that are parts of others: `rest`."""
    return {
        **zone("0", "package-0", first),
        **zone("0:0", "core", rest),
        **zone("0:1", "dram", dram),
        **zone("1", "package-1", second),
        **zone("1:0", "uncore", rest),
        **zone("2", "psys", rest),
        **{k.replace("rapl:0", "rapl-mmio:0"): v for k, v in zone("0", "package-0", rest).items()},
    }


class Machine:
    """A meter of planted files, and its clock."""

    def __init__(self, files, tree, nvml=None):
        self.files, self.now = files, 100.0
        found = sources(files(tree), nvml)
        counters = [counter for one in found for counter in one.counters]
        self.meter = EnergyMeter(energy_facts(found), counters, lambda: self.now)

    def after(self, seconds, tree):
        self.now += seconds
        self.files(tree)
        return self.meter.lap()


def test_packages_and_their_memory_are_added_and_what_contains_or_repeats_them_is_not(files):
    machine = Machine(files, two_packages(1_000_000, 2_000_000, 3_000_000, rest=5))
    assert machine.meter.facts.includes == ("package-0", "dram of package-0", "package-1")
    assert machine.after(1.0, two_packages(11_000_001, 22_000_000, 3_500_000, rest=900_000_000)) == 30.500001
    assert machine.after(1.0, two_packages(11_000_001, 22_000_000, 3_500_000)) == 0.0


def test_a_wrap_of_one_package_costs_no_microjoule(files):
    machine = Machine(files, two_packages(TOP - 4_000_000, 1_000_000))
    # 4 J to the top, one unit to 0, 3 J on; the other package used 2 J
    assert machine.after(1.0, two_packages(3_000_000, 3_000_000)) == 9 + UNIT * 1e-6
    assert machine.after(1.0, two_packages(4_000_000, 3_000_000)) == 1.0


def test_many_sets_with_a_wrap_every_so_often_add_up_to_what_was_used(files):
    period, used, total = TOP + UNIT, 70_000_000_003, 0
    machine = Machine(files, two_packages())
    laps = [machine.after(100.0, two_packages(k * used % period)) for k in range(1, 21)]
    total = sum(round(lap * 10**6) for lap in laps)
    assert total == 20 * used
    assert 20 * used // period == 5  # wraps


def test_readings_so_far_apart_that_two_wraps_are_possible_give_no_energy(files):
    """A package below 1 kW takes 262 s for a wrap."""
    machine = Machine(files, zone("0", "package-0", 0))
    assert machine.after(262.0, zone("0", "package-0", 5_000_000)) == 5.0
    assert machine.after(263.0, zone("0", "package-0", 9_000_000)) == NO_JOULES
    assert machine.after(1.0, zone("0", "package-0", 10_000_000)) == 1.0


def test_a_counter_that_vanishes_and_returns_spoils_the_two_sets_beside_it(files, tmp_path):
    machine = Machine(files, two_packages())
    file = tmp_path / POWERCAP / "intel-rapl:1/energy_uj"
    file.unlink()
    assert machine.meter.lap() == NO_JOULES
    assert machine.after(1.0, two_packages(1_000_000, 50_000_000)) == NO_JOULES
    assert machine.after(1.0, two_packages(1_500_000, 50_000_000)) == 0.5


def test_a_file_with_no_number_is_a_missing_reading(files):
    machine = Machine(files, two_packages())
    assert machine.after(1.0, {f"{POWERCAP}/intel-rapl:0/energy_uj": ""}) == NO_JOULES


@pytest.fixture
def locked(monkeypatch):
    """Files named energy_uj that only the administrator may read."""
    text = Path.read_text

    def refuse(path, *arguments, **named):
        if path.name == "energy_uj" and "rapl:1" in str(path):
            raise PermissionError(13, "Permission denied")
        return text(path, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", refuse)


@pytest.mark.usefixtures("locked")
def test_without_the_right_to_read_one_package_nothing_is_counted_and_the_remedy_is_named(files):
    found = sources(files(two_packages()))
    facts = energy_facts(found)
    assert (facts.reader, facts.includes, facts.why) == ("", (), "RAPL: only root may read the counters")
    line = check_energy(files({}))
    assert (line.status, line.found) == ("missing (optional)", f"not readable: {facts.why}")
    assert "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" in line.advice
    assert EnergyMeter(facts).lap() == NO_JOULES


def test_a_machine_without_counters_says_so_and_nothing_fails(tmp_path):
    line = check_energy(tmp_path)
    assert (line.status, line.found) == ("ok", energy.NONE)
    meter = energy_meter(alone(), tmp_path)
    assert (meter.facts.reader, meter.facts.why, meter.lap()) == ("", energy.NONE, NO_JOULES)


def test_zones_that_a_container_hides_are_named(files):
    line = check_energy(files({f"{POWERCAP}/intel-rapl:0/name": ""}))
    assert (line.found, line.advice) == (f"not readable: RAPL: {energy.HIDDEN}", energy.SHOW)


def test_the_meter_of_a_job_reads_the_files_of_its_machine(files):
    meter = energy_meter(alone(), files(two_packages(7_000_000)))
    files(two_packages(7_000_400))
    assert (meter.facts.reader, meter.lap()) == ("RAPL", 0.0004)


def test_a_counter_of_the_node_is_used_alone(files):
    tree = two_packages() | {
        "sys/cray/pm_counters/energy": "1000 J 1700000000000000 us\n",
        "sys/cray/pm_counters/raw_scan_hz": "5\n",
    }
    machine = Machine(files, tree)
    facts = machine.meter.facts
    assert (facts.reader, facts.includes, facts.updates, facts.unit) == ("pm_counters", ("node",), 0.2, 1.0)
    later = {"sys/cray/pm_counters/energy": "1250 J 1700000001000000 us\n"}
    assert machine.after(1.0, two_packages(10**9) | later) == 250.0


class FakeNvml:
    """pynvml, of two GPUs, in millijoules."""

    NVMLError = type("NVMLError", (Exception,), {})

    def __init__(self, *spent):
        self.spent = list(spent)
        self.nvmlInit = lambda: None
        self.nvmlDeviceGetCount = lambda: len(self.spent)
        self.nvmlDeviceGetHandleByIndex = lambda k: k

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if self.spent[handle] is None:
            raise self.NVMLError("Not Supported")
        return self.spent[handle]


def test_gpus_are_added_to_the_packages(files):
    gpus = FakeNvml(500, 2000)
    machine = Machine(files, two_packages(), gpus)
    gpus.spent = [1500, 2250]
    assert machine.after(1.0, two_packages(250_000)) == 1.5
    assert machine.meter.facts.reader == "RAPL, NVML"
    assert machine.meter.facts.updates == 0.1
    gpus.spent[1] = 0  # its driver was loaded again
    assert machine.meter.lap() == NO_JOULES
    gpus.spent[1] = None
    assert machine.meter.lap() == NO_JOULES


def test_a_gpu_without_a_counter_is_named_with_the_reason(files):
    facts = energy_facts(sources(files(two_packages()), FakeNvml(1, None)))
    assert (facts.reader, facts.why) == ("RAPL", "NVML: GPU 1: Not Supported")
    line = energy.finding(facts)
    assert line.status == "missing (optional)"
    assert line.found.startswith(
        "RAPL: package-0, dram of package-0, package-1; updated every 1 ms; not read"
    )


def lacking(name):
    raise ImportError(name)


def test_gpus_of_nvidia_without_their_package_are_named(files, monkeypatch):
    monkeypatch.setattr(energy, "importlib", SimpleNamespace(import_module=lacking))
    facts = energy_facts(sources(files({"proc/driver/nvidia/version": "x"})))
    assert (facts.why, facts.ask) == ("NVML: nvidia-ml-py is not installed", energy.ASK_GPU)


def test_sockets_of_the_older_driver_of_amd_count_where_rapl_does_not(files):
    chip = "sys/class/hwmon/hwmon3"
    tree = {
        f"{chip}/name": "amd_energy\n",
        f"{chip}/energy1_label": "Ecore000\n",
        f"{chip}/energy1_input": "1\n",
        f"{chip}/energy2_label": "Esocket0\n",
        f"{chip}/energy2_input": "1000000\n",
        "sys/class/hwmon/hwmon4/name": "xe\n",
        "sys/class/hwmon/hwmon4/energy1_input": "0\n",
        "sys/class/hwmon/hwmon4/energy2_input": "0\n",
    }
    machine = Machine(files, tree)
    assert machine.meter.facts.includes == ("Esocket0", "GPU of hwmon4 (xe)")
    later = {
        f"{chip}/energy1_input": "999999\n",
        f"{chip}/energy2_input": "3000000\n",
        "sys/class/hwmon/hwmon4/energy1_input": "500000\n",
        "sys/class/hwmon/hwmon4/energy2_input": "400000\n",
    }
    assert machine.after(1.0, later) == 2.5
    beside = energy_facts(sources(files(two_packages() | tree)))
    assert beside.includes == ("package-0", "dram of package-0", "package-1", "GPU of hwmon4 (xe)")


def test_a_counter_that_was_reset_gives_no_joules_instead_of_kilowatts(files):
    machine = Machine(files, zone("0", "package-0", 200_000_000_000))
    assert machine.after(1.0, zone("0", "package-0", 100)) == NO_JOULES  # as a wrap: 62 kJ in a second
    facts, _ = machine.meter.end()
    assert facts.why == "package-0 began again, or counted more than 1000 W"
    assert machine.after(1.0, zone("0", "package-0", 1_000_000_100)) == 1000.0
    assert machine.after(0.001, zone("0", "package-0", 1_001_900_100)) == 1.9  # up to an update more
    assert machine.after(0.001, zone("0", "package-0", 1_004_000_100)) == NO_JOULES


def test_a_counter_that_stands_still_through_a_run_measures_nothing_and_is_named(files):
    machine = Machine(files, two_packages())
    assert machine.after(9.0, two_packages(5_000_000, dram=1)) == 5.000001
    assert machine.meter.end() == (
        replace(machine.meter.facts, why="package-1 stood still"),
        False,
    )
    assert machine.after(9.0, two_packages(5_000_000, 7, dram=1)) == 7e-6  # the others, in this set alone
    assert machine.meter.end() == (machine.meter.facts, True)
    assert EnergyMeter(machine.meter.facts).end() == (machine.meter.facts, True)  # a rank without counters


@pytest.mark.parametrize("top", ["", "²", "9" * 5000, "-4", "0", "100", "2600000000"])
def test_a_range_that_is_no_number_or_too_small_for_a_processor_is_not_known(files, top):
    """A wrap of 2.6 kJ would take 2.6 s."""
    machine = Machine(files, zone("0", "package-0", 5_000_000, top))
    assert machine.after(1.0, zone("0", "package-0", 9_000_000, top)) == 4.0
    assert machine.after(1.0, zone("0", "package-0", 1, top)) == NO_JOULES
    assert machine.meter.end()[0].why == "package-0 began again"


@pytest.mark.parametrize("rate", ["", "² Hz", "1" + "0" * 400, "0", "99999"])
def test_a_rate_of_updates_that_cannot_be_is_that_of_the_documentation(files, rate):
    tree = {"sys/cray/pm_counters/energy": "5 J 3 us", "sys/cray/pm_counters/raw_scan_hz": rate}
    assert energy_facts(sources(files(tree))).updates == 0.1


@pytest.mark.parametrize("count", ["", "abc", "1.5e6", "-7", "9" * 5000])
def test_a_counter_that_is_no_number_is_quoted_with_what_was_expected(files, count):
    facts = energy_facts(sources(files(zone("0", "package-0", count))))
    assert facts.why.startswith(f"RAPL: package-0: '{count[:60]}")
    assert facts.why.endswith("': expected a whole number")


def test_counters_that_the_user_may_not_even_see_are_asked_for(files, monkeypatch):
    files({"sys/cray/pm_counters/energy": "5 J", "proc/driver/nvidia/version": "x"})
    stat, text = Path.stat, Path.read_text

    def closed(call):
        def refuse(path, *arguments, **named):
            if {"pm_counters", "nvidia"} & set(path.parts):
                raise PermissionError(13, "Permission denied")
            return call(path, *arguments, **named)

        return refuse

    monkeypatch.setattr(Path, "stat", closed(stat))
    monkeypatch.setattr(Path, "read_text", closed(text))
    monkeypatch.setattr(energy, "importlib", SimpleNamespace(import_module=lacking))
    line = check_energy(files({}))
    assert line.found == (
        "not readable: pm_counters: only root may read the counters; NVML: nvidia-ml-py is not installed"
    )
    assert line.advice == f"ask for the right to read /sys/cray/pm_counters; {energy.ASK_GPU}"
