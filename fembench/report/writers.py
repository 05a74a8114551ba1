"""Write a campaign in the formats of `formats.py`, with the times of the tables.

Sources: the readers of Extra-P 4.2 (JSON lines), TALP-Pages 3.8 (JSON of DLB) and
hatchet 2026.2 (split JSON of Caliper); OTF2 3.2.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from csv import writer as csv_writer
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fembench.base.arrays import F64
from fembench.base.tables import csv_cell
from fembench.base.terminal import silenced
from fembench.model.path import write_chrome
from fembench.records.case import FIELDS
from fembench.records.phases import ASSEMBLY, CG, CG_PARTS, COMMUNICATION, NAMES, SEND, TOP_LEVEL, WAIT
from fembench.records.record import Event, Record
from fembench.records.times import Times, times_of
from fembench.records.traced import alignment
from fembench.report import measures
from fembench.report.fields import read_fields
from fembench.report.headline import usable
from fembench.report.results import Result, results
from fembench.report.tables import CampaignResults

MEASURED = ("record", "verdict", "kind", "set", "rank", "host", "phase", "seconds", "count")
NAMING = ("mesh", "storage", "ranks")  # fields of a case that are always written
# of every measured time: the fields of its case, then what was measured
COLUMNS = (*(f"case_{name}" if name in MEASURED else name for name in FIELDS), *MEASURED)


def csv(campaign: CampaignResults, path: Path, *, brief: bool = False) -> None:
    """Every measured time, one row each: case, set, rank, host, phase, seconds, count.

    `brief`: without fields that all cases share, but for those that name a result, and
    without records whose times are packed: rows take a hundred times the room.
    """
    cases = [record.case.flat() for record in campaign.records]
    shared = {name for name in FIELDS if len({case[name] for case in cases}) < 2} if brief else set[str]()
    kept = {name: head for name, head in zip(FIELDS, COLUMNS) if name in NAMING or name not in shared}
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv_writer(stream, lineterminator="\n")
        writer.writerow((*kept.values(), *MEASURED))
        for record, case in zip(campaign.records, cases):
            if brief and times_of(record).large:
                continue
            same = [*map(csv_cell, (*(case[name] for name in kept), record.id)), record.verdict.status]
            writer.writerows((*same, *row) for row in samples(record, csv_cell))


def samples(
    record: Record, cell: Callable[[str], object] = str
) -> Iterator[tuple[str, int | None, int, object, str, float, int | None]]:
    """Rows of kind, set, rank, host, phase, seconds, count, for phases that occurred.

    `cell`: what a row has of the name of a host.
    """
    times = times_of(record)
    sets = list(
        zip(times.warmups, times.all_sets.tolist(), times.all_counts.tolist(), times.all_walls.tolist())
    )
    hosts = map(cell, record.environment.host_of_rank)
    totals = zip(hosts, times.program.tolist(), times.once.tolist())
    for rank, (host, total, once) in enumerate(totals):
        for phase, seconds in zip(NAMES, once):
            if seconds:
                yield "setup", None, rank, host, phase, seconds, None
        yield "run", None, rank, host, "total", total, None
        for k, (warmup, by_rank, counts, walls) in enumerate(sets):
            kind = "warmup" if warmup else "timed"
            for phase, seconds, count in zip(NAMES, by_rank[rank], counts[rank]):
                if count:
                    yield kind, k, rank, host, phase, seconds, count
            yield kind, k, rank, host, "total", walls[rank], None


def parquet(campaign: CampaignResults, path: Path) -> None:
    """The rows of `csv`, a row group per run."""
    import pyarrow
    from pyarrow import parquet

    kinds = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()}
    measured = dict.fromkeys(MEASURED, pyarrow.string())
    measured |= dict.fromkeys(("set", "rank", "count"), pyarrow.int64()) | {"seconds": pyarrow.float64()}
    of_case = [kinds.get(field.type, pyarrow.string()) for field in FIELDS.values()]
    schema = pyarrow.schema(list(zip(COLUMNS, [*of_case, *measured.values()])))
    with parquet.ParquetWriter(path, schema) as out:
        for record in campaign.records:
            rows = list(zip(*samples(record)))
            same = (*record.case.flat().values(), record.id, record.verdict.status)
            arrays = [*([value] * len(rows[0]) for value in same), *rows]
            out.write_table(pyarrow.table(dict(zip(COLUMNS, arrays)), schema=schema))


def extra_p(campaign: CampaignResults, folder: Path) -> None:
    """A file per method: the median of every run, by ranks and equations if they vary."""
    found = usable(results(campaign.records, campaign.nodes))
    meshes = Counter(n for n, _ in {(r.record.mesh.n_equations, r.mesh) for r in found})
    files: dict[str, list[Result]] = defaultdict(list)
    for r in found:
        twin = r.mesh if meshes[r.record.mesh.n_equations] > 1 else ""  # same size, another mesh
        files[_file_name(r.method, r.placement, twin)].append(r)
    for name, some in files.items():
        lines = b"".join(msgspec.json.encode(line) + b"\n" for line in _measurements(some))
        (folder / f"{name}.jsonl").write_bytes(lines)


def _measurements(found: Sequence[Result]) -> Iterator[dict[str, object]]:
    """Lines of seconds on the slowest rank, one for each phase and run.

    Extra-P wants every phase of every case: 0 for those that did not occur.
    """
    points = [{"ranks": r.ranks, "equations": r.record.mesh.n_equations} for r in found]
    varying = [key for key in points[0] if len({point[key] for point in points}) > 1] or ["ranks"]
    names = [name for name in dict.fromkeys(name for r in found for name in r.times) if _call_path(name)]
    for (r, point), name in itertools.product(zip(found, points), names):
        where = {"params": {key: point[key] for key in varying}, "callpath": _call_path(name)}
        time = r.times.get(name)
        for seconds in time.medians if time else [0.0] * len(r.runs):
            yield where | {"metric": "time", "value": seconds}


def _call_path(name: str) -> str:
    """'set->cg->cg.dot'; "" for sums over phases."""
    if name in (measures.SET, measures.RUN):
        return name
    if name in (NAMES[ASSEMBLY], NAMES[CG]):
        return f"set->{name}"
    if name.startswith(f"{NAMES[CG]}."):
        return f"set->{NAMES[CG]}->{name}"
    return f"run->{name}" if name in (*NAMES, measures.REST) else ""


def _file_name(*words: str) -> str:
    """'sym-jacobi-7-1' of 'sym · jacobi' and '7:1'."""
    return re.sub(r"[^\w.]+", "-", " ".join(filter(None, words))).strip("-")


def talp_pages(campaign: CampaignResults, folder: Path) -> None:
    """A folder per mesh and method, with the factors of every run that is not INVALID."""
    for r in usable(results(campaign.records, campaign.nodes)):
        place = folder / _file_name(r.mesh, r.method, r.placement)
        place.mkdir(exist_ok=True)
        for record in (record for record in r.pool.records if len(times_of(record).timed)):
            (place / f"{record.id}.json").write_bytes(msgspec.json.encode(_talp(record)))


def _talp(record: Record) -> dict[str, object]:
    """A run as DLB 3.8 has it; hardware counters, which are not read, are 0."""
    ranks = {"numCpus": (n := record.case.placement.ranks), "numMpiRanks": n, "numGpus": 0}
    regions = {"Global": (ASSEMBLY, CG), NAMES[ASSEMBLY]: (ASSEMBLY,), NAMES[CG]: (CG,)}
    timed = {name: phases for name, phases in regions.items() if times_of(record).seconds(*phases).any()}
    found = {name: ranks | _region(record, phases) for name, phases in timed.items()}
    commit = record.environment.commit
    tree: dict[str, object] = {"dlbVersion": "3.8.0", "timestamp": record.created, "resources": ranks}
    tree |= {"metadata": {"gitCommit": commit}} if commit != "unknown" else {}
    return tree | {"Application": found}


def _region(record: Record, phases: Sequence[int]) -> dict[str, float]:
    """Efficiencies of phases in a typical set, and nanoseconds; useful: outside messages."""
    times, n = times_of(record), record.case.placement.ranks
    outside = times.seconds(*phases)
    if CG in phases:
        outside = outside - times.seconds(*COMMUNICATION)
    useful = np.median(outside, axis=0)
    elapsed = float(np.median(times.slowest(*phases)))
    place = np.array(record.environment.rank_host)
    by_host = max(float(useful[place == host].mean()) for host in set(place.tolist()))
    mean, most = float(useful.mean()), float(useful.max())
    parallel = mean / elapsed
    return {
        "cycles": 0,
        "instructions": 0,
        "numMeasurements": len(times.timed),
        "elapsedTime": round(1e9 * elapsed),
        "usefulTime": round(1e9 * n * mean),
        "mpiTime": round(1e9 * n * (elapsed - mean)),
        "parallelEfficiency": parallel,
        "mpiParallelEfficiency": parallel,
        "mpiCommunicationEfficiency": most / elapsed,
        "mpiLoadBalance": mean / most,
        "mpiLoadBalanceIn": by_host / most,
        "mpiLoadBalanceOut": mean / by_host,
        "ompParallelEfficiency": 1.0,
    }


def caliper(campaign: CampaignResults, folder: Path) -> None:
    """A file per run: seconds of every rank in every phase, in a tree that adds up."""
    for record in campaign.records:
        nodes, rows = _tree(times_of(record))
        numbers = ("mpi.rank", "sum#time.duration", "inclusive#sum#time.duration")
        columns = ("Node order", "path", *numbers)
        tree = {
            "data": rows,
            "columns": columns,
            "column_metadata": [{"is_value": name != "path"} for name in columns],
            "nodes": nodes,
            "fembench": record.environment.versions.get("fembench", ""),
            "id": record.id,
            "created": record.created,
            "verdict": record.verdict.status,
            "hosts": ",".join(dict.fromkeys(record.environment.host_of_rank)),
            **record.case.flat(),
        }
        (folder / f"{record.id}.json").write_bytes(msgspec.json.encode(tree))


def _tree(times: Times) -> tuple[list[dict[str, Any]], list[tuple[int, int, int, float, float]]]:
    """(nodes, rows of node twice, rank, seconds outside its children, all its seconds).

    hatchet takes the order of the nodes from the first rows: those of rank 0.
    """
    nodes: list[dict[str, Any]] = []
    rows: list[tuple[int, int, int, float, float]] = []

    def add(label: str, all_of_it: F64, inner: F64, parent: int | None = None) -> int:
        here = len(nodes)
        above = {} if parent is None else {"parent": parent}
        nodes.append({"label": label, "column": "path"} | above)
        seconds = zip((all_of_it - inner).tolist(), all_of_it.tolist())
        rows.extend((here, here, rank, *both) for rank, both in enumerate(seconds))
        return here

    def add_phases(seconds: F64, parent: int) -> None:
        """Of (P, n_phases)."""
        for k in (k for k in TOP_LEVEL if seconds[:, k].any()):
            parts = [part for part in CG_PARTS if k == CG and seconds[:, part].any()]
            here = add(NAMES[k], seconds[:, k], seconds[:, parts].sum(axis=1), parent)
            for part in parts:
                add(NAMES[part], seconds[:, part], np.zeros(times.n_ranks), here)

    root = add(measures.RUN, times.program, times.program - times.unattributed)
    add_phases(times.once, root)
    for label, chosen in (("warm-up sets", times.warmups), ("timed sets", ~times.warmups)):
        if chosen.any():
            seconds = times.all_sets[chosen].sum(axis=0)
            whole = seconds[:, TOP_LEVEL].sum(axis=1)
            add_phases(seconds, add(label, whole, whole, root))
    return nodes, sorted(rows, key=lambda row: row[2])


def otf2(campaign: CampaignResults, folder: Path) -> None:
    """An archive per traced run."""
    from otf2 import writer

    trace: Any = None
    for record in (record for record in campaign.records if record.events):
        try:
            with silenced(), writer.open(str(folder / record.id), timer_resolution=10**9) as trace:
                _write_otf2(record, trace)
        except writer._otf2.Error as error:
            if trace:
                trace._handle = None  # or it is closed once more, and fails again
            raise OSError(f"OTF2: {error.description}") from error


def _write_otf2(record: Record, trace: Any) -> None:
    """The spans of every rank, in nanoseconds, with their messages."""
    from otf2.enums import GroupType, Paradigm

    made = trace.definitions
    hosts = record.environment.host_of_rank
    machine = made.system_tree_node("machine")
    nodes = {host: made.system_tree_node(host, parent=machine) for host in dict.fromkeys(hosts)}
    groups = [
        made.location_group(f"rank {rank}", system_tree_parent=nodes[host]) for rank, host in enumerate(hosts)
    ]
    places = [made.location("main", group=group) for group in groups]
    mpi = {"paradigm": Paradigm.MPI}
    made.group("ranks", group_type=GroupType.COMM_LOCATIONS, members=places, **mpi)
    everyone = made.group("world", group_type=GroupType.COMM_GROUP, members=places, **mpi)
    comm = made.comm("world", group=everyone)
    regions = [made.region(name) for name in record.phases]
    begin = min(e.begin for e in record.events)
    for rank, place in enumerate(places):
        out = trace.event_writer_from_location(place)
        for time, ends, e in _steps(record, rank, begin):
            _write_step(out, time, ends, e, regions[e.phase], comm)


def _steps(record: Record, rank: int, begin: float) -> Iterator[tuple[int, bool, Event]]:
    """(nanoseconds, whether it ends, the span) of a rank's spans, nested."""
    open_ones: list[tuple[int, bool, Event]] = []
    spans = sorted((e for e in record.events if e.rank == rank), key=lambda e: (e.begin, -e.end))
    for e in spans:
        first, last = (round(1e9 * (moment - begin)) for moment in (e.begin, e.end))
        while open_ones and open_ones[-1][0] <= first:
            yield open_ones.pop()
        yield first, False, e
        open_ones.append((last, True, e))
    yield from reversed(open_ones)


def _write_step(out: Any, time: int, ends: bool, e: Event, region: Any, comm: Any) -> None:
    """Messages leave when a span of sending begins, and have come when one of waiting ends."""
    if not ends:
        out.enter(time, region)
    for partner, n_bytes in zip(e.partners, e.bytes):
        if e.phase == SEND and not ends:
            out.mpi_send(time, partner, comm, 0, n_bytes)
        elif e.phase == WAIT and ends:
            out.mpi_recv(time, partner, comm, 0, n_bytes)
    if ends:
        out.leave(time, region)


def perfetto(campaign: CampaignResults, folder: Path) -> None:
    """The events of traced runs in Chrome's trace format."""
    for record in (record for record in campaign.records if record.events):
        e = record.environment
        notes = {"clocks": alignment(record), "spans dropped": sum(record.dropped)}
        path = folder / f"{record.id}.trace.json"
        write_chrome(_spans(record), [host.name for host in e.hosts], e.rank_host, path, otherData=notes)


def _spans(record: Record) -> Iterator[tuple[int, float, float, dict[str, Any]]]:
    for e in record.events:
        phase = record.phases[e.phase]
        partners = " ".join(map(str, e.partners)) or "all"  # of an all-reduce
        messages = {"partners": partners, "bytes": e.bytes} if e.bytes else {}
        args = {"iteration": e.iteration} | messages
        yield e.rank, e.begin, e.end, {"name": phase, "cat": phase.split(".")[0], "args": args}


def vtu(campaign: CampaignResults, folder: Path) -> None:
    """Displacement, von Mises stress and part of every run that has them."""
    from fembench.mesh.io import write
    from fembench.mesh.mesh import Mesh

    for name, path in campaign.fields.items():
        fields = read_fields(path)
        mesh = Mesh.create(fields.x, fields.cells, fields.element, name)
        write(
            mesh,
            folder / f"{name}.vtu",
            point_data={"displacement": fields.u},
            cell_data={"von_mises": fields.von_mises, "part": fields.part},
        )
