"""A farm: rank 0 deals tasks to the other ranks and collects their results (thesis-000, 3.3; thesis-003, 4).

A part of the tasks is dealt beforehand, in proportion to W (Eq. 3.6); the rest one by one, to whoever has
sent a result. With one rank alone it computes all tasks itself.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fembench.apps.kernels import KERNELS, Array
from fembench.apps.work import Worker
from fembench.kernels.backend import kernels

TASK, RESULT = 1, 2
END = -1.0


def inputs_of(program: str, tasks: int, size: int, seed: int) -> list[Array]:
    """What each task is given."""
    return [KERNELS[program].make(t, tasks, size, seed) for t in range(tasks)]


def run(worker: Worker, program: str, dealt: Sequence[int], inputs: list[Array], size: int) -> list[Array]:
    """Outputs of all tasks on rank 0, which alone has the inputs; [] elsewhere. Collective."""
    if worker.comm.size == 1:
        return [compute(worker, program, data, size) for data in inputs]
    if worker.comm.rank == 0:
        return coordinate(worker, program, dealt, inputs, size)
    serve(worker, program, size)
    return []


def compute(worker: Worker, program: str, data: Array, size: int) -> Array:
    """The output of one task."""
    output = KERNELS[program].run(worker.compute, data, size)
    worker.done += 1
    return output


def coordinate(
    worker: Worker, program: str, dealt: Sequence[int], inputs: list[Array], size: int
) -> list[Array]:
    """Deal, collect; each worker is told when there is nothing left for it."""
    kernel, comm, tasks = KERNELS[program], worker.comm, len(inputs)
    outputs: list[Array] = [np.empty(0)] * tasks
    todo = iter(range(tasks))
    requests: list[Any] = []

    def send(rank: int, task: float) -> None:
        data = inputs[int(task)] if task >= 0 else np.empty(0)
        requests.append(comm.Isend(np.array([task, len(data)], float), rank, TASK))
        if task >= 0:
            requests.append(comm.Isend(data, rank, TASK))

    for rank, count in enumerate(dealt, 1):
        for _ in range(count):
            send(rank, next(todo))
    owed = dict(enumerate(dealt, 1))
    for rank in range(1, comm.size):
        if not owed[rank]:
            owed[rank] = _another(send, rank, todo)
    while any(owed.values()):
        rank = worker.whose(RESULT)
        head = np.empty(1)
        comm.Recv(head, rank, RESULT)
        task = int(head[0])
        outputs[task] = np.empty(kernel.out(task, tasks, size))
        worker.receive(outputs[task], rank, RESULT)
        owed[rank] -= 1
        owed[rank] += _another(send, rank, todo) if not owed[rank] else 0
    for request in requests:
        worker.finished(request)
    return outputs


def _another(send: Callable[[int, float], None], rank: int, todo: Iterator[int]) -> int:
    """One more task for a rank, or its end."""
    task = next(todo, None)
    send(rank, END if task is None else task)
    return 0 if task is None else 1


def serve(worker: Worker, program: str, size: int) -> None:
    """Compute task after task until told to end."""
    comm = worker.comm
    while True:
        head = np.empty(2)
        worker.receive(head, 0, TASK)
        if head[0] == END:
            return
        data = kernels.empty(int(head[1]))
        worker.receive(data, 0, TASK)
        result = compute(worker, program, data, size)
        comm.Send(head[:1], 0, RESULT)
        comm.Send(result, 0, RESULT)
