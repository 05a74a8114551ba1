"""What every rank of a comparison runs.

One session: every peer is built several times, solves once to the tolerance and is
compared with the exported u; those that agree then take turns, in a random order for
every repetition.
"""

import random
from pathlib import Path

import fembench.solve.petsc as petsc
from fembench.base.errors import InputError
from fembench.bench.describe import environment_of
from fembench.bench.prepare import prepare
from fembench.host.host import host_facts, taken_meter
from fembench.host.others import others_meter
from fembench.launch.job import Job, RankProgram, Tell
from fembench.peers.catalog import ENTRIES, Entry, PeersJob, missing
from fembench.peers.contest import Contest, Stage, build, check, free, on_one, repeat
from fembench.peers.system import export, make_system
from fembench.ranks.comm import Comm, alone
from fembench.records.contest import PEERS_SCHEMA, PeerRun, PeersRecord, SystemFacts
from fembench.records.record import now_utc
from fembench.timing.tracer import NullTracer

BUILDS = 3  # times that each peer is built; the first does not count, the last one stays


def compare(comm: Comm, job: PeersJob, say: Tell) -> PeersRecord | None:
    """The whole session: the record on rank 0, None elsewhere. Collective."""
    host, taken = host_facts(), taken_meter()
    stage = set_stage(comm, job, say)
    contests, absent = contests_of(comm, job)
    if any(c.entry.peer.startswith("petsc") for c in contests):
        start_petsc()
    others = others_meter(comm)
    run_all(stage, contests, say)
    used = others()
    here = Job(case=job.case, id="peers", command=job.command, launcher=job.launcher)
    environment = environment_of(comm, here, host, taken, used)
    if stage.serial is None or stage.system is None or environment is None:
        return None
    system = stage.system
    return PeersRecord(
        schema=PEERS_SCHEMA,
        created=now_utc(),
        case=job.case,
        environment=environment,
        mesh=stage.serial.mesh,
        system=SystemFacts(
            n_rows=system.f.size, nonzeros=system.K.nnz, residual=system.residual, folder=job.export
        ),
        runs=(*(c.result() for c in contests), *absent),
        parity=job.parity,
    )


def set_stage(comm: Comm, job: PeersJob, say: Tell) -> Stage:
    """Prepare the case on one rank and, if there are more, on all; export it. Collective."""
    say(f"the system of {job.case.question.mesh}, {job.case.question.problem}, on one rank")
    single = job.case.with_(ranks=1, shares="")
    serial = on_one(comm, lambda: prepare(alone(), single, NullTracer()))
    system = on_one(comm, lambda: make_system(serial) if serial else None)
    if job.export:
        say(f"export to {job.export}")
        on_one(comm, lambda: export(system, Path(job.export)) if system else None)
    parallel = prepare(comm, job.case, NullTracer()) if comm.size > 1 else None
    return Stage(comm, job, serial, parallel, system)


def contests_of(comm: Comm, job: PeersJob) -> tuple[list[Contest], list[PeerRun]]:
    """The requested entries: those to run on one rank, on all, and those missing."""
    entries = [e for e in ENTRIES if e.name in job.names]
    lacking = comm.bcast([missing(e) for e in entries])
    pairs = list(zip(entries, lacking))
    contests = [Contest(e, n) for e, how in pairs if not how for n in ranks_of(e, comm.size)]
    absent = [
        PeerRun(peer=e.peer, precond=e.precond, ranks=1, status="missing", note=how)
        for e, how in pairs
        if how
    ]
    return contests, absent


def ranks_of(entry: Entry, n: int) -> tuple[int, ...]:
    """1 and, for a parallel peer, n."""
    return (1, n) if entry.parallel and n > 1 else (1,)


def start_petsc() -> None:
    """Load PETSc on all ranks; if that fails, each of its peers says so. Collective."""
    try:
        petsc.library()
    except InputError:
        return


def run_all(stage: Stage, contests: list[Contest], say: Tell) -> None:
    """Build, check, then repeat in turns. Collective."""
    for k, contest in enumerate(contests * BUILDS):
        say(f"building {contest.name} ({k + 1} of {BUILDS * len(contests)})")
        build(stage, contest)
    for k, contest in enumerate(contests):
        say(f"checking {contest.name} ({k + 1} of {len(contests)})")
        check(stage, contest)
    order = random.Random(0)
    for k in range(stage.job.repetitions):
        timed = [c for c in contests if c.agrees]
        say(f"repetition {k + 1} of {stage.job.repetitions}: {len(timed)} peers in turns")
        for contest in order.sample(timed, len(timed)):
            repeat(stage, contest)
    for contest in contests:
        free(contest)


PROGRAM = RankProgram(PeersJob, lambda job: job.case.placement.ranks, compare)
