"""One case, start to record, on every rank."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from fembench.bench.describe import environment_of
from fembench.bench.fields import write_fields
from fembench.bench.job import Job
from fembench.bench.measure import Measured, SetTicks, Timed, start_plain
from fembench.bench.prepare import Prepared, prepare
from fembench.bench.references import shipped
from fembench.bench.verify import Solved, verify
from fembench.bench.work import rank_triads, solve_facts
from fembench.dist.agree import together
from fembench.dist.comm import Comm, wtime
from fembench.fem.problem import resolved
from fembench.machine.confine import confine
from fembench.machine.emulate import parse_speeds, stretched, turn_of
from fembench.machine.host import host_facts, peak_memory, taken_meter
from fembench.records.case import Case
from fembench.records.ids import now_utc
from fembench.records.record import SCHEMA, ClockCertificate, Event, Record, SetTimes, Verdict
from fembench.records.validity import judge
from fembench.timing.certificate import Certificate, Certifier
from fembench.timing.phases import NAMES, OUTPUT, START_UP, SYNC, VERIFY
from fembench.timing.tracer import TracerLike, make_tracer, span

SPANS_AN_ITERATION = 24  # room in the tracer's buffer; the loop stamps fewer
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class RankTimes:
    """One rank's stamps, still in ticks, with the certificate that turns them into seconds."""

    setup: I64  # (n_phases,)
    total: int
    sets: list[SetTicks]
    events: NDArray  # structured: phase, iteration, begin, end in seconds at the first calibration
    certificate: Certificate


Start = Callable[[Comm, Case, Prepared, TracerLike], Timed]


def run_case(comm: Comm, job: Job, begin: float, start: Start = start_plain) -> Record | None:
    """Run, verify and describe one case; the record on rank 0, None elsewhere. Collective.

    `start` sets up what is to be timed beyond what all cases need.
    """
    case = job.case
    if job.cores:
        together(comm, lambda: confine(job.cores[comm.rank]))
    certifier = Certifier(case.clock, wtime)
    certificate = certifier.start()
    tracer = make_tracer(
        certificate.name,
        64 + SPANS_AN_ITERATION * case.trace_iterations,
        certificate.ticks_per_second,
        certifier.clock.read,
    )
    host, taken = host_facts(), taken_meter()
    comm.Barrier()
    first = _start_clock(comm, tracer, begin)
    prepared = prepare(comm, case, tracer)
    timed = start(comm, case, prepared, tracer)
    with span(tracer, SYNC):  # ranks wait for each other here
        speeds = together(comm, lambda: parse_speeds(case.emulate, comm.size))
        hosts = comm.allgather(platform.node())
    with span(tracer, VERIFY):
        triads_before = rank_triads(comm, prepared)
    setup = tracer.ticks()
    crowded = hosts.count(platform.node()) > host.cores or bool(job.synthetic)
    turn = turn_of(comm.rank, hosts)
    slowed = stretched(tracer, speeds[comm.rank], case.dilate, crowded=crowded, turn=turn)
    measured = timed(slowed)
    tracer.reset(events=False)
    with span(tracer, VERIFY):
        memory = comm.gather(peak_memory())
        solved = _solved(prepared, measured)
        verification = verify(solved)
        facts = solve_facts(comm, prepared, measured, tracer, triads_before)
    with span(tracer, OUTPUT):
        write_fields(comm, job.fields_path, prepared, solved.u)
    total = tracer.now() - first
    times = RankTimes(setup + tracer.ticks(), total, measured.sets, tracer.events(), certifier.finish())
    ranks = comm.gather(times)
    environment = environment_of(comm, job, host, taken)
    if ranks is None or memory is None or environment is None:
        return None
    record = Record(
        schema=SCHEMA,
        id=job.id,
        created=now_utc(),
        case=case,
        environment=environment,
        mesh=prepared.mesh,
        problem=resolved(prepared.spec),
        partition=prepared.partition,
        clock=_worst([r.certificate for r in ranks]),
        phases=NAMES,
        setup=_by_rank(ranks, lambda r: r.setup),
        total=tuple(r.total / r.certificate.ticks_per_second for r in ranks),
        sets=tuple(_set_times(ranks, k) for k in range(len(measured.sets))),
        solve=facts,
        verification=verification,
        reference=job.reference or shipped(case, prepared.mesh.hash, prepared.spec),
        peak_memory=tuple(memory),
        events=tuple(_events(ranks)),
        verdict=Verdict(status="INVALID", reasons=(), rules=()),
        balance=measured.balance,
    )
    return msgspec.structs.replace(record, verdict=judge(record))


def _start_clock(comm: Comm, tracer: TracerLike, begin: float) -> int:
    """Count what came before as start-up. Time 0 of all events is one barrier.

    Ranks of one host read one clock, so they share its moment; across hosts the barrier is the common one.
    """
    now = tracer.now()
    before = int((time.perf_counter() - begin) * tracer.ticks_per_second)
    here = (platform.node(), tracer.clock_name)
    tracer.origin = min(other for where, other in comm.allgather((here, now)) if where == here)
    tracer.recording = True
    tracer.iteration = -1
    tracer.add(START_UP, now - before, now)
    return now - before


def _solved(prepared: Prepared, measured: Measured) -> Solved:
    return Solved(
        sub=prepared.sub,
        interface=prepared.interface,
        operator=measured.operator,
        spec=prepared.spec,
        extent=prepared.extent,
        load=prepared.load,
        rhs=prepared.rhs,
        x=measured.result.x,
    )


def _by_rank(ranks: list[RankTimes], ticks: Callable[[RankTimes], I64]) -> tuple[tuple[float, ...], ...]:
    """Seconds [rank][phase]."""
    return tuple(tuple((ticks(r) / r.certificate.ticks_per_second).tolist()) for r in ranks)


def _set_times(ranks: list[RankTimes], k: int) -> SetTimes:
    first = ranks[0].sets[k]
    return SetTimes(
        warmup=first.warmup,
        seconds=_by_rank(ranks, lambda r: r.sets[k].ticks),
        counts=tuple(tuple(r.sets[k].counts.tolist()) for r in ranks),
        iterations=first.iterations,
        residual=first.residual,
        total=tuple(r.sets[k].total / r.certificate.ticks_per_second for r in ranks),
    )


def _worst(certificates: list[Certificate]) -> ClockCertificate:
    """The certificate that all ranks can stand by: uncertified first, then the largest drift."""
    worst = max(certificates, key=lambda c: (not c.certified, c.drift))
    fields = {name: getattr(worst, name) for name in Certificate.__dataclass_fields__}
    return ClockCertificate(**fields | {"ranks": tuple(c.name for c in certificates)})


def _events(ranks: list[RankTimes]) -> list[Event]:
    return [
        Event(
            rank=rank,
            phase=int(e["phase"]),
            iteration=int(e["iteration"]),
            begin=float(e["begin"]),
            end=float(e["end"]),
        )
        for rank, times in enumerate(ranks)
        for e in times.events
    ]
