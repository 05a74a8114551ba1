"""The experiments E0 to E14 of seed 004, 9.2, as cases, each wanted once however many experiments use it.

Campaigns, by where their cases run:
    hosts       on the two kinds of hosts, real or emulated            E3 E7 E9 E10 E11 E13 E14
    two-cores   all tasks on two cores of one host                     E4 E5 E8 E12 E14
    one-core    all tasks on one core of it                            E4 E5 E14
    sparse      on that host, to the tolerance, with sparse storage    E2 E6 E12

That one host is the first fast one where hosts are given, else the machine that launches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from fembench.records.case import Case
from fembench.reproduce.machines import Machines, Placement
from fembench.reproduce.thesis import MESHES, runs

Where = Literal["hosts", "two-cores", "one-core", "sparse"]
CAMPAIGNS: tuple[Where, ...] = ("sparse", "two-cores", "one-core", "hosts")
CORES = {"two-cores": 2, "one-core": 1}
ONE_HOST = (1, 2, 4, 8)  # tasks
FINER = ("s", "box:100000")  # E6 beyond the thesis' meshes
TASKS = {"cluster1": (1, 2, 3, 4, 5, 6, 8), "cluster2": (1, 2, 3, 4)}  # 8: E14
RUNS = {run: (a, b) for run, (a, b, _) in runs(1).items()}


class Effort(NamedTuple):
    """How much is measured; a run of other iterations than the tolerance needs is scaled to them."""

    iterations: dict[str, int]  # mesh -> iterations a set on the hosts; 0: to the tolerance
    iterations_here: dict[str, int]  # on one or two cores of one host
    sets: int
    warmups: int
    repetitions: int
    timeout: float


QUICK = Effort({"m1": 40, "m2": 20, "m3": 10}, {"m1": 420, "m2": 420, "m3": 30}, 2, 1, 1, 240)
FULL = Effort({"m1": 0, "m2": 0, "m3": 0}, {"m1": 0, "m2": 0, "m3": 0}, 5, 1, 3, 7200)


@dataclass(frozen=True)
class Want:
    """One case, where it runs, and on which hosts."""

    where: Where
    case: Case
    placement: Placement = ()


@dataclass(frozen=True)
class Plan:
    """What is wanted, on which machines, with how much effort."""

    machines: Machines
    effort: Effort

    def on_hosts(self, mesh: str, placement: Placement, storage: str = "dense", shares: str = "") -> Want:
        """A case on the two kinds of hosts."""
        case = _case(mesh, storage, self.effort, self.effort.iterations[mesh])
        case = self.machines.place(msgspec.structs.replace(case, shares=shares), placement)
        return Want("hosts", case, placement)

    def here(self, mesh: str, tasks: int, where: Where, storage: str = "dense") -> Want:
        """A case on one or two cores of one host; m1 on two ranks keeps the time line of E5."""
        case = _case(mesh, storage, self.effort, self.effort.iterations_here[mesh])
        traced = 2 if (mesh, tasks, storage) == ("m1", 2, "dense") else 0
        case = msgspec.structs.replace(case, trace_iterations=traced, replicated=True)
        return self._alone(where, case, tasks, CORES[where], where)

    def sparse(self, mesh: str, tasks: int = 1, fields: bool = False) -> Want:
        """A case solved to the tolerance with sparse storage."""
        case = Case(mesh=mesh, fields=fields, sets=2, trace_iterations=0)
        return self._alone("sparse", case, tasks, self.machines.fast[0].cores, "")

    def _alone(self, where: Where, case: Case, tasks: int, cores: int, label: str) -> Want:
        """A case on so many cores of the first fast host, or on this machine under this label."""
        placement = self.machines.alone(tasks, cores)
        if placement:
            return Want(where, self.machines.place(case, placement), placement)
        return Want(where, msgspec.structs.replace(case, ranks=tasks, label=label))

    def wants(self) -> list[Want]:
        """Every case whose shares are known beforehand, each once; E13's follow from E9."""
        return list(dict.fromkeys([*self._everywhere(), *self._on_hosts()]))

    def _everywhere(self) -> Iterator[Want]:
        for mesh in (*MESHES, *FINER):
            yield self.sparse(mesh)
        yield self.sparse("m3", 8, fields=True)
        for where in ("two-cores", "one-core"):
            for mesh in MESHES:
                for tasks in ONE_HOST:
                    yield self.here(mesh, tasks, where)
        for tasks in ONE_HOST:
            yield self.here("m3", tasks, "one-core", "csr")

    def _on_hosts(self) -> Iterator[Want]:
        m = self.machines
        for mesh in MESHES:
            for kind, counts in TASKS.items():
                for tasks in counts:
                    placement = m.one_each(kind, tasks)
                    if placement and (tasks < 8 or mesh == "m3"):
                        yield self.on_hosts(mesh, placement)
            for tasks in ONE_HOST:
                yield self.on_hosts(mesh, m.mixed(0, tasks))
                yield self.on_hosts(mesh, m.mixed(tasks, 0))
            for a, b in RUNS.values():
                yield self.on_hosts(mesh, m.mixed(a, b))
            for a, b in ((0, 2), (1, 0), (1, 2)):  # E13, one part a core
                yield self.on_hosts(mesh, m.mixed(a, b), "csr")
        for tasks in ONE_HOST:
            placement = m.one_each("cluster1", tasks)
            if placement:
                yield self.on_hosts("m3", placement, "csr")


def _case(mesh: str, storage: str, effort: Effort, iterations: int) -> Case:
    return Case(
        mesh=mesh,
        storage=storage,  # type: ignore[arg-type]
        overlap=False,
        iterations=iterations if storage == "dense" else 0,
        sets=effort.sets,
        warmups=effort.warmups,
        trace_iterations=0,
    )
