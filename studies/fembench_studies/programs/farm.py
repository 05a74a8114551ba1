"""A farm: rank 0 deals tasks to the other ranks and collects
their results (Herai 2005, 3.3).

A part of the tasks is dealt in advance, in proportion to W (Eq. 3.6); the
rest one by one, to workers that have sent all results they owe. A single
rank computes all tasks itself.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fembench.kernels.backend import kernels
from fembench_studies.programs.compute import Worker
from fembench_studies.programs.kernels import Array
from fembench_studies.programs.user_task import kernel_of

TASK, RESULT = 1, 2
END = -1.0


def inputs_of(program: str, tasks: int, size: int, seed: int) -> list[Array]:
    """The input of each task."""
    make = kernel_of(program).make
    return [make(t, tasks, size, seed) for t in range(tasks)]


def run(worker: Worker, program: str, dealt: Sequence[int], inputs: list[Array], size: int) -> list[Array]:
    """Outputs of all tasks on rank 0, [] elsewhere; only rank 0
    needs the inputs. Collective."""
    if worker.comm.size == 1:
        return [compute(worker, program, data, size) for data in inputs]
    if worker.comm.rank == 0:
        return coordinate(worker, program, dealt, inputs, size)
    serve(worker, program, size)
    return []


def compute(worker: Worker, program: str, data: Array, size: int) -> Array:
    """The output of one task."""
    output = kernel_of(program).run(worker.compute, data, size)
    worker.done += 1
    return output


def coordinate(
    worker: Worker, program: str, dealt: Sequence[int], inputs: list[Array], size: int
) -> list[Array]:
    """Deal tasks and collect results; end each worker when no task is left."""
    kernel, comm, tasks = kernel_of(program), worker.comm, len(inputs)
    outputs: list[Array] = [np.empty(0)] * tasks
    todo = iter(range(tasks))
    requests: list[Any] = []

    def send(rank: int, task: float) -> None:
        requests.extend(hand(worker, rank, task, inputs[int(task)] if task >= 0 else np.empty(0)))

    for rank, count in enumerate(dealt, 1):
        for _ in range(count):
            send(rank, next(todo))
    owed = dict(enumerate(dealt, 1))
    for rank in range(1, comm.size):
        if not owed[rank]:
            owed[rank] = _another(send, rank, todo)
    while any(owed.values()):
        rank, task, output = collect(worker, lambda task: kernel.out(task, tasks, size))
        outputs[task] = output
        owed[rank] -= 1
        owed[rank] += _another(send, rank, todo) if not owed[rank] else 0
    for request in requests:
        worker.finished(request)
    return outputs


def _another(send: Callable[[int, float], None], rank: int, todo: Iterator[int]) -> int:
    """Send a rank its next task or the end message; returns the number of tasks sent."""
    task = next(todo, None)
    send(rank, END if task is None else task)
    return 0 if task is None else 1


def serve(worker: Worker, program: str, size: int) -> None:
    """Compute tasks until the end message arrives."""
    room = np.empty(0)
    while True:
        task, data = take(worker, room)
        if task == END:
            return
        room = data if len(data) > len(room) else room
        answer(worker, task, compute(worker, program, data, size))


def hand(worker: Worker, rank: int, task: float, data: Array) -> list[Any]:
    """Send a rank a task, or the end message; returns the requests."""
    whole = [np.array([task, len(data)], float), data]
    return [worker.comm.Isend(part, rank, TASK) for part in (whole if task >= 0 else whole[:1])]


def take(worker: Worker, room: Array) -> tuple[float, Array]:
    """(number of the next task, its input); reuses `room` if large enough.

    Touching new pages would cost more than the message.
    """
    head = np.empty(2)
    worker.receive(head, 0, TASK)
    length = int(head[1])
    data = room[:length] if length <= len(room) else kernels.empty(length)
    if head[0] != END:
        worker.receive(data, 0, TASK)
    return head[0], data


def answer(worker: Worker, task: float, result: Array) -> None:
    """Send the result of a task; a long message completes only once
    the coordinator receives it."""
    worker.comm.Send(np.array([task]), 0, RESULT)
    worker.comm.Send(result, 0, RESULT)


def collect(worker: Worker, length: Callable[[int], int]) -> tuple[int, int, Array]:
    """(rank, task, result) of the first result to arrive;
    length(task) is the result's length."""
    rank, head = worker.whose(RESULT), np.empty(1)
    worker.comm.Recv(head, rank, RESULT)
    task = int(head[0])
    result = np.empty(length(task))
    worker.receive(result, rank, RESULT)
    return rank, task, result
