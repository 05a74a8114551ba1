"""The energy that a machine uses, from the counters that its kernel or drivers show.

    pm_counters   Cray: the whole node, 10 times per second
    RAPL          Intel, AMD: every package, and its memory (dram) where it is counted
    hwmon         amd_energy: every socket, without RAPL; i915 and xe: a GPU of Intel
    NVML          NVIDIA: every GPU that this host shows, by the package nvidia-ml-py

A counter of the node is used alone, as it includes the others. Of RAPL, core and uncore
are parts of a package, psys is the platform with its packages: none of them is added.

A counter of RAPL has 32 bits: it begins again at 0 after max_energy_range_uj and one unit
more. One such wrap between two readings is corrected. Two cannot be seen, which takes
range / power: 262 kJ at 1 kW is 262 s. Readings as far apart give no energy. Nor does a
counter that was reset, which looks like a wrap at a power that no processor has, nor one
that stands still from the first to the last set.

All work on the machine counts, that of others too. Counters are read by its first rank,
between the sets. Each is at most one update old, so that the energy between two readings
is known to two updates' worth; over many sets in turn the error does not grow."""

import importlib
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.structs import replace

from fembench.base.errors import shown
from fembench.base.units import few, seconds
from fembench.host.cgroup import ROOT, read
from fembench.host.finding import Finding, ok
from fembench.host.provenance import machine_key
from fembench.records.record import NO_JOULES, EnergyFacts

if TYPE_CHECKING:  # fembench doctor must not load MPI
    from fembench.ranks.comm import Comm

POWERCAP = Path("sys/class/powercap")
CRAY = Path("sys/cray/pm_counters")
HWMON = Path("sys/class/hwmon")
NVIDIA = Path("proc/driver/nvidia")
UJ = 1e-6  # joules
BITS = (1 << 32) - 1  # the largest count of a register of RAPL
WATTS = {"package": 1000.0, "dram": 250.0}  # more than one has: a wrap takes range / power
UPDATES = {"RAPL": 1e-3, "NVML": 0.1, "hwmon": 0.1, "pm_counters": 0.1}  # seconds; of NVML and hwmon assumed
HZ = "raw_scan_hz"  # of pm_counters
MOST_HZ = 1000
LEAST_RANGE = 10.0  # seconds at the most watts; a smaller range of RAPL is its driver's error
RIGHT = f"chmod a+r /{POWERCAP}/intel-rapl:*/energy_uj"
ROOT_ONLY = f"ask the administrator for '{RIGHT}' (lasts until the next boot; Linux reserves it to root)"
ASK_GPU = "python -m pip install nvidia-ml-py"
NONE = "no counters, as on most virtual machines"
HIDDEN = "its zones are hidden, as in most containers"
SHOW = "start outside of the container, or let it see /sys/devices/virtual/powercap"
SHOWN = 6  # counters named in a line


class EnergyCounter(NamedTuple):
    """A counter that only grows, but for its wraps."""

    what: str  # "package-0", "dram of package-0", "GPU 0", "node"
    read: Callable[[], int]  # microjoules; raises OSError or ValueError
    unit: float  # joules
    wraps: int = 0  # microjoules after which it begins again; 0: never
    watts: float = 0.0  # more than it ever counts


class EnergySource(NamedTuple):
    """What one kind of counter gives: counters, or why there are none."""

    reader: str
    counters: tuple[EnergyCounter, ...] = ()
    updates: float = 0.0  # seconds between two
    why: str = ""  # not readable, although there is something to read
    ask: str = ""  # what to do about it


def sources(root: Path = ROOT, nvml: Any = None) -> list[EnergySource]:
    """The kinds of counters that this machine has; what one includes is not repeated.

    nvml: the module pynvml; None: imported if the machine has GPUs of NVIDIA
    """
    node = _pm_counters(root)
    if node.counters:
        return [node]
    cores = _rapl(root)
    sockets = _hwmon(root, {"amd_energy": "Esocket"}) if not cores.counters else EnergySource("hwmon")
    found = [node, sockets if sockets.counters else cores, _nvml(root, nvml)]
    return [one for one in (*found, _hwmon(root, {"i915": "", "xe": ""})) if one.counters or one.why]


def energy_facts(found: Sequence[EnergySource]) -> EnergyFacts:
    """What is counted here, or why nothing is, as a record holds it."""
    used = [one for one in found if one.counters]
    whys = [f"{one.reader}: {one.why}" for one in found if one.why]
    return EnergyFacts(
        reader=", ".join(one.reader for one in used),
        includes=tuple(c.what for one in used for c in one.counters),
        updates=max((one.updates for one in used), default=0.0),
        unit=max((c.unit for one in used for c in one.counters), default=0.0),
        why="; ".join(whys) or ("" if used else NONE),
        ask="; ".join(dict.fromkeys(one.ask for one in found if one.ask)),
    )


def finding(facts: EnergyFacts) -> Finding:
    """The line of the check-up."""
    lacking = f"not readable: {facts.why}"
    if not facts.reader:
        missing = Finding("energy", "missing (optional)", lacking, facts.ask)
        return missing if facts.ask else ok("energy", facts.why)
    what = few(facts.includes, SHOWN)
    found = f"{facts.reader}: {what}; updated every {seconds(facts.updates)}"
    if not facts.ask:
        return ok("energy", found)
    return Finding("energy", "missing (optional)", f"{found}; {lacking}", facts.ask)


def check_energy(root: Path = ROOT, nvml: Any = None) -> Finding:
    """What counts the energy of this machine, or why nothing does."""
    return finding(energy_facts(sources(root, nvml)))


def _file(path: Path, scale: int = 1) -> Callable[[], int]:
    """Reads the number at the beginning of a file, in microjoules."""

    def look() -> int:
        text = path.read_text(errors="replace")
        if (found := _number(text)) < 0:
            raise ValueError(f"'{shown(text)}': expected a whole number")
        return scale * found

    return look


def _number(text: str) -> int:
    """The whole number that a text begins with; -1 if there is none."""
    found = re.match(r"[0-9]{1,20}(?!\S)", text.lstrip())
    return int(found[0]) if found else -1


def _exists(path: Path) -> bool:
    """Also if this user may not see it."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _readable(reader: str, counters: Sequence[EnergyCounter], updates: float, root_only: str) -> EnergySource:
    """All these counters, or none if one cannot be read: a part would look like the sum."""
    try:
        for one in counters:
            one.read()
    except PermissionError:
        return EnergySource(reader, why="only root may read the counters", ask=root_only)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", "") or str(error)
        return EnergySource(
            reader, why=f"{one.what}: {said}", ask="ask the administrator why this counter fails"
        )
    return EnergySource(reader, tuple(counters), updates if counters else 0.0)


def _pm_counters(root: Path) -> EnergySource:
    """The node, as Cray counts it: 'N J T us'."""
    folder = root / CRAY
    if not _exists(folder / "energy"):
        return EnergySource("pm_counters")
    hz = _number(read(folder / HZ))
    updates = 1 / hz if 1 <= hz <= MOST_HZ else UPDATES["pm_counters"]
    node = EnergyCounter("node", _file(folder / "energy", 10**6), 1.0)
    return _readable("pm_counters", [node], updates, f"ask for the right to read /{CRAY}")


def _rapl(root: Path) -> EnergySource:
    """Packages and their memory; a mirror of theirs (intel-rapl-mmio) is another folder."""
    zones = sorted((root / POWERCAP).glob("intel-rapl:*"))
    names = {zone.name: read(zone / "name") for zone in zones}
    if zones and not any(names.values()):
        return EnergySource("RAPL", why=HIDDEN, ask=SHOW)
    counters = []
    for zone in zones:
        name = names[zone.name]
        kind = names[zone.name].partition("-")[0]
        if kind not in WATTS:
            continue
        inside = names.get(zone.name.rpartition(":")[0], "")
        top = _number(read(zone / "max_energy_range_uj"))
        unit = max(1, round(top / BITS))
        wraps = top + unit if top * UJ >= LEAST_RANGE * WATTS[kind] else 0
        what = f"{name} of {inside}" if inside else name
        counters.append(EnergyCounter(what, _file(zone / "energy_uj"), unit * UJ, wraps, WATTS[kind]))
    return _readable("RAPL", counters, UPDATES["RAPL"], ROOT_ONLY)


def _hwmon(root: Path, chips: dict[str, str]) -> EnergySource:
    """Counters of these chips with labels that begin so; without labels, their first."""
    counters = []
    for folder in sorted((root / HWMON).glob("hwmon*")):
        name = read(folder / "name")
        if name not in chips:
            continue
        files = sorted(folder.glob("energy*_input"))
        labels = {f: read(folder / f.name.replace("_input", "_label")) for f in files}
        taken = [f for f in files if labels[f].startswith(chips[name])] if chips[name] else files[:1]
        for file in taken:
            what = labels[file] if chips[name] else f"GPU of {folder.name} ({name})"
            counters.append(EnergyCounter(what, _file(file), UJ))
    return _readable("hwmon", counters, UPDATES["hwmon"], "ask for the right to read energy*_input of hwmon")


def _nvml(root: Path, nvml: Any = None) -> EnergySource:
    """GPUs of NVIDIA since Volta, in millijoules."""
    if nvml is None:
        if not _exists(root / NVIDIA):
            return EnergySource("NVML")
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return EnergySource("NVML", why="nvidia-ml-py is not installed", ask=ASK_GPU)
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(k) for k in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        return EnergySource("NVML", why=str(error), ask="nvidia-smi must list the GPUs")

    def counted(handle: Any) -> Callable[[], int]:
        def look() -> int:
            try:
                return 1000 * int(nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
            except nvml.NVMLError as error:
                raise ValueError(str(error)) from error

        return look

    gpus = [EnergyCounter(f"GPU {k}", counted(handle), 1e-3) for k, handle in enumerate(handles)]
    found = _readable("NVML", gpus, UPDATES["NVML"], "")
    return found._replace(ask="GPUs count energy since Volta (2017)") if found.why else found


def used_between(one: EnergyCounter, passed: float, before: int | None, after: int | None) -> int | str:
    """Microjoules in `passed` seconds, or why they are not known."""
    if before is None or after is None:
        return "could not be read"
    if not one.wraps:
        return after - before if after >= before else "began again"
    if passed * one.watts >= one.wraps * UJ:
        return "may have wrapped twice in a set"
    used = (after - before) % one.wraps
    most = (passed + UPDATES["RAPL"]) * one.watts
    return used if used * UJ <= most else f"began again, or counted more than {one.watts:g} W"


class EnergyMeter:
    """The energy of this machine from set to set, read on its first rank."""

    def __init__(
        self,
        facts: EnergyFacts,
        counters: Sequence[EnergyCounter] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`facts`: of the machine, on all its ranks. `counters`: () on all but the first."""
        self.facts = facts
        self._counters = counters
        self._clock = clock
        self._moved: set[str] = set()
        self._unknown: dict[str, None] = {}  # why sets have no energy, each once
        self._last = self._look()

    def lap(self) -> float:
        """Joules since the last call; NO_JOULES where they are not counted."""
        (begin, before), (end, after) = self._last, self._look()
        self._last = end, after
        known = []
        for one, a, b in zip(self._counters, before, after):
            used = used_between(one, end - begin, a, b)
            if a != b:
                self._moved.add(one.what)
            if isinstance(used, str):
                self._unknown[f"{one.what} {used}"] = None
            else:
                known.append(used)
        return sum(known) / 10**6 if known and len(known) == len(self._counters) else NO_JOULES

    def end(self) -> tuple[EnergyFacts, bool]:
        """(facts, with why sets have no energy; whether every counter has moved)."""
        still = [f"{one.what} stood still" for one in self._counters if one.what not in self._moved]
        why = "; ".join(filter(None, [self.facts.why, *self._unknown, *still]))
        return replace(self.facts, why=why), not still

    def _look(self) -> tuple[float, list[int | None]]:
        """The time, and what each counter shows; None: not readable now."""
        return self._clock(), [_now(one) for one in self._counters]


def _now(one: EnergyCounter) -> int | None:
    try:
        return one.read()
    except (OSError, ValueError):
        return None


def energy_meter(comm: "Comm", root: Path = ROOT) -> EnergyMeter:
    """Counts from now. Hosts of one machine share one count. Collective."""
    key = machine_key(root)
    machine = cast("Comm", comm.Split(comm.allgather(key).index(key), comm.rank))
    found = sources(root) if machine.rank == 0 else []
    facts = machine.bcast(energy_facts(found) if machine.rank == 0 else None)
    machine.Free()
    return EnergyMeter(facts, [counter for one in found for counter in one.counters])
