"""One job of a small program: a calibration, or repeated runs
with a check of the result."""

import os
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fembench.bench.describe import describe
from fembench.errors import InputError
from fembench.host.host import host_facts, taken_meter
from fembench.host.others import others_meter
from fembench.host.provenance import host_key
from fembench.launch.job import RankProgram
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.ranks.comm import Comm, together
from fembench.records.record import now_utc
from fembench.synthetic.speeds import label, parse_speeds
from fembench.synthetic.waits import FINE, timer_slack
from fembench_studies.programs import farm, graphs
from fembench_studies.programs.calibrate import (
    NOTHING,
    Learned,
    after_messages,
    by_operation,
    calibrate,
    learn,
)
from fembench_studies.programs.compute import Worker, worker_of
from fembench_studies.programs.kernels import KERNELS
from fembench_studies.programs.partners import AFTER, BEFORE, TRIP, round_trips
from fembench_studies.programs.record import APP_SCHEMA, AppCase, AppPrediction, AppRecord, Samples
from fembench_studies.programs.user_task import computed_again, is_code, same_code
from fembench_studies.programs.verified import verified

PACED = 15  # units of work
STATE = 5  # samples of computing just before and after a run with real messages
PATIENCE = 600.0  # seconds after which a job is ended


class AppJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The input of the ranks."""

    case: AppCase
    id: str
    command: str
    launcher: str = ""
    predicted: AppPrediction | None = None
    calibrate: int = 0  # samples per operation; if > 0, the job only calibrates
    synthetic: str = ""


def launch(
    case: AppCase,
    *,
    id: str,
    scratch: Path,
    command: str = "",
    hostfile: str = "",
    predicted: AppPrediction | None = None,
    calibrate: int = 0,
    timeout: float = PATIENCE,
) -> AppRecord:
    """The record of one job. `scratch`: a folder that rank 0's host can also see.

    Raises InputError, or RunFailedError if the job ends without a record.
    """
    line = job_line(case.ranks, hostfile)
    parse_speeds(case.emulate, case.ranks)
    if not 1 <= case.dilate < float("inf"):
        raise InputError(f"dilate = {case.dilate}: expected a number of at least 1")
    synthetic = os.environ.get("FEMBENCH_SYNTHETIC", "")
    job = AppJob(
        case=case, id=id, command=command, predicted=predicted, calibrate=calibrate, synthetic=synthetic
    )
    asleep = case.dilate > 1
    return measure(__name__, job, AppRecord, line, asleep=asleep, scratch=scratch, timeout=timeout)


def run_job(comm: Comm, job: AppJob) -> AppRecord | None:
    """The record on rank 0, None elsewhere. Collective."""
    case = job.case
    if case.dilate > 1:
        timer_slack(FINE)
    facts, taken = host_facts(), taken_meter()
    together(comm, lambda: same_code(case.program, case.code))
    pace = _pace(comm)
    worker = worker_of(comm, parse_speeds(case.emulate, comm.size), case.dilate)
    found, times, busy, done, learned = NOTHING, [], [], [], Learned()
    value, error = 0.0, 0.0
    if job.calibrate:
        sent = case.n_bytes if case.calls else 0
        found = calibrate(worker, case.program, case.tasks, case.size, job.calibrate, n_bytes=sent)
    room = graphs.Room(case, comm.rank) if case.calls and not job.calibrate else None
    before = _state(worker, case, BEFORE) if room else {}
    others = None if job.calibrate else others_meter(comm)
    for repetition in range(0 if job.calibrate else 1 + case.repetitions):
        speed = {} if room else learn(worker, case.program, case.tasks, case.size)
        worker.busy, worker.done = 0.0, 0
        seconds, value, error = _once(worker, case, room)
        if repetition:  # the first is a warm-up
            learned.append(speed)
            times.append(seconds)
            busy.append(worker.busy)
            done.append(worker.done)
    if room:
        times, value, error = _last_task(comm, case, times, value)
        found = found._replace(samples=before | _state(worker, case, AFTER))
    used = others() if others else None
    if times and not room:
        learned.append(learn(worker, case.program, case.tasks, case.size))
        found = found._replace(learned=by_operation(learned))
    rows = comm.gather((found, tuple(busy), tuple(done), pace))
    environment = describe(
        comm,
        facts,
        taken,
        launcher=job.launcher,
        command=job.command,
        synthetic=_emulated(job),
        dilate=case.dilate,
        others=used,
    )
    if rows is None or environment is None:
        return None
    timed, messages, taking, answering, speeds = (_by_rank(each) for each in zip(*(row[0] for row in rows)))
    return AppRecord(
        schema=APP_SCHEMA,
        id=job.id,
        created=now_utc(),
        case=case,
        environment=environment,
        predicted=job.predicted,
        seconds=tuple(times),
        busy=tuple(row[1] for row in rows),
        done=tuple(row[2] for row in rows),
        value=value,
        error=error,
        samples=timed,
        messages=messages,
        taking=taking,
        answering=answering,
        learned=speeds,
        pace=tuple(row[3] for row in rows),
    )


def _emulated(job: AppJob) -> str:
    """What is emulated, in words; "" if nothing is."""
    costs = "emulated message costs" if job.case.costs else ""
    return ", ".join(filter(None, [job.synthetic, label(job.case.emulate, job.case.dilate), costs]))


def _state(worker: Worker, case: AppCase, when: str) -> dict[str, list[float]]:
    """Messages and computing of this rank just before or after a run. Collective."""
    rounds = after_messages(worker, case.program, case.size, case.n_bytes, STATE)
    return {TRIP + when: round_trips(worker.comm, case), graphs.ROUND + when: rounds[graphs.ROUND]}


def _pace(comm: Comm) -> float:
    """The least seconds of a unit of work on this rank, while the others do the same."""
    comm.Barrier()
    times = []
    for _ in range(PACED):
        begin = time.perf_counter()
        graphs.burn(1)
        times.append(time.perf_counter() - begin)
    return min(times)


def _by_rank(rows: Sequence[Mapping[Any, Sequence[float]]]) -> Samples:
    """{quantity: [rank] seconds}, gathered from all ranks."""
    return {str(name): tuple(tuple(row[name]) for row in rows) for name in rows[0]}


def _once(worker: Worker, case: AppCase, room: graphs.Room | None) -> tuple[float, float, float]:
    """(seconds on rank 0, value, error relative to the
    tolerance) of one run. Collective."""
    comm = worker.comm
    is_farm = case.program in KERNELS or is_code(case.program)
    inputs = (
        farm.inputs_of(case.program, case.tasks, case.size, case.seed) if is_farm and not comm.rank else []
    )
    if room is None:
        worker.meet()
    else:
        comm.Barrier()
    begin = time.perf_counter()
    if room is not None:
        value, done = graphs.run_calls(worker, case, room)
        return done - begin, value, 0.0
    if is_farm:
        outputs = farm.run(worker, case.program, case.dealt, inputs, case.size)
        seconds = time.perf_counter() - begin
        worker.meet()
        if comm.rank:
            return seconds, 0.0, 0.0
        if is_code(case.program):
            return (seconds, *computed_again(case.program, outputs, case.tasks, case.size, case.seed))
        return (seconds, *verified(case.program, outputs, case.tasks, case.size, case.seed))
    last, done = graphs.run(worker, case)
    worker.meet()
    rows = comm.allgather((last, Span(host_key(), begin, done)))
    value, seconds = float(sum(v for v, _ in rows)), makespan([span for _, span in rows])
    return seconds, value, abs(value - graphs.expected(len(case.order), case.edges)) * 2.0


def _last_task(
    comm: Comm, case: AppCase, times: list[float], value: float
) -> tuple[list[float], float, float]:
    """(seconds of each repetition until the end of the last task, by its rank's clock; the last value of that
    task; its error). Collective, and so after all repetitions: what a rank does between two of them makes
    their first messages slower."""
    times, value = comm.bcast((times, value), case.host[-1])
    return times, value, abs(value - graphs.expected(len(case.order), case.edges)) * 2.0


class Span(NamedTuple):
    """The time span of a rank's work."""

    host: Hashable
    begin: float  # seconds of its host's clock
    done: float  # 0: the rank had no task


def makespan(spans: Sequence[Span]) -> float:
    """Seconds from the first begin to the last end; on several hosts, which share
    no clock, the longest span.

    The first begin counts because ranks leave the barrier one after another.
    """
    busy = [s for s in spans if s.done]
    if len({s.host for s in busy}) == 1:
        return max(s.done for s in busy) - min(s.begin for s in busy)
    return max((s.done - s.begin for s in busy), default=0.0)


PROGRAM = RankProgram(AppJob, lambda job: job.case.ranks, lambda comm, job, tell: run_job(comm, job))
