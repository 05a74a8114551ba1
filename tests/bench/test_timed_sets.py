"""The timed part of a run, on any number of ranks: what belongs to which set, and what the trace keeps."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from fembench.bench.describe import offset_of, sights
from fembench.bench.iteration_work import Roofs, solve_facts
from fembench.bench.measure import enough, measure
from fembench.bench.prepare import prepare
from fembench.host import energy
from fembench.host.energy import EnergyMeter
from fembench.ranks import interface
from fembench.ranks.comm import DOUBLE, MAX
from fembench.records.case import Case
from fembench.records.phases import ALLREDUCE, BETWEEN, CG, PRECOND, SEND, TOP_LEVEL, WAIT
from fembench.records.record import NO_JOULES
from fembench.synthetic.slowness import EmulatedSlowness
from fembench.synthetic.waits import HeardTracer
from fembench.timing.tracer import make_tracer

pytestmark = pytest.mark.mpi


def measured(comm, clock="perf_counter_ns", **fields):
    """(what `measure` leaves, the tracer) of a small box."""
    case = Case.of(mesh="box:4x4x4", ranks=comm.size, partitioner="rcb", **fields)
    tracer = make_tracer(clock, 8)
    prepared = prepare(comm, case, tracer)
    tracer.reset()
    return measure(comm, case, prepared, tracer), tracer, prepared


def test_sets_and_the_time_between_them_leave_no_gap(comm):
    begun = []

    class Noting(HeardTracer):  # notes when the time between sets begins and ends
        def add(self, phase, begin, end):
            begun.append((phase, begin, end))
            self._tracer.add(phase, begin, end)

    case = Case.of(mesh="box:2x2x2", ranks=comm.size, partitioner="rcb", sets=5, warmups=2, iterations=2)
    tracer = Noting(make_tracer(), *[lambda number: None] * 3)
    left = measure(comm, case, prepare(comm, case, tracer), tracer)
    assert [phase for phase, _, _ in begun] == [BETWEEN] * 7
    for one, (_, last, _), (_, ended, _) in zip(left.sets, begun, begun[1:]):
        assert ended - last == one.total  # of all sets: from the end of the last to its own
    for one, (_, last, begin) in zip(left.sets, begun):
        assert one.ticks[BETWEEN] == begin - last
        assert one.ticks[list(TOP_LEVEL)].sum() <= one.total


@pytest.mark.mpi(1, 2)
@pytest.mark.parametrize("recurrence", ["standard", "pipelined"])
def test_a_rehearsal_meets_all_the_work_of_the_sets(comm, recurrence):
    """What it has not met would be timed once, cold, on each rank for itself: assembly took 16 % longer on
    one rank than on another."""

    class Emulated(EmulatedSlowness):
        met: frozenset = frozenset()

        def agree(self, *arguments, **more):
            super().agree(*arguments, **more)
            self.met = frozenset(self._least)

    slowness = Emulated(2.0, wait_until=lambda moment: None)
    fields = {"sets": 2, "iterations": 3, "recurrence": recurrence}
    case = Case.of(mesh="box:4x4x4", ranks=comm.size, partitioner="rcb", **fields)
    tracer = make_tracer("perf_counter_ns", 8)
    measure(comm, case, prepare(comm, case, tracer), tracer, slowness)
    assert slowness.met
    assert slowness.met == frozenset(slowness._least)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("warmups", [0, 1])
@pytest.mark.parametrize(
    ("precond", "recurrence"),
    [("none", "pipelined"), ("chebyshev", "standard"), ("two-level", "single-reduction")],
)
def test_a_trace_keeps_every_span_of_the_iterations_asked_for(comm, precond, recurrence, warmups):
    fields = {"precond": precond, "recurrence": recurrence, "warmups": warmups, "sets": 1}
    _, tracer, _ = measured(comm, trace_iterations=12, iterations=20, **fields)
    assert tracer.dropped == 0
    spans = Counter(tracer.events()["iteration"].tolist())
    assert sorted(k for k in spans if k >= 0) == list(range(12))
    assert len({spans[k] for k in range(12)}) == 1  # all iterations are alike
    if comm.size > 1 and precond == "chebyshev":
        assert spans[0] > 24


@pytest.mark.parametrize(
    ("effort", "times", "n"),
    [
        ({"sets": 3}, [1.0] * 9, 3),
        ({"sets": 3, "seconds": 4.5}, [1.0] * 9, 5),
        ({"sets": 6, "precision": 2.0}, [1.0] * 9, 6),
        ({"sets": 1, "precision": 2.0}, [1.0] * 9, 6),  # the fewest that have an interval
        ({"sets": 6, "precision": 2.0}, [1.0, 1.1] + [1.0] * 20, 9),  # nine: the second and the eighth
        ({"sets": 6, "precision": 2.0}, [1.1] * 3 + [1.0] * 17, 18),  # precise after 15, but with drift
        ({"sets": 6, "precision": 2.0, "seconds": 12.5}, [1.0] * 20, 13),
        ({"sets": 6, "precision": 2.0, "max_seconds": 8.2}, [1.0, 1.1] * 20, 8),
        ({"sets": 6, "precision": 2.0, "max_seconds": 1.0}, [1.0, 1.1] * 20, 6),
        ({"sets": 3, "seconds": 1e9}, [1.0] * 30, 20),
        ({"sets": 25, "seconds": 1e9}, [1.0] * 30, 25),
    ],
)
def test_sets_end_on_all_ranks_alike_when_their_time_is_spent_and_their_median_precise(
    comm, monkeypatch, effort, times, n
):
    """The slowest rank counts, whichever it is; the others would stop later or sooner by their own times."""
    monkeypatch.setattr("fembench.bench.measure.MOST_ADDED", 20)
    effort, spent = Case.of(**effort).effort, []
    for k, seconds in enumerate(times):
        mine = seconds if k % comm.size == comm.rank else seconds * (0.3 + 0.1 * (k % 5))
        if enough(comm, effort, spent, mine if effort.seconds or effort.precision else seconds):
            break
    assert comm.allgather(len(spent)) == [n] * comm.size
    assert spent == times[:n]


@pytest.mark.mpi(1, 3)
def test_a_run_adds_sets_until_its_median_is_precise_or_its_time_is_over(comm, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("fembench.bench.measure.precision", lambda times: 0.5 / len(times))
        patch.setattr("fembench.bench.measure.drift", lambda times: 0.0)
        left, _, _ = measured(comm, iterations=3, sets=7, warmups=1, precision=5.0)
    assert len(left.sets) == 1 + 10
    longest = 3 * sum(slowest_of(comm, left))
    more, _, _ = measured(comm, iterations=3, sets=7, warmups=1, precision=1e-9, max_seconds=longest)
    slowest = slowest_of(comm, more)
    assert len(more.sets) > 8
    assert sum(slowest[:-1]) < longest <= sum(slowest)


def slowest_of(comm, run):
    """The seconds of every timed set on its slowest rank."""
    return [comm.allreduce(int(one.ticks[CG]), op=MAX) * 1e-9 for one in run.sets[1:]]


@pytest.mark.row("004:9.1.5c")
def test_spans_that_send_and_wait_name_the_neighbours_and_their_bytes(comm):
    _, tracer, prepared = measured(comm, trace_iterations=1, sets=1, warmups=1)
    expected = (prepared.interface.neighbours, prepared.interface.message_bytes)
    events = [e for e in tracer.events() if e["iteration"] == 0 and e["phase"] in (SEND, WAIT)]
    assert len(events) == 2
    assert all(tracer.messages[e["message"]] == expected for e in events)


@pytest.mark.row("004:9.1.5b")
@pytest.mark.parametrize("rate", [1e9, 2.5e8])
def test_a_planted_offset_between_clocks_is_found_within_its_uncertainty(comm, rate):
    """All ranks read one clock, so the truth is known: rank r's is r seconds ahead and slower by r 1e-5,
    and it left the common barrier 5 r milliseconds late."""
    ahead, slower, late = float(comm.rank), 1 - 1e-5 * comm.rank, 5e-3 * comm.rank
    source = make_tracer("perf_counter_ns").now
    zero = comm.bcast(source())

    def read():
        return round((ahead + (source() - zero) * 1e-9 * slower) * rate)

    own_zero = round((ahead + late * slower) * rate)
    tracer = SimpleNamespace(now=read, origin=own_zero)
    leaders = list(range(comm.size))
    first = sights(comm, tracer, leaders, 50)
    comm.Barrier()
    second = sights(comm, tracer, leaders, 50)
    assert [s.rank for s in first] == (leaders[1:] if comm.rank == 0 else [])
    for a, b in zip(first, second):
        found = offset_of(a, b, rate, rate, host=a.rank)
        for moment, here in ((found.times[0], a.here), (found.times[1], b.here)):
            true = moment / (1 - 1e-5 * a.rank) + 5e-3 * a.rank  # by rank 0's clock
            assert abs(found.common(moment) - true) <= found.uncertainty + 2 / rate
            assert found.common(moment) == pytest.approx(here / rate, abs=1e-12)
        assert np.isfinite(found.in_record().drift)


@pytest.mark.mpi(2, 3)
@pytest.mark.row("004:9.1.4b")
@pytest.mark.parametrize("precond", ["jacobi", "chebyshev", "two-level", "multigrid"])
def test_blocking_and_nonblocking_exchange_are_bit_identical_and_traced_with_the_same_phases(comm, precond):
    fields = {"precond": precond, "overlap": False, "trace_iterations": 2, "sets": 1, "warmups": 1}
    one, _, prepared = measured(comm, exchange="nonblocking", **fields)
    two, second, _ = measured(comm, exchange="blocking", **fields)
    assert one.result.residuals == two.result.residuals
    assert one.result.x.tobytes() == two.result.x.tobytes()
    assert set(np.flatnonzero(one.sets[-1].counts)) == set(np.flatnonzero(two.sets[-1].counts))
    assert second.dropped == 0
    told = [second.messages[e["message"]] for e in second.events() if e["phase"] == WAIT]
    each = {((q,), (n,)) for q, n in zip(prepared.interface.neighbours, prepared.interface.message_bytes)}
    assert set(told) == (each or {((), ())})


def test_blocking_exchange_cannot_deadlock_where_every_send_waits_for_its_receive(comm, monkeypatch):
    """MPI's synchronous send returns only when the receive has begun: what any send may do."""
    monkeypatch.setattr(
        interface, "send_to", lambda comm, values, rank, tag: lambda: comm.Ssend([values, DOUBLE], rank, tag)
    )
    left, _, _ = measured(comm, exchange="blocking", overlap=False, sets=1, warmups=0)
    assert left.result.converged


def test_the_levels_of_multigrid_add_up_to_its_preconditioner(comm, monkeypatch):
    monkeypatch.setattr("fembench.solve.multigrid.SMALL_LEVEL", 20)
    left, tracer, prepared = measured(comm, precond="multigrid", sets=1, warmups=0)
    assert tracer.level_nodes == (5 * 5 * 4, 60, 18)  # but for the restrained nodes; the last on rank 0
    ticks, levels = left.sets[-1].ticks, left.sets[-1].levels
    assert levels[:, PRECOND].sum() <= ticks[PRECOND]
    assert (levels[:, PRECOND] > 0).all()
    assert not levels[:-1, ALLREDUCE].any()  # only the last level leaves the neighbours
    facts = solve_facts(comm, prepared, left, tracer, Roofs(0.0, 1e9, ()))
    assert [one.nodes for one in facts.levels] == list(tracer.level_nodes)
    seconds = levels[1, PRECOND] / tracer.ticks_per_second / left.result.iterations
    assert facts.levels[1].computing[comm.rank] == pytest.approx(seconds)


def test_the_first_rank_of_a_machine_reads_the_energy_of_each_set_and_no_other_rank_does(
    comm, files, monkeypatch
):
    folder = "sys/class/powercap/intel-rapl:0"
    spent = iter(range(0, 10**9, 2_500_000))

    def count():
        files({f"{folder}/name": "package-0", f"{folder}/energy_uj": str(next(spent))})

    class Counting(EnergyMeter):
        def _look(self):
            if self._counters:
                count()
            return super()._look()

    monkeypatch.setattr(energy, "EnergyMeter", Counting)
    monkeypatch.setattr("fembench.bench.measure.energy_meter", lambda comm: energy.energy_meter(comm, root))
    root = files({f"{folder}/name": "package-0", f"{folder}/energy_uj": "0"})
    left, _, _ = measured(comm, sets=2, warmups=1, iterations=2)
    assert [one.joules for one in left.sets] == [2.5 if comm.rank == 0 else NO_JOULES] * 3
    assert (left.energy.reader, left.energy.includes) == ("RAPL", ("package-0",))


def test_no_set_of_a_run_has_joules_if_a_counter_stands_still_through_it(comm, files, monkeypatch):
    folder = "sys/class/powercap/intel-rapl:0"
    root = files({f"{folder}/name": "package-0", f"{folder}/energy_uj": "5"})
    monkeypatch.setattr("fembench.bench.measure.energy_meter", lambda comm: energy.energy_meter(comm, root))
    left, _, _ = measured(comm, sets=2, warmups=1, iterations=2)
    assert [one.joules for one in left.sets] == [NO_JOULES] * 3
    assert left.energy.why == ("package-0 stood still" if comm.rank == 0 else "")
