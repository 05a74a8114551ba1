"""What a node consists of: NUMA nodes, cores, hardware threads, accelerators (Linux)."""

import re
from collections import Counter
from pathlib import Path

from fembench.host.cgroup import ROOT, cpu_set, read
from fembench.host.host import CPUS, numa_nodes, physical_cores
from fembench.records.nodes import NodeFacts

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
    """Accelerators by kind, such as '4 x NVIDIA H100': from the driver's files, without any library.

    NVIDIA's driver and AMD's kfd name their devices; of others, a render node shows that they compute.
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
