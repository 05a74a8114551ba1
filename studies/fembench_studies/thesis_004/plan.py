"""The experiments E0 to E14 as cases; a case that several
experiments use is measured once.

Campaigns, by where their cases run:
    hosts       on the two kinds of hosts, real or emulated            E3 E7 E9 E10 E11 E13 E14
    two-cores   all tasks on two cores of one host                     E4 E5 E8 E12 E14
    one-core    all tasks on one core of it                            E4 E5 E14
    sparse      on it, to the tolerance, with sparse storage           E2 E6 E12

The one host is the first fast one if hosts are given, otherwise the launching machine. A case is known by its
key in the tables, (platform, mesh, tasks):
    cluster1, cluster2        one task on each of so many hosts
    smp, single_cpu           all tasks on two cores of one host, or on one of them
    node8, node00             all tasks on the fast host, or on the slow one
    run                       one of the runs 1 to 11 on both hosts, by its number instead of tasks
    fast, mixed, slow pair    two tasks on two hosts
A platform with ' csr' has sparse storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from fembench.records.case import Case
from fembench_studies.study import wanted
from fembench_studies.thesis_004.machines import Machines, Placement
from fembench_studies.thesis_004.quantities import HOSTS, ONE_HOST
from fembench_studies.thesis_004.thesis import MESHES, PAIR_COLUMNS, RUNS

Where = Literal["hosts", "two-cores", "one-core", "sparse"]
Key = tuple[str, int, int]  # platform, mesh, tasks
CAMPAIGNS: tuple[Where, ...] = ("sparse", "two-cores", "one-core", "hosts")
CORES = {"two-cores": 2, "one-core": 1}
PLACES: dict[str, Where] = {"smp": "two-cores", "single_cpu": "one-core"}
CLUSTERS = ("cluster1", "cluster2")
FINER = ("s", "box:100000")  # E6 beyond the thesis' meshes
TASKS = {"cluster1": (2, 3, 4, 5, 6), "cluster2": (2, 3, 4)}  # of E7
ALL = (1, 2, 3)  # meshes
JUDGED = 3  # repetitions, at least, of times of a real core, whose speed changes: fewer have no interval


def keys(platforms: Sequence[str], meshes: Sequence[int], tasks: Sequence[int]) -> list[Key]:
    """The keys of all combinations."""
    return list(product(platforms, meshes, tasks))


CSR = keys(("single_cpu csr", "cluster1 csr"), (3,), ONE_HOST)
CSR_ALONE = keys(("node8 csr",), ALL, (2,)) + keys(("node00 csr",), ALL, (1,))
ALONE = keys(HOSTS, ALL, ONE_HOST)
BOTH = [*ALONE, *keys(("run",), ALL, list(RUNS))]
# experiment -> its dense and csr cases; those of E13 and E14 are compared with both hosts alone
EXPERIMENTS: dict[str, list[Key]] = {
    "E0": keys(HOSTS, (1,), (1,)),
    "E2": [],
    "E3": keys(CLUSTERS, ALL, (1, 2, 4)),
    "E4": keys(tuple(PLACES), ALL, ONE_HOST),
    "E5": keys(tuple(PLACES), (1,), (2,)),
    "E6": [],
    "E7": [key for platform, counts in TASKS.items() for key in keys((platform,), ALL, counts)],
    "E8": keys(("smp",), (2,), (2, 4, 8)),
    "E9": ALONE,
    "E10": BOTH,
    "E11": keys((*PAIR_COLUMNS, "node8"), ALL, (2,)),
    "E12": keys(("smp",), (3,), (2, 4, 8)),
    "E13": BOTH + CSR_ALONE,
    "E14": CSR + keys(("single_cpu", "cluster1"), (3,), ONE_HOST),
}

SPARSE = {"E0": (), "E2": MESHES, "E5": (), "E6": (*MESHES, *FINER), "E12": ()}  # others: as they need


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

    def case(self, platform: str, mesh: int, tasks: int) -> Want | None:
        """The case of a key; None if there are too few hosts."""
        name, storage = platform.removesuffix(" csr"), "csr" if platform.endswith(" csr") else "dense"
        if name in PLACES:
            return self._here(MESHES[mesh - 1], tasks, PLACES[name], storage)
        placement = self._placement(name, tasks)
        return self.on_hosts(MESHES[mesh - 1], placement, storage) if placement else None

    def _placement(self, platform: str, tasks: int) -> Placement | None:
        """Hosts and their tasks; None if there are too few."""
        m = self.machines
        if platform in ("cluster1", "fast pair"):
            return m.one_each(m.fast, tasks)
        if platform in ("cluster2", "slow pair"):
            return m.one_each(m.slow, tasks)
        on_slow_and_fast = {"node8": (0, tasks), "node00": (tasks, 0), "mixed pair": (1, 1)}
        return m.mixed(*on_slow_and_fast.get(platform) or RUNS[tasks])

    def on_hosts(self, mesh: str, placement: Placement, storage: str = "dense", shares: str = "") -> Want:
        """A case on the two kinds of hosts."""
        case = _case(mesh, storage, self.effort, self.effort.iterations[mesh])
        case = self.machines.place(case.with_(shares=shares), placement)
        return Want("hosts", case, placement)

    def _here(self, mesh: str, tasks: int, where: Where, storage: str) -> Want:
        """A case on one or two cores of one host; m1 on two ranks is traced for E5."""
        case = _case(mesh, storage, self.effort, self.effort.iterations_here[mesh])
        traced = 2 if (mesh, tasks, storage) == ("m1", 2, "dense") else 0
        case = case.with_(trace_iterations=traced, replicated=True)
        return self._alone(where, case, tasks, CORES[where], where)

    def sparse(self, mesh: str, tasks: int = 1, fields: bool = False) -> Want:
        """A case solved to the tolerance with sparse storage."""
        case = Case.of(mesh=mesh, fields=fields, sets=2, warmups=1, trace_iterations=0)
        return self._alone("sparse", case, tasks, self.machines.fast[0].cores, "")

    def parted(self) -> Want:
        """Mesh 3 in eight parts, for the pictures of E2 and E12."""
        return self.sparse("m3", 8, fields=True)

    def _alone(self, where: Where, case: Case, tasks: int, cores: int, label: str) -> Want:
        """A case on some cores of the first fast host, or on this
        machine under this label."""
        placement = self.machines.alone(tasks, cores)
        if placement:
            return Want(where, self.machines.place(case, placement), placement)
        return Want(where, case.with_(ranks=tasks, label=label))

    def wants(self, only: Sequence[str] = ()) -> list[Want]:
        """Cases of the experiments in `only` (() means all) whose shares are
        known in advance, each once."""
        found = [want for name in EXPERIMENTS if wanted(name, only) for want in self._experiment(name)]
        return list(dict.fromkeys(found))

    def _experiment(self, name: str) -> list[Want]:
        """The cases of an experiment, after the sparse ones from which
        shorter runs are scaled up."""
        scaled = MESHES if any(self.effort.iterations.values()) else ()
        found = [self.sparse(mesh) for mesh in SPARSE.get(name, scaled)]
        found += [self.parted()] if name in ("E2", "E12") else []
        found += [want for key in EXPERIMENTS[name] if (want := self.case(*key))]
        if name == "E13":
            found += [self.on_hosts(mesh, self.machines.mixed(1, 2), "csr") for mesh in MESHES]
        return found

    def repetitions(self, want: Want) -> int:
        """How often a case runs."""
        if want.where == "sparse":
            return 1
        if want.where == "one-core" and want.case.question.mesh == "m3":  # E14
            return max(JUDGED, self.effort.repetitions)
        alone = want.where == "hosts" and len(want.placement) == 1 and want.case.method.storage == "dense"
        return self.effort.again if alone and want.placement[0][1] in ONE_HOST else self.effort.repetitions


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
