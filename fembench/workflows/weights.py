"""Each rank's share of the mesh, from runs, a machine profile, or a file of weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fembench.base.config import read_json
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.mesh.presets import resolve
from fembench.methods.lookup import CPU
from fembench.partition.methods import partition
from fembench.partition.partition import metrics
from fembench.records.profile import is_profile, load_profile
from fembench.records.record import Record
from fembench.records.store import load_each
from fembench.records.weights import Weights, load_weights
from fembench.weights import make
from fembench.weights.from_profile import Wire, by_profile, communication_seconds, wire_of_network
from fembench.weights.observe import observe, pooled


@dataclass(frozen=True)
class WeightsAsked:
    """From what, and by which rule."""

    sources: Sequence[Path | str]  # records, folders of records, a machine profile, or a weights file
    rule: str = ""  # of records: time (the default), comm or tasks; of a profile: rate
    mesh: str = ""  # only records of this mesh; "": any; of a profile with devices, the mesh to share
    ranks: int = 0  # only records on so many ranks, 0: any; with rule tasks, the total number of tasks
    machine: str = ""  # rule comm: profile with a network
    storage: str = "sym"  # from a profile: whose product counts,
    iterations: int = 100  # and CG iterations per assembly


def derived(asked: WeightsAsked) -> Weights:
    """The weights by the rule, or those of the file. Raises InputError."""
    paths = [Path(source) for source in asked.sources]
    if len(paths) == 1 and paths[0].suffix == ".json" and not paths[0].exists():
        makes = f"`fembench characterize -o {paths[0]}` makes"
        raise InputError(f"{paths[0]}: no such file; expected a record, or the profile that {makes}")
    if len(paths) == 1 and paths[0].is_file():
        tree = read_json(paths[0], dict, "a record, a machine profile or weights")
        if "rule" in tree:
            _check_unasked(asked, ("rule", "machine", "ranks", "mesh"), f"the weights in {paths[0]}")
            return load_weights(paths[0])
        if is_profile(tree):
            return _from_profile(asked, paths[0])
    rule = asked.rule or "time"
    if rule == "rate":
        raise InputError("--rule rate: expected a machine profile; from records of runs, --rule time")
    if bool(asked.machine) != (rule == "comm"):
        raise InputError(f"--rule {rule}: --machine PROFILE is for --rule comm, which needs it")
    records = _chosen(load_each(paths), asked.mesh, 0 if rule == "tasks" else asked.ranks)
    if rule == "tasks":
        return make.by_tasks(records, asked.ranks)
    if rule == "comm":
        return make.by_finish(
            records, communication_of(records, wire_of_network(load_profile(asked.machine), asked.machine))
        )
    return make.by_time(records)


def _from_profile(asked: WeightsAsked, path: Path) -> Weights:
    if asked.rule not in ("", "rate"):
        raise InputError(
            f"--rule {asked.rule} from the profile {path}: expected --rule rate, or records of runs"
        )
    profile = load_profile(path)
    on_cores = set(profile.devices) == {CPU}
    _check_unasked(asked, ("machine", "ranks", *(["mesh"] if on_cores else [])), f"the profile {path}")
    return by_profile(
        profile,
        str(path),
        storage=asked.storage,
        iterations=asked.iterations,
        cells=resolve(asked.mesh).n_cells if asked.mesh else 0,
    )


def _check_unasked(asked: WeightsAsked, names: Sequence[str], source: str) -> None:
    """Raises InputError for an option that only chooses among records of runs."""
    for name in names:
        if getattr(asked, name):
            raise InputError(f"--{name} with {source}: expected records of runs")


def _chosen(records: list[Record], mesh: str, ranks: int) -> list[Record]:
    """The records of one mesh ("": any) on `ranks` ranks (0: any). Raises InputError."""
    found = [
        r
        for r in records
        if mesh in ("", r.mesh.name, r.case.question.mesh) and (not ranks or r.case.placement.ranks == ranks)
    ]
    if records and not found:
        there = ", ".join(
            sorted({f"{r.mesh.name} on {plural(r.case.placement.ranks, 'rank')}" for r in records})
        )
        options = {"--mesh": mesh, "--ranks": ranks}
        asked = " ".join(f"{option} {value}" for option, value in options.items() if value)
        raise InputError(f"{asked}: no such records; there are records of {there}")
    return found


def communication_of(records: Sequence[Record], wire: Wire) -> make.Communication:
    """A function of shares: repartitions the records' mesh, prices its interface."""
    first, seen = records[0], pooled(records)
    if first.case.placement.partitioner == "blocks":
        raise InputError(
            f"{first.id}: partitioner blocks works only under MPI; expected metis or rcb for --rule comm"
        )
    mesh = resolve(first.case.question.mesh)
    if mesh.hash != first.mesh.hash:
        raise InputError(f"mesh {first.case.question.mesh} is not that of {first.id}; expected the same mesh")
    iterations = first.solve.iterations
    sent = iterations * np.array([sum(row) for row in first.partition.message_bytes], float)
    own = np.divide(np.median(seen.messages, axis=0), sent, out=np.zeros(len(sent)), where=sent > 0)
    hosts = observe(first).hosts

    def seconds(shares: tuple[float, ...]) -> Sequence[float]:
        made = partition(mesh, shares, method=first.case.placement.partitioner, seed=first.partition.seed)
        facts = metrics(mesh, made)
        found = communication_seconds(facts.neighbours, facts.message_bytes, hosts, wire, iterations, own)
        return found.tolist()

    return seconds
