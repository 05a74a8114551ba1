"""Clock rate and thermal throttling of processors, where the kernel shows them; virtual machines rarely."""

import re
import statistics
from collections.abc import Collection
from pathlib import Path

from fembench.host.cgroup import ROOT, read
from fembench.host.host import CPUS

KHZ, MHZ = 1e3, 1e6
UNREADABLE = -1  # events, where there are no counters


def clock_rate(cpus: Collection[int], root: Path = ROOT) -> float:
    """The present clock rate in Hz, the median of these CPUs; 0 where cpufreq does not show it."""
    texts = [read(root / CPUS / f"cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus]
    return KHZ * statistics.median([int(text) for text in texts if text.isdigit()] or [0])


def listed_clock_rate(root: Path = ROOT) -> float:
    """The clock rate in Hz that /proc/cpuinfo lists, the median of all CPUs; 0 if it lists none.

    On large hosts the file takes milliseconds to read. Virtual machines list the nominal rate.
    """
    found = re.findall(r"^cpu MHz\s*:\s*([0-9.]+)\s*$", read(root / "proc/cpuinfo"), re.M)
    rates = [float(text) for text in found if text.count(".") < 2 and text != "."]
    return MHZ * statistics.median(rates or [0.0])


def throttle_events(root: Path = ROOT) -> int:
    """Thermal throttling events since boot, over all cores and packages of the host.

    Hardware threads of a core, and cores of a package, repeat one counter. UNREADABLE without counters.
    """
    folders = sorted((root / CPUS).glob("cpu[0-9]*"))
    cores, packages = dict[str, int](), dict[str, int]()
    for folder in folders:
        core = read(folder / "topology/thread_siblings_list") or folder.name
        package = read(folder / "topology/physical_package_id")
        for name, key, known in (("core", core, cores), ("package", package, packages)):
            text = read(folder / f"thermal_throttle/{name}_throttle_count")
            if text.isdigit():
                known[key] = max(int(text), known.get(key, 0))
    if not cores and not packages:
        return UNREADABLE
    return sum(cores.values()) + sum(packages.values())
