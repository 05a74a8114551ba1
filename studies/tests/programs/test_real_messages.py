"""Rings, fork and join predicted from a planted network, with runs that follow the prediction or not."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from planted_calibration import planted_calibration
from planted_environment import on_hosts_with
from planted_profile import planted_profile

import fembench
from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.ranks.comm import MAX
from fembench.records.network import ColdCost, CurvePiece, HostTaken, Network, PairClass
from fembench.records.profile import save_profile
from fembench_studies.attempts import Attempts, ProgramEffort
from fembench_studies.programs import compared_messages, graphs, real_messages
from fembench_studies.programs.compared_messages import ComparedTime, Refused, compared, judged
from fembench_studies.programs.compute import Worker
from fembench_studies.programs.graphs import ROUND
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.partners import (
    AFTER,
    AROUND,
    BEFORE,
    PLACES,
    TRIP,
    TRIPS,
    WARM,
    partners,
    round_trips,
)
from fembench_studies.programs.real_messages import case_of_messages, promise
from fembench_studies.thesis_001 import grid_messages, grid_real, grid_study

UNIT = 1e-3  # seconds of a round of work
SIZE = 20  # rounds of a task
EFFORT = ProgramEffort(1, 1, real_repetitions=100, passes=3)
COLD = 5e-5  # added to Or by computing
OS, LATENCY, OR = 2e-5, 3e-4, 7e-5  # of any message by MPI_Isend
BLOCKED = 4e-4  # Os by MPI_Send


def costs(name, send, latency, receive, switch=None):
    cold = ColdCost(m=1 << 22, computed=1e-3, swept=False, send=0.0, latency=0.0, receive=COLD)
    return PairClass(
        name=name, switch=switch, cold=(cold,), **{k: (CurvePiece(first=0, coefficients=(v,)),) for k, v in
                      {"send": send, "latency": latency, "receive": receive}.items()}
    )  # fmt: skip


def profile(latency=LATENCY, switch=None):
    network = Network(
        send_mode="isend",
        pairs="all",
        sites=("here",),
        classes=(costs("same host", OS, latency, OR, switch),),
        blocking=(costs("same host", BLOCKED, -BLOCKED / 2, BLOCKED, switch),),
        pair_class=((0,),),
        class_names=("same host",),
    )
    return msgspec.structs.replace(planted_profile([1.0] * 3, hosts=("node8",) * 3), network=network)


def sized_case(kind, ranks, calls):
    return case_of_messages(kind, ranks, calls, n_bytes=65536, units=SIZE)


def calibration(case):
    return planted_calibration(case, {"round": ((0.9 * UNIT, UNIT, 1.1 * UNIT),) * case.ranks}, {})


def around(case, trips, rounds):
    """Samples just before and just after a run: [when] times as long as expected."""
    message = 1.5 * BLOCKED if case.calls == "send" else OS + LATENCY + OR  # the small one back, too
    timed = [0.9, 0.95, 1, 1.05, 1.1]  # times the median, in other buffers each
    return {
        **{TRIP + when: tuple(tuple(2 * message * slower * f for f in timed) if rank in partners(case) else ()
                              for rank in range(case.ranks)) for when, slower in zip(AROUND, trips)},
        **{ROUND + when: ((UNIT * slower,),) * case.ranks for when, slower in zip(AROUND, rounds)},
    }  # fmt: skip


def ran(case, before, messages, noise=0.001, repetitions=20, trips=(1.0, 1.0), rounds=(1.0, 1.0), tasks=None):
    """A run whose last task ends `messages` seconds after computing, with a little noise;
    `trips`, `rounds`: as in `around`; `tasks`: as many times as long as expected, None: as around the run."""
    each = case.size * UNIT * (sum(rounds) / 2 if tasks is None else tasks)
    own = sum(case.host[t] == 0 for t in range(case.tasks) if t not in case.idle)
    all_ = sum(t not in case.idle for t in range(case.tasks))
    work = each * (all_ if case.program == "ring" else own)
    factors = [1 + noise * ((k % 5) - 2) for k in range(repetitions)]
    record = planted_calibration(case, {}, {})
    busy = [[0.0] * repetitions for _ in range(case.ranks)]
    for t in (t for t in range(case.tasks) if t not in case.idle):
        busy[case.host[t]] = [b + each * f for b, f in zip(busy[case.host[t]], factors)]
    return msgspec.structs.replace(
        record,
        id="run",
        samples=around(case, trips, rounds),
        messages={},
        predicted=before,
        seconds=tuple((work + messages) * f for f in factors),
        busy=tuple(map(tuple, busy)),
    )


@pytest.mark.row("001:F12c", "001:F12d", "001:E10", "001:E13", "001:E17", "001:E18", "001:B4")
@pytest.mark.parametrize(
    ("kind", "calls", "tasks", "messages"),
    [
        # three hops, all between ranks (3.10), each after a task
        ("ring", "isend", 3, 3 * (OS + LATENCY + OR + COLD)),
        ("ring", "send", 3, 3 * (1.5 * BLOCKED + COLD)),
        ("fork", "isend", 2, 8 * OS),  # eight sends occupy the sender (6.1)
        ("fork", "send", 2, 8 * BLOCKED),
        ("join", "isend", 2, 8 * OR + COLD),  # of these, only the first comes after a task
        ("join", "send", 2, 8 * BLOCKED + COLD),
    ],
)
def test_messages_are_predicted_from_the_profile(kind, calls, tasks, messages):
    case = sized_case(kind, 3, calls)
    before = promise(case, calibration(case), profile(), "machine.json")
    assert before.terms["messages"][0] == pytest.approx(messages)
    assert before.terms["makespan"][0] == pytest.approx(tasks * case.size * UNIT + messages)
    assert before.low < before.terms["makespan"][0] < before.high
    other = promise(case, calibration(case), profile(latency=2 * LATENCY), "machine.json")
    longer = 3 * LATENCY if (kind, calls) == ("ring", "isend") else 0.0
    assert other.terms["makespan"][0] - before.terms["makespan"][0] == pytest.approx(longer)


@pytest.mark.parametrize(
    ("kind", "rank", "done"),
    [
        ("ring", 1, [("pong", 0, 65536, 8), ("ping", 2, 65536, 8)]),
        ("fork", 0, [("pong", 1, 8, 65536), ("pong", 2, 8, 65536)]),
        ("fork", 2, [("ping", 0, 8, 65536)]),
        ("join", 0, [("pong", 1, 65536, 8), ("pong", 2, 65536, 8)]),
        ("join", 2, [("ping", 0, 65536, 8)]),
    ],
)
def test_timed_messages_go_in_the_direction_of_the_program_and_partners_take_turns(
    kind, rank, done, monkeypatch
):
    calls, places = [], []

    class PlantedSide:
        def __init__(self, comm, partner, sizes, mode):
            assert sorted(sizes) == [8, 65536]
            self.partner, self.out, self.into = partner, object(), object()

        def renew(self):
            self.out, self.into = object(), object()
            places.append((self.out, self.into))

        def called(self, what, m, back):
            assert (self.out, self.into) == places[-1]  # the same buffers for all partners
            trip = sum(each[0] == what for each in calls) % (WARM + TRIPS)
            calls.append((what, self.partner, m, back))
            return np.array([[0, 0, 1000 if trip >= WARM else 9000]])

        def ping(self, m, count, back):
            return self.called("ping", m, back)

        def pong(self, m, count, back):
            return self.called("pong", m, back)

    monkeypatch.setattr("fembench_studies.programs.partners.Side", PlantedSide)
    comm = SimpleNamespace(rank=rank, bcast=lambda value: value)
    found = round_trips(comm, sized_case(kind, 3, "isend"))
    assert len(places) == PLACES[1]
    assert calls == done * (PLACES[1] * (WARM + TRIPS))
    times = PLACES[1] if any(what == "ping" for what, *_ in done) else 0
    assert found == pytest.approx([1e-6] * times)


@pytest.mark.mpi(2, 3, 4)
@pytest.mark.parametrize("kind", ["ring", "fork", "join"])
@pytest.mark.parametrize("calls", ["isend", "send"])
def test_every_rank_with_a_partner_times_a_message_at_each_place_of_its_buffers(kind, calls, comm):
    found = round_trips(comm, sized_case(kind, comm.size, calls))
    places = comm.allreduce(len(found), MAX)
    assert PLACES[0] <= places <= PLACES[1]
    assert len(found) == (places if kind == "ring" or comm.rank else 0)
    assert all(0 < took < 1 for took in found)


def test_a_rank_computes_from_its_last_receive_to_its_first_send(monkeypatch):
    clock = [0.0]

    def lasting(seconds):
        def call(*_):
            clock[0] += seconds

        return call

    comm = SimpleNamespace(Probe=lasting(1.0), Recv=lasting(2.0), Send=lasting(4.0))
    monkeypatch.setattr(graphs, "compute", lasting(100.0))
    monkeypatch.setattr(graphs, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    for kind, tasks, messages in (("join", 2, 8 * 3.0), ("fork", 2, 8 * 4.0)):
        case, worker, clock[0] = sized_case(kind, 2, "send"), Worker(comm), 0.0
        graphs.run_calls(worker, case, graphs.Room(case, 0))
        assert (worker.busy, worker.done, clock[0]) == (tasks * 100.0, tasks, tasks * 100.0 + messages)


def test_messages_that_wait_for_their_receiver_leave_a_child_one_after_the_other():
    case = sized_case("join", 2, "send")
    before = promise(case, calibration(case), profile(switch=4096), "machine.json")
    assert before.terms["messages"][0] == pytest.approx(BLOCKED + COLD + 7 * 1.5 * BLOCKED)


@pytest.mark.parametrize(("ranks", "messages"), [(2, 7 * 1.5 + 1), (3, 8.0)])
def test_sends_that_wait_for_their_receiver_begin_when_it_is_back(ranks, messages):
    """Os takes BLOCKED; the receiver returns half of that later, which is early enough if there are two."""
    case = sized_case("fork", ranks, "send")
    before = promise(case, calibration(case), profile(switch=4096), "machine.json")
    late = COLD if ranks == 2 else 0.0  # the first is received after computing
    assert before.terms["messages"][0] == pytest.approx(messages * BLOCKED + late)


@pytest.mark.parametrize(
    ("kind", "cold"), [("ring", [0.2] * 3), ("fork", [0.4] + [0.0] * 7), ("join", [0.4] + [0.0] * 7)]
)
def test_the_first_message_of_a_fork_or_join_follows_two_tasks(kind, cold):
    """Of repetitions that follow one another; COLD is added after 1 ms."""
    case = sized_case(kind, 3, "isend")
    found = real_messages.costs_of(case, profile(), 2e-4).messages
    assert [cost.receive - OR for cost in found] == pytest.approx([COLD * part for part in cold])


def test_tasks_are_as_long_as_their_messages_unless_their_size_is_given():
    case = case_of_messages("ring", 3, "isend", n_bytes=65536)
    made = real_messages.sized(case, profile(), 1e-6)
    message = OS + LATENCY + OR
    task = message / (1 - COLD / 1e-3)  # a task of t adds t COLD / 1 ms to its message
    assert made.size == pytest.approx(task / 1e-6, abs=1)
    given = sized_case("ring", 3, "isend")
    assert real_messages.sized(given, profile(), 1e-6) == given


@pytest.mark.row("001:F12a")
def test_a_ring_on_two_ranks_has_a_message_at_every_step():
    case = case_of_messages("ring", 2, "isend", n_bytes=65536)
    assert case.host == (0, 1, 0, 1, 0)
    assert len(real_messages.costs_of(case, profile(), 0.0).messages) == 4


def test_the_error_is_that_of_the_median_with_the_ends_of_its_interval():
    case = sized_case("ring", 3, "isend")
    before = promise(case, calibration(case), profile(), "machine.json")
    measured = before.terms["messages"][0] + 0.002  # 2 ms longer than predicted, of 63 ms
    whole, messages = compared(ran(case, before, measured))
    assert whole.error == pytest.approx(100 * 0.002 / (0.06 + measured), rel=1e-3)
    assert whole.between[0] <= -whole.error <= whole.between[1]
    assert whole.signed == pytest.approx(-whole.error)
    assert f"{whole.signed:+.1f} %" in compared_messages.as_text(ran(case, before, measured), [whole])
    assert whole.verdict == f"within {5 + 0.1 * messages_share(measured):.3g} %"
    assert messages.error == pytest.approx(100 * 0.002 / measured, rel=1e-3)
    assert "they take 5.2 % of the run: expected 20 to 80 %" in messages.verdict


def messages_share(measured):
    return 100 * measured / (0.06 + measured)


def test_messages_that_are_off_are_seen_in_a_run_of_which_they_are_half():
    case = msgspec.structs.replace(sized_case("ring", 3, "isend"), size=1)
    before = promise(case, calibration(case), profile(), "machine.json")
    due = before.terms["messages"][0]
    whole, messages = compared(ran(case, before, 1.14 * due))
    assert (messages.verdict, whole.kept) == ("within 15 %", True)
    whole, messages = compared(ran(case, before, 2 * due))
    assert (messages.verdict, messages.kept) == ("off by more than 15 %", False)


def test_runs_that_vary_or_are_few_or_elsewhere_do_not_test_the_prediction():
    case = msgspec.structs.replace(sized_case("fork", 3, "isend"), size=5)
    before = promise(case, calibration(case), profile(), "machine.json")
    good = ran(case, before, 0.01)
    assert compared(good, profile())[0].reason == ""
    assert "too noisy: the median is known to" in compared(ran(case, before, 0.01, noise=0.3))[0].verdict
    assert "5 repetitions" in compared(ran(case, before, 0.01, repetitions=5))[0].verdict
    elsewhere = msgspec.structs.replace(
        profile(), environment=planted_profile([1.0] * 3, hosts=("a", "b", "c")).environment
    )
    assert "the profile is for a, b, c" in compared(good, elsewhere)[0].verdict
    for percent, resolution, reason in (
        (40.0, 1.0, "others used 40 % of the ranks' processor time on node8 (at most 2 %)"),
        (3.0, 1.5, ""),  # may be less than 2 %
    ):
        found = compared(on_hosts_with(good, others_percent=percent, others_resolution=resolution))
        assert [one.reason for one in found] == [reason, reason]
    crowded = msgspec.structs.replace(
        good, environment=msgspec.structs.replace(good.environment, oversubscribed=True)
    )
    assert "more ranks than cores" in compared(crowded)[0].verdict


def test_a_profile_that_others_disturbed_does_not_test_the_prediction():
    case = msgspec.structs.replace(sized_case("fork", 3, "isend"), size=5)
    before = promise(case, calibration(case), profile(), "machine.json")
    for percent, disturbed in ((66.0, True), (1.0, False)):
        taken = HostTaken(others_percent=percent, others_resolution=0.1, steal_percent=0.0)
        network = msgspec.structs.replace(profile().network, taken=(taken,))
        found = compared(ran(case, before, 0.01), msgspec.structs.replace(profile(), network=network))
        assert [("DISTURBED: others used up to 66 %" in one.reason) for one in found] == [disturbed] * 2


@pytest.mark.parametrize(("each", "reason"), [(2.1e-5, ""), (1.9e-5, "a message takes 19 µs")])
def test_messages_so_short_that_the_loop_of_the_program_counts_are_refused(each, reason):
    case = msgspec.structs.replace(sized_case("ring", 3, "isend"), size=1)
    before = promise(case, calibration(case), profile(), "machine.json")
    before = msgspec.structs.replace(before, terms=before.terms | {"messages": (3 * each,) * 2})
    for one in compared(ran(case, before, 3e-3)):
        assert one.reason.startswith(reason and f"refused: {reason}")
        assert bool(one.reason) == bool(reason)


@pytest.mark.parametrize(("n_bytes", "fits"), [(1 << 16, True), (1 << 17, False)])
def test_messages_that_leave_the_cache_are_refused(n_bytes, fits):
    case = msgspec.structs.replace(sized_case("join", 3, "send"), n_bytes=n_bytes, size=1)
    made = ran(case, promise(case, calibration(case), profile(), "machine.json"), 0.01)
    made = on_hosts_with(made, caches={"L2": 1 << 16})
    reason = "refused: a message of 128 KiB does not fit in an L2 cache of 64 KiB"
    assert [one.reason.startswith(reason) for one in compared(made)] == [not fits] * 2


@pytest.mark.parametrize(
    ("what", "before", "after", "reason"),
    [
        ("trips", 1.4, 1.4, ""),
        ("trips", 0.7, 0.7, ""),
        ("trips", 1.0, 1.15, ""),
        ("trips", 1.0, 1.17, "round trips of 64 KiB took 1.00 times as long as expected before the run"),
        ("trips", 1.6, 1.6, "round trips of 64 KiB took 1.60 times as long as expected: the machine"),
        ("trips", 0.6, 0.6, "round trips of 64 KiB took 0.60 times as long as expected: the machine"),
        ("rounds", 1.4, 1.4, ""),
        ("rounds", 1.17, 1.0, "computing took 1.17 times as long as expected before the run, 1.00 times"),
        ("rounds", 1.6, 1.6, "computing took 1.60 times as long as expected: the machine is not as it was"),
    ],
)  # fmt: skip
def test_a_prediction_is_brought_to_the_state_of_the_machine_around_its_run_or_refused(
    what, before, after, reason
):
    case = msgspec.structs.replace(sized_case("ring", 3, "isend"), size=1)
    written = promise(case, calibration(case), profile(), "machine.json")
    due, work = written.terms["messages"][0], written.terms["computing"][0]
    whole, messages = compared(ran(case, written, due, **{what: (before, after)}))
    assert (whole.written, messages.written) == pytest.approx((work + due, due))
    slower = (before + after) / 2
    due, work = (due * slower, work) if what == "trips" else (due, work * slower)
    assert (whole.predicted, messages.predicted) == pytest.approx((work + due, due))
    for one in (whole, messages):
        assert one.reason.startswith(reason and f"refused: {reason}")
        assert bool(one.reason) == bool(reason)


@pytest.mark.parametrize(("tasks", "refused"), [(0.87, False), (0.83, True), (1.14, False), (1.2, True)])
def test_a_run_whose_cores_had_another_speed_than_around_it_is_refused(tasks, refused):
    case = msgspec.structs.replace(sized_case("join", 3, "send"), size=5)
    before = promise(case, calibration(case), profile(), "machine.json")
    for one in compared(ran(case, before, before.terms["messages"][0], tasks=tasks)):
        assert one.reason.startswith(f"refused: computing took {tasks:.2f} times as long") == refused
        assert bool(one.reason) == refused


@pytest.mark.parametrize(("spread", "refused"), [(0.14, False), (0.16, True)])
def test_messages_that_depend_on_the_place_of_their_buffers_are_refused(spread, refused):
    case = msgspec.structs.replace(sized_case("ring", 3, "isend"), size=1)
    before = promise(case, calibration(case), profile(), "machine.json")
    made = ran(case, before, before.terms["messages"][0])
    times = tuple(2 * (OS + LATENCY + OR) * (1 + spread * k) for k in (-1, -0.95, 0, 0.95, 1))
    made.samples[TRIP + AFTER] = made.samples[TRIP + BEFORE] = (times,) * 3
    for one in compared(made):
        assert one.reason.startswith("refused: round trips of 64 KiB around the run took 0.8") == refused
        assert bool(one.reason) == refused


def test_a_profile_that_cannot_tell_is_refused():
    case = sized_case("ring", 3, "isend")
    old = profile()
    one = msgspec.structs.replace(old.network.classes[0], cold=())
    old = msgspec.structs.replace(old, network=msgspec.structs.replace(old.network, classes=(one,)))
    with pytest.raises(InputError, match="does not say how long messages take after computing; repeat"):
        promise(case, calibration(case), old, "")
    other = msgspec.structs.replace(calibration(case), samples={"unit": ()})
    larger = calibration(msgspec.structs.replace(case, n_bytes=2 * case.n_bytes))
    for wrong in (other, larger):
        with pytest.raises(InputError, match="no rounds of work after messages of 64 KiB on 3 ranks"):
            promise(case, wrong, profile(), "")
    with pytest.raises(InputError, match="take no time"):
        promise(case, calibration(case), profile(latency=-1.0), "")
    wide = case_of_messages("ring", 4, "isend", n_bytes=64)
    with pytest.raises(InputError, match="4 ranks: the profile has 3"):
        promise(wide, calibration(wide), profile(), "")
    bare = msgspec.structs.replace(profile(), network=None)
    with pytest.raises(InputError, match="has no network"):
        promise(case, calibration(case), bare, "")
    for wrong in ({"kind": "diamond"}, {"ranks": 1}, {"n_bytes": 8}):
        asked = {"kind": "ring", "ranks": 2, "n_bytes": 64} | wrong
        with pytest.raises(InputError):
            case_of_messages(calls="isend", **asked)


@pytest.fixture
def planted_launch(monkeypatch):
    """Replaces a launch: a calibration, or a run whose messages take `longer` times as long as predicted.

    The round trips before and after a run took as many times as long as `states` say, one after the other.
    """
    planted = SimpleNamespace(asked=[], longer=1.01, states=[])

    def launch(case, *, id, calibrate=0, predicted=None, **_):
        planted.asked.append(bool(calibrate))
        if calibrate:
            return msgspec.structs.replace(calibration(case), id=id)
        trips = planted.states.pop(0) if planted.states else (1.0, 1.0)
        made = ran(case, predicted, planted.longer * predicted.terms["messages"][0], trips=trips)
        return msgspec.structs.replace(made, id=id)

    monkeypatch.setattr(real_messages, "launch", launch)
    monkeypatch.setattr(real_messages, "round_time", lambda: UNIT)
    return planted


@pytest.mark.parametrize(("longer", "status"), [(1.01, 0), (1.2, 1), (2.0, 1)])
def test_the_verb_calibrates_predicts_runs_and_judges(longer, status, planted_launch, tmp_path, capsys):
    planted_launch.longer = longer
    save_profile(profile(), tmp_path / "machine.json")
    line = ["study", "app", "join", "--ranks", "3", "--send", "send"]
    line += ["--machine", str(tmp_path / "machine.json")]
    assert main([*line, "--results", str(tmp_path)]) == status
    assert planted_launch.asked == [True, False]
    told = capsys.readouterr()
    assert "predicted: 7.25 ms, including 3.25 ms" in told.err
    assert "join of 10 tasks on 3 ranks, messages of 64 KiB by MPI_Send, medians of 100 runs" in told.out
    assert ("within 15 %" if status == 0 else "off by more than 15 %") in told.out
    assert main([*line, "--emulate", "1,1,1"]) == 2


@pytest.mark.row("001:B1")
def test_the_study_judges_messages_and_does_not_repeat_kept_runs(planted_launch, tmp_path):
    asked = planted_launch.asked
    attempts, runs = Attempts(lambda line: None), ProgramRuns(tmp_path / "runs")
    found = grid_real.measure(runs, [profile()] * 3, attempts, EFFORT)
    assert [f.real for f in found] == list(grid_real.RUNS)
    invalid = [f for f in found if any(one.verdict.startswith("INVALID") for one in f.medians)]
    assert {f.real.kind for f in invalid} == {"fork"}  # in planted runs of one size
    assert asked == [True, False] * (EFFORT.passes * len(found))
    again = grid_real.measure(ProgramRuns(tmp_path / "runs", True), [profile()] * 3, attempts, EFFORT)
    assert [f.records for f in again] == [f.records for f in found]
    asked.clear()
    assert grid_real.measure(runs, [profile()] * 3, attempts, EFFORT, ("ring",))
    assert asked == []
    later = msgspec.structs.replace(profile(), created="9999-01-01T00:00:00+00:00")  # than the predictions
    assert grid_real.measure(runs, [later] * 3, attempts, EFFORT, ("ring",))
    assert asked
    (thesis,) = (f.real for f in found if f.real.name == "real-fork-4194304-send")
    assert thesis.thesis_error == pytest.approx(0.008, abs=0.001)
    messages, *_ = grid_study.compose([], found, None)
    assert messages.title == "Rings, fork and join"
    assert len(grid_study.outcome([], found, None).claims) == 2
    rows = {row[0]: row for row in messages.tables[0].rows}
    assert rows["fork, 4096 KiB, MPI_Send: messages"][2] == pytest.approx(8 * BLOCKED)
    assert rows["fork, 4096 KiB, MPI_Send: messages"][3] == pytest.approx(8 * BLOCKED)
    tested = [f for f in found if not f.medians[1].reason]
    assert [one.verdict for one in grid_real.claims(tested)] == ["yes", "yes"]
    planted_launch.longer = 2.0
    wrong = grid_real.measure(ProgramRuns(tmp_path / "wrong"), [profile()] * 3, attempts, EFFORT, ("ring",))
    assert "NO" in [one.verdict for one in grid_real.claims([f for f in wrong if not f.medians[1].reason])]
    none = [f for f in found if f.medians[1].reason] or found[:0]
    assert not none or "test nothing" in grid_real.claims(none)[0].verdict


@pytest.fixture
def planted_passes(monkeypatch):
    """Replaces launches of rings; returns the runs to come in order, each (its messages over those predicted,
    round trips after it over those expected, L2 cache), and the names of those made."""
    coming, made = [], []

    def launch(case, *, id, calibrate=0, predicted=None, **_):
        if calibrate:
            return msgspec.structs.replace(calibration(case), id=id)
        made.append(id)
        longer, after, cache = coming.pop(0)
        record = ran(case, predicted, longer * predicted.terms["messages"][0], trips=(1.0, after))
        return msgspec.structs.replace(on_hosts_with(record, caches={"L2": cache}), id=id)

    monkeypatch.setattr(real_messages, "launch", launch)
    monkeypatch.setattr(real_messages, "round_time", lambda: UNIT)
    monkeypatch.setattr(
        grid_real, "RUNS", tuple(grid_real.Real("ring", 1 << 16, c) for c in ("isend", "send"))
    )
    return coming, made


def test_runs_are_measured_in_passes_and_judged_by_the_median_of_those_that_test_them(
    planted_passes, tmp_path
):
    coming, made = planted_passes
    good, long, changed = (1.0, 1.0, 1 << 20), (1.1, 1.0, 1 << 20), (1.0, 1.3, 1 << 20)
    coming[:] = [(0.8, 1.0, 1 << 20), changed, long, long, good, changed]
    both = grid_real.measure(ProgramRuns(tmp_path), [profile()] * 3, Attempts(lambda line: None), EFFORT)
    names = [f"real-ring-65536-{calls}-{number}" for number in (1, 2, 3) for calls in ("isend", "send")]
    assert (coming, made) == ([], names)
    errors = [row[5:9] for row in grid_real.real_table(both).rows if row[0].endswith("messages")]
    assert errors[0] == pytest.approx((3, 0.0, -9.09, 25.0), abs=0.01)
    assert errors[1] == pytest.approx((1, -9.09, -9.09, -9.09), abs=0.01)


def test_passes_end_when_three_have_tested_each_run(planted_passes, tmp_path):
    coming, made = planted_passes
    good, changed = (1.0, 1.0, 1 << 20), (1.0, 1.3, 1 << 20)
    coming[:] = [good, changed, good, good, good, changed, good, good]
    networks = iter([profile()] * 7)
    grid_real.measure(ProgramRuns(tmp_path), networks, Attempts(lambda line: None), EFFORT)
    assert (coming, len(list(networks))) == ([], 2)
    assert made[-2:] == ["real-ring-65536-send-4", "real-ring-65536-send-5"]


@pytest.mark.parametrize(
    ("tests", "refused"), [("ttt", ""), ("ttttcc", ""), ("tt", ""), ("ttcc", "2 of 4"), ("tcccccc", "1 of 7")]
)
def test_of_more_than_three_passes_three_have_to_test_a_run(tests, refused):
    changed = Refused("refused: changed")
    passes = tuple(
        ComparedTime("messages", 1, 1.1, 1, 1, 1, changed if t == "c" else "", 15.0) for t in tests
    )
    (median,) = grid_real.RealRun(grid_real.RUNS[0], (), (passes,)).medians
    assert median.reason == (
        refused and f"refused: {refused} passes test it, expected 3: the machine changes too often"
    )
    assert isinstance(median.reason, Refused) == bool(refused)


def test_every_pass_is_predicted_from_a_profile_of_its_own(planted_passes, tmp_path):
    coming, _ = planted_passes
    coming[:] = [(1.0, 1.0, 1 << 20)] * 4
    networks = [profile(), profile(latency=1.1 * LATENCY)]
    both = grid_real.measure(ProgramRuns(tmp_path), networks, Attempts(lambda line: None), EFFORT)
    first, second = (score.written for score in both[0].scores[1])
    assert second > first
    assert [one.reason for one in both[0].scores[1]] == ["", ""]


def test_messages_that_no_pass_can_test_are_run_once(planted_passes, tmp_path):
    coming, made = planted_passes
    coming[:] = [(1.0, 1.0, 1 << 15), (1.0, 1.0, 1 << 15)]
    both = grid_real.measure(ProgramRuns(tmp_path), [profile()] * 3, Attempts(lambda line: None), EFFORT)
    assert len(made) == 2
    assert all("does not fit in an L2 cache" in one.reason for run in both for one in run.medians)
    assert grid_real.real_table(both).rows[0][5:9][0] == 0


@pytest.mark.parametrize(
    ("passes", "median"),
    [
        ([(9, ""), (-20, ""), (4, "")], (4, "")),
        ([(9, ""), (-20, ""), (4, Refused("refused: changed"))], (-20, "")),
        ([(9, "too noisy"), (-20, Refused("refused: changed")), (4, "")], (4, "")),
        (
            [(1, Refused("refused: changed")), (2, "too noisy"), (3, Refused("refused: changed"))],
            (2, "too noisy"),
        ),
        (
            [(1, Refused("refused: changed")), (2, Refused("refused: short"))],
            (1, Refused("refused: changed")),
        ),
    ],
)
def test_the_median_is_of_the_passes_that_test_and_of_two_the_worse(passes, median):
    made = [ComparedTime("messages", 1, 1 + off / 100, 1, 1, 1, reason) for off, reason in passes]
    found = judged(made)
    assert (found.signed, found.reason) == (pytest.approx(median[0]), median[1])


def test_a_disturbed_profile_is_measured_again_with_the_reason_and_at_most_three_times(tmp_path, monkeypatch):
    def planted(stolen):
        made = profile()
        taken = (HostTaken(others_percent=0.0, others_resolution=0.1, steal_percent=stolen),)
        return msgspec.structs.replace(made, network=msgspec.structs.replace(made.network, taken=taken))

    def measured(*stolen, number=1, only_kept=False):
        """(steal of the profile, what was told) if the host loses these per cent of its time in turn."""
        coming, told = list(stolen), []
        monkeypatch.setattr(
            fembench, "verb", lambda *words: save_profile(planted(coming.pop(0)), Path(words[-1]))
        )
        found = grid_messages.measure_network(tmp_path, 2, told.append, number, only_kept=only_kept)
        return found.network.taken[0].steal_percent, told

    steal, told = measured(9.0, 0.0)
    assert steal == 0.0
    assert "again: DISTURBED: the hypervisor took up to 9 %" in told[1]
    assert measured() == (0.0, [])  # kept
    save_profile(planted(8.0), tmp_path / "machine.json")
    assert measured(only_kept=True) == (8.0, [])
    assert measured(7.0, 6.0, 5.0)[0] == 5.0
    assert measured(1.0, number=2)[0] == 1.0
    assert (tmp_path / "machine-2.json").exists()
