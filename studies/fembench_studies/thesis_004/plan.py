"""The experiments E0 to E14 as cases; a case that several experiments use is measured once.

Campaigns, by where their cases run:
    hosts       on the two kinds of hosts, real or emulated            E3 E7 E9 E10 E11 E13 E14
    two-cores   all tasks on two cores of one host                     E4 E5 E8 E12 E14
    one-core    all tasks on one core of it                            E4 E5 E14
    sparse      on it, to the tolerance, with sparse storage           E2 E6 E12

The one host is the first fast one if hosts are given, otherwise the launching machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fembench.records.case import Case
from fembench_studies.study import wanted
from fembench_studies.thesis_004.machines import Machines, Placement
from fembench_studies.thesis_004.thesis import MESHES, runs

Where = Literal["hosts", "two-cores", "one-core", "sparse"]
CAMPAIGNS: tuple[Where, ...] = ("sparse", "two-cores", "one-core", "hosts")
CORES = {"two-cores": 2, "one-core": 1}
ONE_HOST = (1, 2, 4, 8)  # tasks
FINER = ("s", "box:100000")  # E6 beyond the thesis' meshes
TASKS = {"cluster1": (2, 3, 4, 5, 6), "cluster2": (2, 3, 4)}  # of E7
RUNS = {run: (a, b) for run, (a, b, _) in runs(1).items()}


class StudyEffort(NamedTuple):
    """How much is measured; runs that stop before the tolerance are scaled up to it."""

    iterations: dict[str, int]  # mesh -> iterations per set on the hosts; 0: to the tolerance
    iterations_here: dict[str, int]  # the same on one or two cores of one host
    sets: int
    warmups: int
    repetitions: int
    again: int  # repetitions of each host alone (E9), whose ratios are compared
    timeout: float


QUICK = StudyEffort({"m1": 40, "m2": 20, "m3": 10}, {"m1": 420, "m2": 420, "m3": 30}, 2, 1, 1, 2, 240)
FULL = StudyEffort({"m1": 0, "m2": 0, "m3": 0}, {"m1": 0, "m2": 0, "m3": 0}, 5, 1, 5, 5, 7200)


@dataclass(frozen=True)
class Want:
    """A case, the campaign in which it runs, and its hosts."""

    where: Where
    case: Case
    placement: Placement = ()


@dataclass(frozen=True)
class StudyPlan:
    """The cases of all experiments, on these machines, with this effort."""

    machines: Machines
    effort: StudyEffort

    def on_hosts(self, mesh: str, placement: Placement, storage: str = "dense", shares: str = "") -> Want:
        """A case on the two kinds of hosts."""
        case = _case(mesh, storage, self.effort, self.effort.iterations[mesh])
        case = self.machines.place(case.with_(shares=shares), placement)
        return Want("hosts", case, placement)

    def here(self, mesh: str, tasks: int, where: Where, storage: str = "dense") -> Want:
        """A case on one or two cores of one host; m1 on two ranks is traced for E5."""
        case = _case(mesh, storage, self.effort, self.effort.iterations_here[mesh])
        traced = 2 if (mesh, tasks, storage) == ("m1", 2, "dense") else 0
        case = case.with_(trace_iterations=traced, replicated=True)
        return self._alone(where, case, tasks, CORES[where], where)

    def sparse(self, mesh: str, tasks: int = 1, fields: bool = False) -> Want:
        """A case solved to the tolerance with sparse storage."""
        case = Case.of(mesh=mesh, fields=fields, sets=2, trace_iterations=0)
        return self._alone("sparse", case, tasks, self.machines.fast[0].cores, "")

    def _alone(self, where: Where, case: Case, tasks: int, cores: int, label: str) -> Want:
        """A case on some cores of the first fast host, or on this machine under this label."""
        placement = self.machines.alone(tasks, cores)
        if placement:
            return Want(where, self.machines.place(case, placement), placement)
        return Want(where, case.with_(ranks=tasks, label=label))

    def wants(self, only: Sequence[str] = ()) -> list[Want]:
        """Cases of the experiments in `only` (() means all) whose shares are known in advance, each once."""
        parts = [make(self) for name, make in EXPERIMENTS.items() if wanted(name, only)]
        return list(dict.fromkeys(want for part in parts for want in part))

    def repetitions(self, want: Want) -> int:
        """How often a case runs."""
        if want.where == "sparse":
            return 1
        alone = want.where == "hosts" and len(want.placement) == 1 and want.case.method.storage == "dense"
        return self.effort.again if alone and want.placement[0][1] in ONE_HOST else self.effort.repetitions

    def _scale(self) -> list[Want]:
        """Runs to the tolerance, from which runs with fewer iterations are scaled up."""
        return [self.sparse(mesh) for mesh in MESHES] if any(self.effort.iterations.values()) else []

    def _one_each(self, mesh: str, kind: str, counts: Sequence[int], storage: str = "dense") -> list[Want]:
        """One task per host, for all counts up to the number of hosts."""
        placements = (self.machines.one_each(kind, tasks) for tasks in counts)
        return [self.on_hosts(mesh, placement, storage) for placement in placements if placement]

    def hosts(self) -> list[Want]:
        """The cases of E0."""
        return [self.on_hosts("m1", self.machines.mixed(a, b)) for a, b in ((0, 1), (1, 0))]

    def meshes(self) -> list[Want]:
        """The cases of E2."""
        return [*(self.sparse(mesh) for mesh in MESHES), self.sparse("m3", 8, fields=True)]

    def phases(self) -> list[Want]:
        """The cases of E3."""
        return self._scale() + [
            w for m in MESHES for kind in TASKS for w in self._one_each(m, kind, (1, 2, 4))
        ]

    def one_host(self) -> list[Want]:
        """The cases of E4."""
        places: tuple[Where, ...] = ("two-cores", "one-core")
        return self._scale() + [self.here(m, t, w) for w in places for m in MESHES for t in ONE_HOST]

    def time_lines(self) -> list[Want]:
        """The cases of E5."""
        return [self.here("m1", 2, "two-cores"), self.here("m1", 2, "one-core")]

    def iterations(self) -> list[Want]:
        """The cases of E6."""
        return [self.sparse(mesh) for mesh in (*MESHES, *FINER)]

    def communication(self) -> list[Want]:
        """The cases of E7."""
        return self._scale() + [
            w for m in MESHES for kind, counts in TASKS.items() for w in self._one_each(m, kind, counts)
        ]

    def send_receive(self) -> list[Want]:
        """The cases of E8."""
        return self._scale() + [self.here("m2", tasks, "two-cores") for tasks in (2, 4, 8)]

    def totals(self) -> list[Want]:
        """The cases of E9."""
        placements = [p for t in ONE_HOST for p in (self.machines.mixed(0, t), self.machines.mixed(t, 0))]
        return self._scale() + [self.on_hosts(mesh, p) for mesh in MESHES for p in placements]

    def together(self) -> list[Want]:
        """The cases of E10, with each host alone for comparison."""
        mixed = [self.machines.mixed(a, b) for a, b in RUNS.values()]
        return self.totals() + [self.on_hosts(mesh, p) for mesh in MESHES for p in mixed]

    def pairs(self) -> list[Want]:
        """The cases of E11."""
        made = self._scale()
        for mesh in MESHES:
            made += [w for kind in TASKS for w in self._one_each(mesh, kind, (2,))]
            made += [self.on_hosts(mesh, self.machines.mixed(*pair)) for pair in ((1, 1), (0, 2))]
        return made

    def parts(self) -> list[Want]:
        """The cases of E12."""
        return [self.sparse("m3", 8, fields=True), *(self.here("m3", t, "two-cores") for t in (2, 4, 8))]

    def weighted(self) -> list[Want]:
        """The cases that determine the shares of E13, and runs with one part per core."""
        placements = [self.machines.mixed(a, b) for a, b in ((0, 2), (1, 0), (1, 2))]
        return self.together() + [self.on_hosts(m, p, "csr") for m in MESHES for p in placements]

    def storage(self) -> list[Want]:
        """The cases of E14."""
        made = self._scale()
        for kind in ("dense", "csr"):
            made += [self.here("m3", tasks, "one-core", kind) for tasks in ONE_HOST]
            made += self._one_each("m3", "cluster1", ONE_HOST, kind)
        return made


EXPERIMENTS: dict[str, Callable[[StudyPlan], list[Want]]] = {
    "E0": StudyPlan.hosts,
    "E2": StudyPlan.meshes,
    "E3": StudyPlan.phases,
    "E4": StudyPlan.one_host,
    "E5": StudyPlan.time_lines,
    "E6": StudyPlan.iterations,
    "E7": StudyPlan.communication,
    "E8": StudyPlan.send_receive,
    "E9": StudyPlan.totals,
    "E10": StudyPlan.together,
    "E11": StudyPlan.pairs,
    "E12": StudyPlan.parts,
    "E13": StudyPlan.weighted,
    "E14": StudyPlan.storage,
}


def _case(mesh: str, storage: str, effort: StudyEffort, iterations: int) -> Case:
    return Case.of(
        mesh=mesh,
        storage=storage,
        overlap=False,
        iterations=iterations if storage == "dense" else 0,
        sets=effort.sets,
        warmups=effort.warmups,
        trace_iterations=0,
    )
