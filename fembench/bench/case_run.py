"""One case on every rank, from start to record.

What a rank imports before its clock runs, so that no phase contains an import.

references.json holds energies and fingerprints, so that a first run has a reference. It
is written by scripts/make_references.py: a direct solve for the small presets, CG to
1e-13 for the larger ones and, element by element, after some numbers of iterations. The
key is the content of mesh and problem, and the fixed work.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I64
from fembench.base.errors import InputError
from fembench.base.files import atomic_path
from fembench.bench.describe import (
    Offset,
    Sight,
    check_memory,
    device_of,
    environment_of,
    offset_of,
    sights,
    stamped,
)
from fembench.bench.iteration_work import roofs_before, seconds_of_threads, solve_facts
from fembench.bench.measure import Measurement, SetTicks, Timed, silent, start_plain
from fembench.bench.prepare import Prepared, prepare
from fembench.bench.verify import Solved, solved_again, verify
from fembench.fem.elements import cell_stress, von_mises
from fembench.fem.problem import ProblemSpec, resolved
from fembench.host.host import confine, host_facts, peak_memory, taken_meter
from fembench.host.provenance import host_key, host_names
from fembench.kernels.backend import kernels
from fembench.launch.begun import BEGIN
from fembench.launch.job import Job, RankProgram, Tell
from fembench.mesh.facets import load_graphs
from fembench.mesh.io import load_meshio
from fembench.mesh.presets import box_named
from fembench.mesh.sliced import is_sliced
from fembench.partition.methods import load_metis
from fembench.ranks.comm import Comm, on_root, together
from fembench.records.case import Case
from fembench.records.phases import NAMES, OUTPUT, START_UP, SYNC, VERIFY
from fembench.records.record import (
    NO_JOULES,
    SCHEMA,
    ClockCertificate,
    Environment,
    Event,
    Record,
    Reference,
    SetTimes,
    SolveFacts,
    Verification,
    now_utc,
)
from fembench.records.schema import rows
from fembench.records.validity import judge
from fembench.records.verdict import Verdict
from fembench.solve.from_names import load_builders
from fembench.synthetic.slowness import Slowness, slowness_of, turn_of
from fembench.synthetic.speeds import Change, parse_changes, parse_speeds
from fembench.timing.certificate import Certifier, worst_costs, worst_of
from fembench.timing.tracer import Message, TracerLike, make_tracer, span

SET_UP_SPANS = 64  # room for those before the sets


class RankTimes(msgspec.Struct, frozen=True):
    """One rank's stamps, in ticks, with the certificate that converts them to seconds."""

    setup: I64  # (n_phases,)
    total: int
    sets: list[SetTicks]
    events: NDArray  # structured: phase, iteration, begin, end in seconds, message
    messages: list[Message]  # what `message` counts
    dropped: int
    certificate: ClockCertificate


class Told(NamedTuple):
    """What rank 0 knows after a run, beyond its own part."""

    ranks: list[RankTimes]
    memory: list[int]  # [rank] bytes at the peak
    environment: Environment
    offsets: list[Offset]
    facts: SolveFacts
    verification: Verification
    reference: Reference | None


Start = Callable[[Comm, Case, Prepared, TracerLike, Tell], Timed]


def run_case(
    comm: Comm, job: Job, begin: float, start: Start = start_plain, tell: Tell = silent
) -> Record | None:
    """Run, verify and describe one case: its record on rank 0, else None. Collective.

    `start` sets up what this measurement needs beyond the case itself. `tell` gets lines
    of progress.
    """
    case = job.case
    if job.cores:
        together(comm, lambda: confine(job.cores[comm.rank]))
    together(comm, lambda: load_libraries(case, comm.rank))
    together(comm, lambda: use_threads(case.placement.threads))
    device = device_of(comm, case.devices)
    certifier = Certifier(case.effort.clock, lambda costs: worst_costs(comm.allgather(costs)))
    certificate = certifier.start()
    tracer = make_tracer(certificate.name, SET_UP_SPANS, certificate.ticks_per_second)
    host, taken = host_facts(), taken_meter()
    comm.Barrier()
    first, leaders = _start_clock(comm, tracer, begin)
    with span(tracer, SYNC):
        before = sights(comm, tracer, leaders)
    prepared = msgspec.structs.replace(prepare(comm, case, tracer), device=device)
    check_memory(comm, case, prepared)
    timed = start(comm, case, prepared, tracer, tell)
    with span(tracer, SYNC):  # ranks wait for each other here
        slowness = _slowness(comm, job, host.cores, on_device=device is not None)
    with span(tracer, VERIFY):
        bandwidths = roofs_before(comm, prepared, case.method.storage)
    setup = tracer.ticks()
    use_threads(case.placement.threads)  # and count their seconds from here
    measured = timed(tracer, slowness)
    tracer.reset(events=False)
    with span(tracer, SYNC):
        after = sights(comm, tracer, leaders)
    with span(tracer, VERIFY):
        tell("verifying")
        spent = seconds_of_threads(comm)
        memory = comm.gather(peak_memory())
        solved = Solved(prepared, measured.operator, measured.result.x)
        verification = verify(solved)
        facts = solve_facts(comm, prepared, measured, tracer, bandwidths)
        facts = msgspec.structs.replace(facts, thread_seconds=spent)
        reference = _reference(comm, job, prepared)
    with span(tracer, OUTPUT):
        write_fields(comm, job.fields_path, prepared, solved.u)
    total = tracer.now() - first
    ranks = comm.gather(_times(tracer, setup + tracer.ticks(), total, measured, certifier.finish()))
    host = msgspec.structs.replace(host, energy=measured.energy)
    environment = environment_of(comm, job, host, taken, measured.others, device)
    if ranks is None or memory is None or environment is None:
        return None
    offsets = _offsets(ranks, environment.rank_host, before, after)
    told = Told(ranks, memory, environment, offsets, facts, verification, reference)
    record = _record(job, prepared, measured, told)
    return msgspec.structs.replace(record, verdict=judge(record))


def use_threads(n: int) -> None:
    """Let this rank compute with n threads. Raises InputError if its kernels cannot."""
    if n > 1 and not kernels.HAS_THREADS:
        raise InputError(
            f"threads = {n}: the kernels were compiled without OpenMP, so a rank has 1 thread; install them "
            "with a compiler that has OpenMP, as gcc does"
        )
    kernels.use_threads(n)


def _record(job: Job, prepared: Prepared, measured: Measurement, told: Told) -> Record:
    """The record, not judged yet."""
    ranks, rank_host = told.ranks, told.environment.rank_host
    return Record(
        schema=SCHEMA,
        id=job.id,
        created=now_utc(),
        case=job.case,
        environment=told.environment,
        mesh=prepared.mesh,
        problem=resolved(prepared.spec),
        partition=prepared.partition,
        clock=stamped(worst_of([r.certificate for r in ranks]), told.environment.devices),
        phases=NAMES,
        setup=_by_rank(ranks, lambda r: r.setup),
        total=tuple(r.total / r.certificate.ticks_per_second for r in ranks),
        sets=tuple(_set_times(ranks, k, rank_host) for k in range(len(measured.sets))),
        solve=told.facts,
        verification=told.verification,
        reference=told.reference,
        peak_memory=tuple(told.memory),
        events=tuple(_events(ranks, {o.host: o for o in told.offsets}, rank_host)),
        verdict=Verdict(status="INVALID", reasons=(), rules=()),
        balance=measured.balance,
        dropped=tuple(r.dropped for r in ranks),
        offsets=tuple(o.in_record() for o in told.offsets),
    )


def _reference(comm: Comm, job: Job, prepared: Prepared) -> Reference | None:
    """The reference given, shipped, or solved again with another storage. Collective."""
    known = job.reference
    if comm.rank == 0 and known is None:  # the others need not read the file
        known = shipped(job.case, prepared.mesh.hash, prepared.spec)
    return comm.bcast(known) or solved_again(job.case, prepared)


def _start_clock(comm: Comm, tracer: TracerLike, begin: float) -> tuple[int, list[int]]:
    """Record the start-up: (ticks at its begin, first rank of every clock).

    Time 0 of a host's events is a barrier: one moment for its ranks on one clock.
    """
    now = tracer.now()
    before = int((time.perf_counter() - begin) * tracer.ticks_per_second)
    here = (host_key(), tracer.clock_name)
    everyone = comm.allgather((here, now))
    tracer.origin = min(other for where, other in everyone if where == here)
    clocks = [where for where, _ in everyone]
    tracer.recording = True
    tracer.iteration = -1
    tracer.add(START_UP, now - before, now)
    return now - before, [clocks.index(where) for where in dict.fromkeys(clocks)]


def _slowness(comm: Comm, job: Job, cores: int, *, on_device: bool) -> Slowness:
    """This rank's emulated slowness; `cores` of its host. Collective; raises InputError."""
    given = job.case.synthetic
    speeds = together(comm, lambda: parse_speeds(given.emulate, comm.size))
    changes = together(comm, lambda: parse_changes(given.emulate_change, speeds))
    if given.hot_spot and not changes:
        changes = (Change(0, speeds),)  # blocks change, if speeds do not
    hosts = host_names(comm)
    crowded = hosts.count(hosts[comm.rank]) > cores or bool(job.synthetic)
    turn = turn_of(comm.rank, hosts)
    return slowness_of(
        comm.rank, speeds, given.dilate, changes, crowded=crowded, turn=turn, on_device=on_device
    )


def _times(
    tracer: TracerLike, setup: I64, total: int, measured: Measurement, certificate: ClockCertificate
) -> RankTimes:
    tracer.ticks_per_second = certificate.ticks_per_second  # that of the whole run
    return RankTimes(
        setup, total, measured.sets, tracer.events(), tracer.messages, tracer.dropped, certificate
    )


def _offsets(
    ranks: list[RankTimes], rank_host: tuple[int, ...], before: list[Sight], after: list[Sight]
) -> list[Offset]:
    """The offset of every host's clock from that of rank 0's host, which comes first."""
    rates = [r.certificate.ticks_per_second for r in ranks]
    found = [offset_of(a, b, rates[0], rates[a.rank], rank_host[a.rank]) for a, b in zip(before, after)]
    return [Offset(host=rank_host[0]), *found]


def _by_rank(ranks: list[RankTimes], ticks: Callable[[RankTimes], I64 | int]) -> Any:
    """Seconds [rank], or [rank][phase], as a record holds them."""
    return rows(np.array([ticks(r) / r.certificate.ticks_per_second for r in ranks]))


def _set_times(ranks: list[RankTimes], k: int, rank_host: tuple[int, ...]) -> SetTimes:
    first = ranks[0].sets[k]
    joules = [NO_JOULES] * (max(rank_host) + 1)
    for rank, at in zip(ranks, rank_host):
        joules[at] = max(joules[at], rank.sets[k].joules)
    return SetTimes(
        warmup=first.warmup,
        seconds=_by_rank(ranks, lambda r: r.sets[k].ticks),
        counts=rows(np.array([r.sets[k].counts for r in ranks])),
        iterations=first.iterations,
        residual=first.residual,
        total=_by_rank(ranks, lambda r: r.sets[k].total),
        joules=tuple(joules) if max(joules) >= 0 else (),
    )


def _events(
    ranks: list[RankTimes], offsets: dict[int, Offset], rank_host: tuple[int, ...]
) -> Iterator[Event]:
    """The events of all ranks, on the clock of rank 0's host."""
    for rank, times in enumerate(ranks):
        common = offsets[rank_host[rank]].common
        for phase, iteration, begin, end, message in times.events.tolist():
            partners, n_bytes = times.messages[message]
            yield Event(rank, phase, iteration, common(begin), common(end), partners, n_bytes)


def load_libraries(case: Case, rank: int) -> None:
    """Import what this rank needs to run the case; raises InputError for a wrong name."""
    import numpy.ma  # noqa: F401  np.unique imports it when it is first called

    load_builders(case.method)
    if case.placement.partitioner == "blocks" or not (rank == 0 or case.placement.replicated):
        return
    if case.placement.ranks > 1 and case.placement.partitioner == "metis":
        load_metis()
    if is_sliced(case.question.mesh):
        if case.placement.partitioner == "metis":
            load_graphs()
    elif box_named(case.question.mesh) is None:
        load_meshio()
        load_graphs()


FILE = Path(__file__).with_name("references.json")


def key_of(mesh_hash: str, spec: ProblemSpec, iterations: int = 0, precond: str = "none") -> str:
    """The key of a reference: of a solution or, with the method, of fixed work."""
    problem = msgspec.json.encode(resolved(spec) | {"name": ""}, order="sorted")  # whatever its name
    work = f"{iterations} {precond}" if iterations else ""
    return hashlib.sha256(mesh_hash.encode() + problem + work.encode()).hexdigest()[:32]


def shipped(case: Case, mesh_hash: str, spec: ProblemSpec) -> Reference | None:
    """The reference of a case; None if none comes with fembench."""
    if case.stop.iterations and case.method.petsc_options:
        return None  # they may choose another method
    return _table().get(key_of(mesh_hash, spec, case.stop.iterations, case.method.precond))


@cache
def _table() -> dict[str, Reference]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Reference]) if FILE.exists() else {}


def write_fields(comm: Comm, path: str, prepared: Prepared, u: F64) -> None:
    """Write the fields to `path` (.npz); nothing if it is "". Collective."""
    if not path:
        return
    sub = prepared.sub
    stress = von_mises(cell_stress(sub.x, sub.cells, sub.element, *prepared.lame, u))
    pieces = comm.gather((sub.global_nodes, sub.x, u, sub.global_cells, sub.global_nodes[sub.cells], stress))
    on_root(comm, lambda: _join(Path(path), sub.element, pieces or []))


def _join(path: Path, element: str, pieces: list[tuple]) -> None:
    n_nodes = 1 + max(int(p[0].max()) for p in pieces)
    n_cells = sum(len(p[3]) for p in pieces)
    x, u = np.zeros((n_nodes, 3)), np.zeros((n_nodes, 3))
    cells = np.zeros((n_cells, pieces[0][4].shape[1]), np.int32)
    stress = np.zeros(n_cells)
    part = np.zeros(n_cells, np.int32)
    for rank, (nodes, where, displacement, numbers, connectivity, values) in enumerate(pieces):
        x[nodes], u[nodes] = where, displacement
        cells[numbers], stress[numbers], part[numbers] = connectivity, values, rank
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, x=x, cells=cells, element=element, u=u, von_mises=stress, part=part)


def program(start: Start) -> RankProgram[Job]:
    """Runs one case."""
    return RankProgram(
        Job,
        lambda job: job.case.placement.ranks,
        lambda comm, job, tell: run_case(comm, job, BEGIN, start, tell),
    )


PROGRAM = program(start_plain)
