"""Labs of emulated hosts on this machine. The only lab needs no name."""

from collections.abc import Sequence

from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.synthetic import lab
from fembench.synthetic.lab import LabState, up

__all__ = ["as_table", "as_text", "down", "enter", "set_speed", "status", "up"]


def enter(command: Sequence[str], name: str = "", *, spin: bool = False) -> None:
    """Become a command in the lab. `spin`: waiting ranks do not sleep. Raises InputError."""
    words = command[1:] if command[:1] == ["--"] else command
    lab.enter(lab.state_of(name or lab.only_lab()), words, spin=spin)


def set_speed(host: str, speed: float, name: str = "") -> LabState:
    """Give a host this fraction of its CPUs' time. Raises InputError."""
    return lab.set_speed(name or lab.only_lab(), host, speed)


def down(name: str = "") -> list[str]:
    """End what runs in the lab and remove it; the names removed. Raises InputError."""
    lab.require_root()
    return lab.down(name or lab.only_lab()) if name or lab.labs() else []


def status() -> tuple[list[LabState], list[dict[str, str]]]:
    """(labs that are up, name and problem of those that cannot be read)."""
    states, broken = [], []
    for name in lab.labs():
        try:
            states.append(lab.state_of(name))
        except InputError as error:
            broken.append({"name": name, "problem": str(error)})
    return states, broken


def as_text(labs: Sequence[LabState], broken: Sequence[dict[str, str]]) -> str:
    """The table of each lab, and the problems."""
    lines = [f"{state.cluster.label}\n\n{as_table(state)}\n" for state in labs]
    return "\n".join([*lines, *(f"{one['name']}: {one['problem']}" for one in broken)]) or "no lab is up"


def as_table(state: LabState) -> str:
    """One row per host."""
    rows = [
        [
            h.name,
            ",".join(map(str, h.cpus)),
            h.speed,
            h.ranks,
            h.rate or "unlimited",
            state.cluster.address(i),
        ]
        for i, h in enumerate(state.cluster.hosts)
    ]
    return table(["host", "CPUs", "speed", "ranks", "link", "address"], rows, align="llrrll")
