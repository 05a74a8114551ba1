"""The fast and slow hosts of Ferreira (2006), and the placement of tasks on them.

A fast host has two processors (node8, Cluster 1), a slow one has one (node00, Cluster
2). Hosts are real or emulated. On a real host tasks use its first c cores only: up to c
tasks have one core each, more tasks share all c. On emulated hosts every task is a rank
here, slowed to the speed it would have on its host: k tasks on c cores of speed s
compute at s min(1, c / k) each. All are dilated alike, to fit on the cores here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fembench.errors import InputError
from fembench.records.case import Case

SLOW_SPEED = 0.13  # of one processor: 1 / 7.7 (Tables 5.25, 5.26, one task)
MOST_AT_ONCE = 8.0  # sum of all speeds in the largest experiment: 8 fast hosts with one task each
# small meshes are dilated more: a core of today computes an iteration of m1 faster than a message travels
DILATION = {"m1": 3, "m2": 2, "m3": 1}
ROOM = 1.2  # spare capacity of the cores; without it ranks would be late


class StudyHost(NamedTuple):
    """A machine."""

    name: str
    cores: int
    speed: float = 1.0  # of a core, relative to that of a fast host; 0: unknown


Placement = tuple[tuple[StudyHost, int], ...]  # (host, its tasks), in the order of ranks


@dataclass(frozen=True)
class Machines:
    """Hosts by kind."""

    fast: tuple[StudyHost, ...]
    slow: tuple[StudyHost, ...]
    emulated: bool
    dilate: float = 1.0

    @property
    def label(self) -> str:
        """Description of the emulation; "" for real hosts."""
        if not self.emulated:
            return ""
        fast, slow = self.fast[0], self.slow[0]
        return (
            f"emulated hosts: fast {fast.cores} processors of speed {fast.speed:g}, slow {slow.cores} of "
            f"speed {slow.speed:g}, all dilated {self.dilate:g} times"
        )

    def one_each(self, hosts: Sequence[StudyHost], tasks: int) -> Placement | None:
        """One task on each of `tasks` of these hosts; None if there are too few."""
        return tuple((host, 1) for host in hosts[:tasks]) if tasks <= len(hosts) else None

    def mixed(self, on_slow: int, on_fast: int) -> Placement:
        """Tasks on node00 and on node8."""
        pair = ((self.slow[0], on_slow), (self.fast[0], on_fast))
        return tuple((host, tasks) for host, tasks in pair if tasks)

    def alone(self, tasks: int, cores: int) -> Placement:
        """Tasks on some cores of the first fast host; () means the launching machine."""
        return () if self.emulated else ((self.fast[0]._replace(cores=cores), tasks),)

    def place(self, case: Case, placement: Placement) -> Case:
        """The case on these hosts."""
        named = (host.name if self.emulated else f"{host.name}:{host.cores}" for host, _ in placement)
        text = " ".join(f"{name}*{tasks}" for name, (_, tasks) in zip(named, placement))
        placed = case.with_(ranks=sum(k for _, k in placement), label=text)
        if not self.emulated:
            return placed
        dilate = round(self.dilate * DILATION.get(case.question.mesh, 1), 1)
        emulate = ",".join(f"{s:.6g}" for s in speeds(placement))
        return placed.with_(emulate=emulate, dilate=dilate)


def speeds(placement: Placement) -> tuple[float, ...]:
    """Speed per rank: tasks on one host share its cores."""
    return tuple(host.speed * min(1.0, host.cores / tasks) for host, tasks in placement for _ in range(tasks))


def confinement(placement: Placement) -> tuple[tuple[int, ...], ...]:
    """[rank] -> cores of its host that it may use: one, or
    all if tasks outnumber cores."""
    return tuple(
        (task,) if tasks <= host.cores else tuple(range(host.cores))
        for host, tasks in placement
        for task in range(tasks)
    )


def emulated(cores: int) -> Machines:
    """Eight fast and eight slow hosts emulated on `cores` cores."""
    dilate = max(1.0, round(ROOM * MOST_AT_ONCE / cores + 0.049, 1))
    return Machines(
        tuple(StudyHost(f"node{8 - i}", 2) for i in range(8)),
        tuple(StudyHost(f"node{i:02d}", 1, SLOW_SPEED) for i in range(8)),
        emulated=True,
        dilate=dilate,
    )


def given(fast: Sequence[str], slow: Sequence[str]) -> Machines:
    """Real hosts, NAME or NAME:CORES. Raises InputError."""
    hosts = [tuple(map(_host, words, (cores,) * len(words))) for words, cores in ((fast, 2), (slow, 1))]
    names = [host.name for kind in hosts for host in kind]
    if not all(hosts) or len(set(names)) < len(names):
        raise InputError(
            f"fast hosts {list(fast)}, slow hosts {list(slow)}: expected at least one of each, none twice"
        )
    if hosts[0][0].cores < 2:
        raise InputError(
            f"first fast host '{hosts[0][0].name}': expected at least two cores (E4 compares two with one)"
        )
    return Machines(hosts[0], hosts[1], emulated=False)


def _host(text: str, cores: int) -> StudyHost:
    name, _, count = text.partition(":")
    if not name or (count and not re.fullmatch("0*[1-9][0-9]{0,5}", count)):
        raise InputError(f"host '{text}': expected NAME or NAME:CORES")
    return StudyHost(name, int(count or cores), 0.0)


def host_file(placement: Placement) -> str:
    """A host file that fills the hosts in the order of ranks."""
    return "".join(f"{host.name} slots={tasks}\n" for host, tasks in placement)
