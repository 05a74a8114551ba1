"""Limits of this process's control groups: CPUs, CPU time, memory (Linux, versions 1, 2).

A container or a batch job sees the whole machine in /proc but may use only part of it.
Every function takes the root of the file system, so that it also works on a copy of
another machine's files, and returns None if there is no limit or no control group.
"""

from pathlib import Path

ROOT = Path("/")
NO_LIMIT = 1 << 60  # bytes; version 1 writes a huge number for "none"


def read(path: Path) -> str:
    """The text of a small file, stripped; '' if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def cpu_set(text: str) -> tuple[int, ...]:
    """The CPUs in a list as the kernel writes it: '0-2,8' is (0, 1, 2, 8)."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))


def folders(controller: str, root: Path = ROOT) -> list[Path]:
    """The control groups of this process that `controller` may limit, innermost first.

    Beside trees of version 1, the tree of version 2 is in a folder of its own.
    """
    mount = root / "sys/fs/cgroup"
    found: list[Path] = []
    for line in read(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names == "":
            base = mount / "unified" if (mount / "unified").is_dir() else mount
        elif controller in names.split(","):
            base = next((b for b in (mount / names, mount / controller) if b.is_dir()), mount / controller)
        else:
            continue
        inner = base / path.strip("/")
        found += [p for p in (inner, *inner.parents) if p == base or base in p.parents]
    return found


def allowed_cpus(root: Path = ROOT) -> tuple[int, ...] | None:
    """CPUs that the job of this process may use, even if it is bound to one of them."""
    for folder in folders("cpuset", root):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus"):
            text = read(folder / name)
            if text:
                return cpu_set(text)
    return None


def cpu_quota(root: Path = ROOT) -> float | None:
    """CPU seconds per second that this process's groups may use."""
    found = tightest_quota(root)
    return found[0] if found else None


def tightest_quota(root: Path = ROOT) -> tuple[float, str] | None:
    """(CPU seconds per second, path of its control group) of the smallest quota, if any."""
    mount = root / "sys/fs/cgroup"
    limits = [(_quota(folder), str(folder.relative_to(mount))) for folder in folders("cpu", root)]
    return min(((limit, name) for limit, name in limits if limit is not None), default=None)


def _quota(folder: Path) -> float | None:
    quota, _, period = read(folder / "cpu.max").partition(" ")
    if not quota:
        quota = read(folder / "cpu.cfs_quota_us")
        period = read(folder / "cpu.cfs_period_us")
    if not quota.lstrip("-").isdigit() or int(quota) <= 0 or not period.isdigit():
        return None
    return int(quota) / int(period)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes of memory that this process's groups may use."""
    limits = []
    for folder in folders("memory", root):
        text = read(folder / "memory.max") or read(folder / "memory.limit_in_bytes")
        if text.isdigit() and int(text) < NO_LIMIT:
            limits.append(int(text))
    return min(limits, default=None)


def throttled_seconds(root: Path = ROOT) -> float:
    """Seconds, over all CPUs, in which a quota held this process back; 0 without one."""
    seconds = 0.0
    for folder in folders("cpu", root):
        for line in read(folder / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_usec":
                seconds = max(seconds, int(value) * 1e-6)
            elif name == "throttled_time":
                seconds = max(seconds, int(value) * 1e-9)
    return seconds
