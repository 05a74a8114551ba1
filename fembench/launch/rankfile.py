"""Open MPI's rankfiles: the line that starts each rank on the host and core that a rankfile gives it."""

from collections import Counter
from collections.abc import Sequence

from fembench.base.config import read_text
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.launch.hostfile import HostSlots, placed
from fembench.launch.launchers import Launcher, absent
from fembench.launch.line import JobLine, one_part


def rankfile_given(
    program: str, launcher: Launcher, ranks: int, path: str, options: Sequence[str]
) -> JobLine:
    """Each rank on the host and core that a rankfile gives it."""
    if launcher.name != "openmpi":
        raise InputError(f"{path}: a rankfile is Open MPI's; expected a list of hosts ({launcher.name})")
    text = read_text(path)
    places = placed(text, path)
    if len(places) != ranks:
        raise InputError(f"{path} places {plural(len(places), 'rank')}; the case has {ranks}")
    slots = Counter(host for host, _ in places)
    listed = ",".join(f"{host}:{n}" for host, n in slots.items())
    binding = ("--bind-to", "core") if len(set(places)) == len(places) else launcher.bound
    words = ["--map-by", "rankfile:file={file}", *absent(binding, options)]
    part = one_part(program, launcher, ranks, ["--host", listed], words, options)
    return JobLine(launcher, (part,), (text,))


def rankfile_made(
    program: str, launcher: Launcher, runs: Sequence[HostSlots], options: Sequence[str]
) -> JobLine:
    """Ranks in an order of hosts that no mapping of Open MPI gives."""
    names = [run.name for run in runs for _ in range(run.slots)]
    text, next_slot = "", Counter[str]()
    for rank, name in enumerate(names):
        text += f"rank {rank}={name} slot={next_slot[name]}\n"
        next_slot[name] += 1
    listed = ",".join(f"{name}:{n}" for name, n in next_slot.items())
    words = ["--map-by", "rankfile:file={file}", *absent(launcher.bound, options)]
    part = one_part(program, launcher, len(names), ["--host", listed], words, options)
    return JobLine(launcher, (part,), (text,))
