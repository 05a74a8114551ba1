"""Farm programs and task graphs on any number of ranks."""

import itertools
import time

import numpy as np
import pytest

from fembench_studies.programs import calibrate, graphs
from fembench_studies.programs.calibrate import samples
from fembench_studies.programs.compute import Worker, worker_of
from fembench_studies.programs.job import AppJob, Span, makespan, run_job
from fembench_studies.programs.kernels import KERNELS, just
from fembench_studies.programs.real_messages import KINDS, case_of_messages
from fembench_studies.programs.record import AppCase
from fembench_studies.programs.round_trips import half_round_trips
from fembench_studies.programs.tasks import deal_tasks
from fembench_studies.scheduling.task_graph import diamond, fork, fork_join, hosts_in_turn, join, ring

pytestmark = pytest.mark.mpi
SIZES = {"pi": 20_000, "primes": 2_000, "matrices": 12, "partial": 12, "integral": 20_000, "product": 15}


def case_of(program, comm, tasks=11, static=1.0, **more):
    workers = max(comm.size - 1, 1)
    dealt = deal_tasks([1.0 / (k + 1) for k in range(workers)], tasks, static if comm.size > 1 else 1.0)
    return AppCase(
        program=program, ranks=comm.size, tasks=tasks, size=SIZES[program], dealt=dealt, repetitions=2, **more
    )


def job(comm, case, **more):
    return run_job(comm, AppJob(case=case, id="t", command="", launcher="", **more))


@pytest.mark.mpi(1, 2, 3)
@pytest.mark.row("000:F1", "000:apps live")
@pytest.mark.parametrize("program", KERNELS)
@pytest.mark.parametrize("static", [1.0, 0.5, 0.0])
def test_every_farm_program_finds_what_is_right(comm, program, static):
    record = job(comm, case_of(program, comm, static=static))
    if comm.rank:
        assert record is None
        return
    assert record.error <= 1
    assert len(record.seconds) == 2
    assert [sum(row[k] for row in record.done) for k in (0, 1)] == [11, 11]


@pytest.mark.row("000:F5b")
def test_tasks_stay_where_they_were_dealt(comm):
    case = case_of("integral", comm)
    record = job(comm, case)
    if comm.rank == 0 and comm.size > 1:
        assert [row[0] for row in record.done] == [0, *case.dealt]


def test_a_worker_without_tasks_waits_for_the_end(comm):
    dealt = (3,) + (0,) * (comm.size - 2) if comm.size > 1 else (3,)
    case = AppCase(program="pi", ranks=comm.size, tasks=3, size=999, dealt=dealt, repetitions=1)
    record = job(comm, case)
    assert comm.rank or record.error <= 1


@pytest.mark.parametrize("graph", [ring(3), fork(6), join(6), diamond(3), fork_join(7)], ids=lambda g: g.name)
def test_every_message_of_a_graph_counts(comm, graph):
    edges = tuple((a, b) for a, b, _ in graph.edges)
    case = AppCase(
        program=graph.name,
        ranks=comm.size,
        tasks=graph.n_tasks,
        size=1,
        n_bytes=70_000,
        order=tuple(range(graph.n_tasks)),
        host=hosts_in_turn(graph, comm.size),
        edges=edges,
        repetitions=2,
    )
    record = job(comm, case)
    if comm.rank == 0:
        assert record.value == graphs.expected(graph.n_tasks, edges) > 1
        assert record.error == 0


def test_ranks_that_wait_for_each_other_do_not_lock(comm):
    """Both send a long message before either receives."""
    edges = ((0, 2), (1, 3), (2, 4), (3, 4))
    host = tuple(t % comm.size for t in (0, 1, 1, 0, 0))
    case = AppCase(
        program="ring", ranks=comm.size, n_bytes=4_000_000, order=(0, 1, 2, 3, 4), host=host, edges=edges
    )
    assert comm.allreduce(graphs.run(Worker(comm), case)[0]) == graphs.expected(5, edges)


def test_a_rank_that_leaves_the_barrier_late_makes_a_run_no_shorter(comm):
    early, late = Span("here", 10.0, 12.0), Span("here", 10.5, 13.0)
    assert makespan([early, late, Span("here", 9.0, 0.0)]) == 3.0  # the last had no task
    assert makespan([early, late._replace(host="there", begin=110.5, done=113.0)]) == 2.5  # different clocks
    assert makespan([Span("here", 9.0, 0.0)]) == 0.0


def test_messages_that_are_said_to_cost_keep_both_ranks(comm):
    """Rank 0 sends to itself and to all others, each send 20 ms; they receive 30 ms later, for 10 ms."""
    n = comm.size + 1
    edges = tuple((0, t) for t in range(1, n))
    case = AppCase(
        program="fork",
        ranks=comm.size,
        tasks=n,
        n_bytes=16,
        order=tuple(range(n)),
        host=(0, *range(comm.size)),
        edges=edges,
        costs=((0.02, 0.03, 0.01),) * comm.size,
        repetitions=2,
    )
    record = job(comm, case)
    if comm.rank == 0:
        # the last rank's message leaves after those of the others; rank 0's own is due 50 ms after its begin
        least = 0.02 * comm.size + 0.03 + 0.01
        assert least <= min(record.seconds) < least + 0.1
        assert "message costs" in record.environment.synthetic
        assert record.error == 0


def test_calibration_samples_every_operation_of_every_rank(comm):
    record = job(comm, case_of("partial", comm), calibrate=3)
    if comm.rank == 0:
        assert set(record.samples) == {"power_12", "element"}
        assert all(len(row) == 3 and min(row) > 0 for rows in record.samples.values() for row in rows)
        assert all(len(rows[p]) > 0 for rows in record.messages.values() for p in range(1, comm.size))
        assert not record.seconds


def test_ranks_that_never_compute_together_are_sampled_one_by_one(comm, monkeypatch):
    spans = []

    def sample(worker, rank, size, n_bytes, count):
        if worker.comm.rank != rank:
            return {}
        begin = time.perf_counter()
        time.sleep(0.02)
        spans.append((begin, time.perf_counter()))
        return {"unit": [1.0] * count}

    monkeypatch.setattr(calibrate, "_received", sample)
    assert calibrate.after_messages(Worker(comm), "fork", 1, 64, 3) == {"unit": [1.0] * 3}
    every = sorted(span for one in comm.allgather(spans) for span in one)
    assert len(every) == comm.size
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(every))


@pytest.mark.mpi(2, 3, 4)
@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_calibrated_in_the_order_in_which_they_run(comm, kind, monkeypatch):
    begun, compute = [], graphs.compute

    def watched(*arguments):
        begun.append((time.perf_counter(), comm.rank))
        compute(*arguments)

    monkeypatch.setattr(graphs, "compute", watched)
    (rounds,) = calibrate.after_messages(Worker(comm), kind, 1, 64, 2).values()
    assert len(rounds) == 2
    assert all(0 < took < 1 for took in rounds)
    ranks, times = range(comm.size), 1 + 2 * calibrate.IN_A_ROW
    order = [rank for _, rank in sorted(one for each in comm.allgather(begun) for one in each)]
    assert order == ([*ranks] * times if kind == "ring" else [rank for rank in ranks for _ in range(times)])


def slowed(comm, factor):
    """A rank slowed by this factor, in an emulated job."""
    return worker_of(comm, (1.0,) * comm.size, factor)


def test_a_slow_rank_computes_longer(comm):
    slow, *fast = slowed(comm, 40.0), *(Worker(comm) for _ in range(3))  # one may have to wait for its core
    for worker in (slow, *fast):
        worker.compute(graphs.UNIT, 3, graphs.burn, 3)
    assert slow.busy > 2 * min(worker.busy for worker in fast)


def test_an_unknown_amount_of_work_is_not_stretched(comm):
    workers = [slowed(comm, 20.0) for _ in range(3)]  # one may have to wait for its core
    for worker in workers:
        assert worker.compute("op", 0, sum, (1, 2)) == 3
        worker.compute("op", 0, graphs.burn, 3)
    unknown = min(worker.busy for worker in workers)
    begin = workers[0].busy
    workers[0].compute("op", 3, graphs.burn, 3)
    assert workers[0].busy - begin > 2 * unknown


def test_emulated_ranks_learn_their_operations_before_they_run(comm, monkeypatch):
    monkeypatch.setattr(calibrate, "LEARN", 0.2)
    speeds = [1.0 / (1 + rank) for rank in range(comm.size)]
    slow, plain = worker_of(comm, speeds, 1.0), Worker(comm)
    for worker, learns in ((slow, comm.size > 1), (plain, False)):
        begin = time.perf_counter()
        calibrate.learn(worker, "primes", 10, 3000)
        assert (time.perf_counter() - begin > 0.2) == learns


def test_emulated_ranks_learn_in_each_turn_of_a_calibration_and_around_each_repetition(comm, monkeypatch):
    monkeypatch.setattr(calibrate, "LEARN", 0.02)
    case = case_of("pi", comm, emulate=",".join(["1"] * comm.size), dilate=2.0)
    for calibrating, turns in ((9, calibrate.TURNS), (2, 2), (0, 1 + case.repetitions)):
        record = job(comm, case, calibrate=calibrating)
        if record:
            (rows,) = record.learned.values()
            assert [len(row) for row in rows] == [turns] * comm.size
            assert len(set(rows)) == 1  # of one host
            assert all(len(row) == calibrating for row in record.samples.get("pi_point", ()))
    plain = job(comm, case_of("pi", comm), calibrate=2)
    assert plain is None or not plain.learned


def test_messages_of_nobody_alone(comm):
    found = half_round_trips(comm, Worker(comm).meet, (8, 4096), samples=2, in_a_row=2)
    assert all(len(times) == 2 * (comm.rank > 0) for times in found.values())
    found, _ = samples(Worker(comm), "ring", 3, 1, 2)
    assert found["unit"]


def test_a_long_result_keeps_a_worker_until_the_coordinator_looks(comm, monkeypatch):
    from fembench.ranks.comm import library

    if "Intel" in library():
        pytest.skip("Intel MPI buffers messages of a megabyte")
    small, large, trips = 8, 1_000_000, 3
    monkeypatch.setattr(calibrate, "EXCHANGED", (small, large))
    monkeypatch.setattr(calibrate, "TRIPS", trips)
    worker = Worker(comm)
    worker.glance = 8e-3
    taking, answering = calibrate.exchanges(worker)
    assert [len(row) for row in (*taking.values(), *answering.values())] == [trips * (comm.rank > 0)] * 4
    if comm.rank:
        assert np.median(answering[small]) < 2e-3  # buffered: the worker continues
        assert 2e-3 < np.median(answering[large]) < 10 * worker.glance  # it shares cores


@pytest.mark.parametrize("program", ["matrices", "partial", "product"])
def test_matrices_begin_where_a_cache_line_does(program, comm):
    """An operation takes equally long in every process."""
    worked_on = []

    def look(operation, times, function, *arguments):
        worked_on.extend(a for a in arguments if isinstance(a, np.ndarray) and a.dtype == float)
        return just(operation, times, function, *arguments)

    bulk = [bytearray(16 * k) for k in range(1, 60)]  # shifts what malloc returns
    for task in range(3):
        KERNELS[program].run(look, KERNELS[program].make(task, 3, 48, 0), 48)
    assert bulk
    assert [a.ctypes.data % 64 for a in worked_on] == [0] * len(worked_on)
    assert worked_on


@pytest.mark.mpi(2, 3, 4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calls", ["isend", "send"])
def test_every_message_by_the_calls_that_are_timed_is_counted_once(comm, kind, calls):
    for n_bytes in (64, 200_000):  # sent at once, and waiting for the receiver
        case = case_of_messages(kind, comm.size, calls, n_bytes=n_bytes, units=1)
        room = graphs.Room(case, comm.rank)
        for _ in range(2):
            last, done = graphs.run_calls(Worker(comm), case, room)
            assert comm.allreduce(last) == graphs.expected(case.tasks, case.edges)
            assert done > 0
