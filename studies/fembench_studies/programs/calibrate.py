"""Calibration of programs: times of operations, messages to rank 0, and
a farm's tasks and results.

Ranks that compute at the same time in a run do so here, too. Messages are exchanged by
one pair at a time, while all other ranks sleep.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fembench.ranks.comm import Comm, alone
from fembench_studies.programs import farm, graphs
from fembench_studies.programs.compute import Worker
from fembench_studies.programs.kernels import Do
from fembench_studies.programs.round_trips import BySize, half_round_trips
from fembench_studies.programs.user_task import is_farm, kernel_of

SIZES = (8, 4096, 65536, 524288)  # bytes
EXCHANGED = (8, 65536, 1048576)  # bytes of a farm's tasks and results
TRIPS = 7  # samples of a message
LEARN = 1.5  # seconds, in which all ranks compute at full speed
TURNS = 8  # of learning and sampling: the machine changes between them, and so it does until a run
LOW = 0.1  # quantile: some tasks meet a faster moment of their core, many a slower one
IN_A_ROW = 5  # consecutive tasks or messages per sample: a run takes their mean
Samples = dict[str, list[float]]  # operation -> seconds of one
Learned = list[dict[str, float]]  # [turn] operation -> seconds at full speed; {}: nothing is emulated


class Calibrated(NamedTuple):
    """The samples of one rank."""

    samples: Samples
    messages: BySize  # half of a round trip with rank 0
    taking: BySize  # farms: receiving a task occupies the worker
    answering: BySize  # farms: sending a result occupies the worker
    learned: Samples  # at full speed, in each turn; {}: nothing is emulated


NOTHING = Calibrated({}, {}, {}, {}, {})


def calibrate(
    worker: Worker, program: str, tasks: int, size: int, count: int, *, n_bytes: int = 0
) -> Calibrated:
    """`count` samples of every operation and message of the program. Collective.

    `n_bytes`: of the messages of a ring, fork or join with real messages, whose tasks
    have `size` rounds instead of units; see `after_messages`.
    """
    found, learned = (
        (after_messages(worker, program, size, n_bytes, count), [])
        if n_bytes
        else samples(worker, program, tasks, size, count)
    )
    sent = half_round_trips(worker.comm, worker.meet, SIZES, samples=TRIPS, in_a_row=IN_A_ROW)
    exchanged = exchanges(worker) if is_farm(program) else ({}, {})
    return Calibrated(found, sent, *exchanged, by_operation(learned))


def samples(worker: Worker, program: str, tasks: int, size: int, count: int) -> tuple[Samples, Learned]:
    """(`count` samples of every operation on this rank, each the mean over
    consecutive tasks; what was learned in each turn). Collective.

    Emulated ranks learn their speed anew in each of TURNS: between two, it changes as
    much as from a calibration to a run.
    """
    turns = min(TURNS, count)
    found: Samples = {}
    learned: Learned = []
    for turn in range(turns):
        learned.append(learn(worker, program, tasks, size))
        share = count * (turn + 1) // turns - count * turn // turns
        for operation, row in _sampled(worker, program, tasks, size, share).items():
            found.setdefault(operation, []).extend(row)
    return found, learned


def _sampled(worker: Worker, program: str, tasks: int, size: int, count: int) -> Samples:
    """`count` samples of every operation on this rank. Collective.

    The coordinator of a farm does not compute at the same time as its
    workers, so it is sampled alone.
    """
    found: Samples = {}
    last = min(worker.comm.size - 1, is_farm(program))
    for group in range(last + 1):
        worker.meet()
        if group == min(worker.comm.rank, last):
            found = _sample(worker, _task(program, tasks, size), count)
    worker.meet()
    return found


def learn(worker: Worker, program: str, tasks: int, size: int) -> dict[str, float]:
    """Let emulated ranks find the time of every operation at full speed, which they keep
    and return; {} if nothing is emulated. Collective.

    All ranks compute at the same time, as in a run. The least time of all would be that of a rare
    moment, which one job meets and another does not.
    """
    task = _task(program, tasks, size)
    for _ in worker.slowness.rehearsals(alone(), LEARN, among=low):
        task(worker.compute)
    worker.slowness.share(worker.comm)
    return dict(worker.slowness.learned)


def low(times: list[float]) -> float:
    """The low quantile of some times."""
    return float(np.quantile(times, LOW))


def by_operation(learned: Learned) -> Samples:
    """operation -> [turn] seconds."""
    return {name: [each[name] for each in learned] for name in (learned[0] if learned else ())}


def after_messages(worker: Worker, program: str, size: int, n_bytes: int, count: int) -> Samples:
    """`count` samples of a round of work on this rank, in tasks of `size` rounds. Collective.

    Each is the mean over consecutive tasks, which follow a message each. Ranks take turns, as
    they never compute at the same time in a ring, fork or join; the others wait in MPI. In a
    ring, they do so task by task, and a task after waiting takes longer than one after the
    other: its data and the interpreter have left the caches.
    """
    if program == "ring":
        return _around(worker, size, n_bytes, count)
    comm, found = worker.comm, Samples()
    for rank in range(comm.size):
        comm.Barrier()
        if comm.rank in (rank, (rank + 1) % comm.size):
            found |= _received(worker, rank, size, n_bytes, count)
    comm.Barrier()
    return found


def _around(worker: Worker, size: int, n_bytes: int, count: int) -> Samples:
    """The samples on every rank, if each sends a message on to the next one after its task."""
    comm, tasks = worker.comm, TimedTasks(size, n_bytes)
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.Barrier()
    for k in range(1 + count * IN_A_ROW):
        if k or comm.rank:
            tasks.receive(comm, before)
        tasks.do(after)
        comm.Send(tasks.out, after)
    if not comm.rank:
        tasks.receive(comm, before)
    comm.Barrier()
    return tasks.samples(count)


def _received(worker: Worker, rank: int, size: int, n_bytes: int, count: int) -> Samples:
    """The samples on `rank`, nothing on the rank that sends to it. Both call."""
    comm, sender, tasks = worker.comm, (rank + 1) % worker.comm.size, TimedTasks(size, n_bytes)
    for _ in range(1 + count * IN_A_ROW):
        if comm.rank == sender:
            comm.Send(tasks.out, rank)
        else:
            tasks.receive(comm, sender)
            tasks.do(sender)
    return tasks.samples(count) if comm.rank == rank else {}


class TimedTasks:
    """Tasks of `size` rounds of work between messages of `n_bytes`, each timed as `graphs.run_calls` does."""

    def __init__(self, size: int, n_bytes: int) -> None:
        self.out, self.into = np.ones(n_bytes // 8), np.zeros(n_bytes // 8)
        self._size, self._took, self._values = size, list[float](), dict[int, float]()

    def receive(self, comm: Comm, source: int) -> None:
        """Receive a message."""
        comm.Probe(source)
        comm.Recv(self.into, source)

    def do(self, target: int) -> None:
        """Do a task after which a message may be sent to `target`."""
        step, value = graphs.ProgramStep(0, False, [], [], [(target, 0)]), float(len(self._took))
        begin = time.perf_counter()
        graphs.compute(step, value, self._values, self._size, self.out, [])
        self._took.append((time.perf_counter() - begin) / self._size)

    def samples(self, count: int) -> Samples:
        """`count` means over consecutive tasks, without the first task."""
        return {graphs.ROUND: np.reshape(self._took[1:], (count, IN_A_ROW)).mean(axis=1).tolist()}


def _task(program: str, tasks: int, size: int) -> Callable[[Do], object]:
    """One task of the program, ready to run."""
    if not is_farm(program):
        units = max(size, 1)
        return lambda do: do(graphs.UNIT, units, graphs.burn, units)
    kernel, tasks = kernel_of(program), max(tasks, 1)
    data = kernel.make(tasks // 2, tasks, size, 0)
    return lambda do: kernel.run(do, data, size)


def _sample(worker: Worker, task: Callable[[Do], object], count: int) -> Samples:
    """Means over several consecutive tasks, without the first task."""
    took: Samples = {}

    def timed(operation: str, times: float, function: Callable[..., Any], /, *arguments: object) -> Any:
        begin = time.perf_counter()
        result = worker.compute(operation, times, function, *arguments)
        took.setdefault(operation, []).append((time.perf_counter() - begin) / max(times, 1.0))
        return result

    for _ in range(1 + count * IN_A_ROW):
        task(timed)
    return {name: np.reshape(row[1:], (count, IN_A_ROW)).mean(axis=1).tolist() for name, row in took.items()}


def exchanges(worker: Worker) -> tuple[BySize, BySize]:
    """(taking, answering): seconds for which a task and its result occupy this
    rank in a farm. Collective.

    As in a run, the task has already arrived, and the coordinator polls for results.
    """
    taking: BySize = {n: [] for n in EXCHANGED}
    answering: BySize = {n: [] for n in EXCHANGED}
    for rank in range(1, worker.comm.size):
        worker.meet()
        if worker.comm.rank not in (0, rank):
            continue
        for n_bytes in EXCHANGED:
            if worker.comm.rank == 0:
                _coordinate(worker, rank, n_bytes // 8)
            else:
                taking[n_bytes], answering[n_bytes] = _serve(worker)
    worker.meet()
    return taking, answering


def _coordinate(worker: Worker, rank: int, length: int) -> None:
    """The coordinator's part: deal tasks, then collect their results."""
    tasks = range((1 + TRIPS) * IN_A_ROW)
    inputs = np.ones((len(tasks), length))  # one each; a shared input would come from the cache
    requests = [request for task in tasks for request in farm.hand(worker, rank, task, inputs[task])]
    for _ in tasks:
        farm.collect(worker, lambda task: length)
    for request in requests:
        worker.finished(request)


def _serve(worker: Worker) -> tuple[list[float], list[float]]:
    """The worker's part: (taking, answering) seconds, each the mean of
    several consecutive tasks.

    Computing is replaced by sleeping, so that it ends at any point between
    two polls of the coordinator.
    """
    took, room = [], np.empty(0)
    for turn in range((1 + TRIPS) * IN_A_ROW):
        time.sleep(worker.glance * (1 + turn % IN_A_ROW / IN_A_ROW))
        begin = time.perf_counter()
        task, room = farm.take(worker, room)
        between = time.perf_counter()
        farm.answer(worker, task, room)
        took.append((between - begin, time.perf_counter() - between))
    taking, answering = np.reshape(took[IN_A_ROW:], (TRIPS, IN_A_ROW, 2)).mean(axis=1).T.tolist()
    return taking, answering
