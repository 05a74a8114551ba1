"""Facts about this host and process that affect the speed of a run (rules C4, D3, E7).

Read from /proc and /sys on Linux. On other systems, facts that Python
does not know are "unknown".
A missing file never raises.

Which of its host's cores a process runs on, counted from 0 among those that it may use.

What a node consists of: NUMA nodes, cores, hardware threads, accelerators (Linux)."""

import os
import platform
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.host import cgroup
from fembench.host.cgroup import ROOT, cpu_set, read
from fembench.records.nodes import NodeFacts
from fembench.records.record import HostFacts
from fembench.timing import certificate

CPUS = Path("sys/devices/system/cpu")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def host_facts(root: Path = ROOT) -> HostFacts:
    """This host now. Steal and throttling are 0: `taken_meter` measures them in a run."""
    quota = cgroup.tightest_quota(root) or (0.0, "")
    return HostFacts(
        name=platform.node(),
        cpu_model=cpu_model(root),
        cores=host_cores(root),
        sockets=sockets(root),
        memory_bytes=memory_bytes(root),
        caches=caches(root),
        governor=governor(root),
        kernel=platform.release(),
        architecture=platform.machine(),
        clocksource=certificate.clocksource(root / certificate.CLOCKSOURCE.relative_to("/")),
        tsc_flags=certificate.tsc_flags(root / certificate.CPUINFO.relative_to("/")),
        huge_pages=huge_pages(root),
        load_average=load_average(),
        cpu_quota=quota[0],
        quota_group=quota[1],
    )


def affinity() -> tuple[int, ...]:
    """CPUs that this process may run on; all of them if the system does not report it."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def usable_cores(root: Path = ROOT) -> int:
    """Cores that processes started here can use at the same time."""
    return _at_once(affinity(), root)


def host_cores(root: Path = ROOT) -> int:
    """Cores that the processes of this job can use at the same time on this host.

    This is not the affinity of one rank, which the launcher may bind to a few of these
    cores. A quota counts in whole CPUs, rounded down: two ranks under a quota of 1.5
    CPUs hold each other up. However small it is, one core remains: a single rank runs
    there, but more slowly (`cpu_quota` of HostFacts).
    """
    return _at_once(job_cpus(root), root)


def job_cpus(root: Path = ROOT) -> tuple[int, ...]:
    """CPUs (hardware threads) that this job may use, even if this process is bound."""
    cpus = cgroup.allowed_cpus(root) or cgroup.cpu_set(read(root / CPUS / "online"))
    return cpus or tuple(range(os.cpu_count() or 1))


def physical_cores(cpus: Collection[int], root: Path = ROOT) -> frozenset[str]:
    """The cores of these CPUs, each named by its CPUs; threads of one core count once."""
    return frozenset(core_of(cpu, root) for cpu in cpus)


def core_of(cpu: int, root: Path = ROOT) -> str:
    """The core of a CPU, named by the CPUs that share it."""
    return _siblings(cpu, root) or str(cpu)


def first_cpus(cores: Collection[str]) -> tuple[int, ...]:
    """The first CPU of each of these cores, which names it in a record."""
    return tuple(sorted(cgroup.cpu_set(core)[0] for core in cores))


def numa_nodes(root: Path = ROOT) -> dict[int, tuple[int, ...]]:
    """{NUMA node that has CPUs: those CPUs}; {} where unknown."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    found = {int(folder.name[4:]): cgroup.cpu_set(read(folder / "cpulist")) for folder in folders}
    return {node: found[node] for node in sorted(found) if found[node]}


def numa_node(cpus: Collection[int], root: Path = ROOT) -> int:
    """The NUMA node of all these CPUs; -1 if they are of several, or unknown."""
    found = [node for node, own in numa_nodes(root).items() if set(cpus) & set(own)]
    return found[0] if len(found) == 1 else -1


def with_siblings(cpus: Collection[int], root: Path = ROOT) -> frozenset[int]:
    """These CPUs and those that share a core with one of them."""
    return frozenset(cpus).union(*(cgroup.cpu_set(_siblings(cpu, root)) for cpu in cpus))


def _siblings(cpu: int, root: Path) -> str:
    return read(root / CPUS / f"cpu{cpu}/topology/thread_siblings_list")


def _at_once(cpus: Collection[int], root: Path) -> int:
    """How many of their cores the quota allows to run at the same time."""
    quota = cgroup.cpu_quota(root)
    cores = len(physical_cores(cpus, root))
    return cores if quota is None else max(1, min(cores, int(quota + 1e-9)))


def cpu_model(root: Path = ROOT) -> str:
    """The processor's name; on ARM, which has none, implementer and part numbers."""
    fields = dict(re.findall(r"^([\w ]+?)\s*:\s*(.*)$", read(root / "proc/cpuinfo"), re.M))
    for key in ("model name", "Model", "cpu model", "cpu"):
        if fields.get(key):
            return str(fields[key])
    if "CPU part" in fields:
        return (
            f"{platform.machine()} implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
        )
    return platform.processor() or platform.machine() or "unknown"


def named_processor() -> str:
    """The processor's name; "" if the system gives no more than its architecture."""
    found = cpu_model()
    return "" if found in (platform.processor(), platform.machine(), "unknown") else found


def sockets(root: Path = ROOT) -> int:
    """Processor packages of the host."""
    texts = {read(p) for p in (root / CPUS).glob("cpu[0-9]*/topology/physical_package_id")}
    return max(1, len(texts - {""}))


def threads_per_core(root: Path = ROOT) -> int:
    """Hardware threads that share a core; 1 where unknown."""
    return max(1, len(cgroup.cpu_set(_siblings(0, root))))


def memory_bytes(root: Path = ROOT) -> int:
    """Memory of the host, or of this job's part of it; 0 where unknown."""
    total = re.search(r"^MemTotal:\s+(\d+) kB", read(root / "proc/meminfo"), re.M)
    if total:
        n_bytes = int(total.group(1)) << 10
    elif "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        n_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    else:
        return 0
    return min(n_bytes, cgroup.memory_limit(root) or n_bytes)


def caches(root: Path = ROOT) -> dict[str, int]:
    """{"L1d": bytes, "L2": …, "L3": …} of each data cache that the first CPU uses."""
    found: dict[str, int] = {}
    for folder in sorted((root / CPUS / "cpu0/cache").glob("index*")):
        kind = read(folder / "type")
        size = re.fullmatch(r"(\d+)([KMG]?)", read(folder / "size"))
        if kind in ("Data", "Unified") and size:
            suffix = "d" if kind == "Data" else ""
            found[f"L{read(folder / 'level')}{suffix}"] = int(size.group(1)) * UNITS.get(size.group(2), 1)
    return found


def cache_instances(level: int, root: Path = ROOT) -> int:
    """Number of caches of this level on the host; 0 where unknown."""
    sharers = {
        read(folder / "shared_cpu_list")
        for folder in (root / CPUS).glob("cpu[0-9]*/cache/index*")
        if read(folder / "level") == str(level) and read(folder / "type") != "Instruction"
    }
    return len(sharers - {""})


def governor(root: Path = ROOT) -> str:
    """How the clock rate is chosen: 'performance', …, 'unknown'."""
    names = {read(p) for p in (root / CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""}
    return ", ".join(sorted(names)) or "unknown"


def huge_pages(root: Path = ROOT) -> str:
    """Transparent huge pages: 'always', 'madvise' or 'never'; 'unknown' without them."""
    chosen = re.search(r"\[(\w+)\]", read(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return chosen.group(1) if chosen else "unknown"


def load_average() -> float:
    """Runnable processes, mean over the last minute; 0 if the system does not report it."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0


def running(root: Path = ROOT) -> int:
    """Threads that run or wait for a processor now, under this kernel; 0 where unknown."""
    found = re.match(r"(?:[\d.]+ ){3}(\d+)/", read(root / "proc/loadavg"))
    return int(found.group(1)) if found else 0


def peak_memory(root: Path = ROOT) -> int:
    """Peak resident memory of this process so far, bytes; 0 where unknown."""
    high = re.search(r"^VmHWM:\s+(\d+) kB", read(root / "proc/self/status"), re.M)
    if high:
        return int(high.group(1)) << 10
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak << 10)


def stat_ticks(cpus: Collection[int], root: Path = ROOT) -> list[int]:
    """Ticks since boot of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal."""
    rows = (re.fullmatch(r"cpu(\d+) (.*)", line) for line in read(root / "proc/stat").splitlines())
    fields = [row[2].split()[:8] for row in rows if row and int(row[1]) in cpus]
    return [sum(map(int, column)) for column in zip(*fields)]


class Taken(NamedTuple):
    """CPU time lost to steal and to a quota, percent; 0 if the system does not report it."""

    steal_percent: float  # taken by the hypervisor
    throttled_percent: float  # withheld by the quota of a control group, up to 100


def taken_meter(root: Path = ROOT, clock: Callable[[], float] = time.perf_counter) -> Callable[[int], Taken]:
    """A function of the number of ranks on this host: what was taken since now.

    Quota throttling is not steal: it is configured. The kernel counts it for the whole
    control group, summed over CPUs. Therefore it is divided by the CPUs that all ranks
    of the host keep busy, not by those of this rank, which may be bound to one.
    """
    cpus = affinity()
    before = stat_ticks(cpus, root)
    held, begin = cgroup.throttled_seconds(root), clock()

    def taken(ranks: int) -> Taken:
        ticks = [now - then for then, now in zip(before, stat_ticks(cpus, root))]
        held_now = cgroup.throttled_seconds(root) - held
        passed = clock() - begin
        by_hypervisor = ticks[7] / sum(ticks) if len(ticks) == 8 and sum(ticks) > 0 else 0.0
        busy = max(1, min(ranks, len(job_cpus(root))))
        by_quota = held_now / (passed * busy) if passed > 0 else 0.0
        return Taken(100 * max(by_hypervisor, 0.0), 100 * min(max(by_quota, 0.0), 1.0))

    return taken


def own_cores(usable: Sequence[int], root: Path = ROOT) -> list[int]:
    """One CPU of every physical core among the usable ones: its first thread."""
    cores: dict[str, int] = {}
    for cpu in sorted(usable):
        cores.setdefault(core_of(cpu, root), cpu)
    return list(cores.values())


def confine(wanted: Sequence[int]) -> None:
    """Bind this process to these of its usable cores. Raises InputError for too few."""
    cores = own_cores(affinity())
    if max(wanted) >= len(cores):
        raise InputError(
            f"host {platform.node()}: {max(wanted) + 1} cores requested, {len(cores)} usable; "
            "name fewer, as in HOST:CORES"
        )
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores[k] for k in wanted})


VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}


def node_facts(root: Path = ROOT) -> NodeFacts:
    """The whole node, whatever part of it this job may use."""
    cpus = cpu_set(read(root / CPUS / "online"))
    return NodeFacts(
        numa_nodes=max(1, len(numa_nodes(root))),
        physical_cores=len(physical_cores(cpus, root)),
        threads=len(cpus),
        accelerators=accelerators(root),
    )


def accelerators(root: Path = ROOT) -> tuple[str, ...]:
    """Accelerators by kind, such as '4 x NVIDIA H100', from the driver's files.

    NVIDIA's driver and AMD's kfd name their devices; others have a render node.
    """
    named = [*_nvidia(root), *_kfd(root)]
    known = {name.split()[0] for name in named}
    found = Counter([*named, *(name for name in _rendering(root) if name.split()[0] not in known)])
    return tuple(f"{n} x {name}" if n > 1 else name for name, n in sorted(found.items()))


def _nvidia(root: Path) -> list[str]:
    texts = [read(path) for path in sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))]
    models = [re.search(r"^Model:\s*(.+)$", text, re.M) for text in texts]
    return [f"NVIDIA {model.group(1).removeprefix('NVIDIA ')}" for model in models if model]


def _kfd(root: Path) -> list[str]:
    """AMD's; nodes without SIMD units are processors."""
    found = []
    for folder in sorted((root / "sys/class/kfd/kfd/topology/nodes").glob("*")):
        text = read(folder / "properties")
        units = re.search(r"^simd_count (\d+)$", text, re.M)
        if units and int(units.group(1)):
            target = re.search(r"^gfx_target_version (\d+)$", text, re.M)
            found.append(f"AMD {read(folder / 'name') or 'gfx ' + (target.group(1) if target else '?')}")
    return found


def _rendering(root: Path) -> list[str]:
    """Devices that compute, by vendor and number; displays alone have no render node."""
    found = []
    for folder in sorted((root / "sys/class/drm").glob("renderD*")):
        vendor, device = (read(folder / "device" / name) for name in ("vendor", "device"))
        if vendor in VENDORS:
            found.append(f"{VENDORS[vendor]} device {device}")
    return found
