"""Both simulators against closed forms, each other, and the numbers of Calzeta and de Souza (2008)."""

import csv
import dataclasses
import itertools
import math
import re
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from known_programs import (
    allreduces,
    cg_chain,
    cg_graph,
    graph_of,
    incast,
    master_slaves,
    ping_pong,
    ring,
)

from fembench.base.errors import InputError
from fembench.model.engine import simulate
from fembench.model.events import simulate_events
from fembench.model.graph import Collective, Compute, Loop, Receive, Send, Wait
from fembench.model.machine import even_machine, faster_network
from fembench.model.path import by_phase, by_rank, critical_path, timeline
from fembench.model.plan import DeadlockError
from fembench.model.planner import make_plan
from fembench.records.network import Beside, ColdCost

ALPHA, BETA, O = 50e-6, 8e-9, 1e-6


def machine(ranks, *, overlap=True, **options):
    made = even_machine(ranks, **{"latency": ALPHA, "per_byte": BETA, "overhead": O, **options})
    return dataclasses.replace(made, overlap=overlap)


def both(graph, on=None, **options):
    """The makespan, on which the two simulators agree."""
    plan = make_plan(graph, on or machine(graph.ranks))
    fast, slow = simulate(plan, **options), simulate_events(plan)
    assert fast.finish == pytest.approx(slow.finish, rel=1e-12)
    for name in ("busy", "wait", "overhead"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), rel=1e-9, abs=1e-15)
    for result in (fast, slow):
        spent = (result.busy + result.wait + result.overhead).sum(axis=1)
        assert spent == pytest.approx(result.finish, rel=1e-12)
        path = critical_path(plan, result)
        assert sum(link.seconds for link in path) == pytest.approx(result.makespan, rel=1e-9)
    return fast


def message(m):
    return ALPHA + BETA * m + 2 * O


def cold_machine(send, receive):
    """Two ranks; computing for t seconds adds send * t to Os and receive * t to Or of their next message."""
    one = ColdCost(m=8, computed=1.0, swept=True, send=send, latency=0.0, receive=receive)
    link = msgspec.structs.replace(machine(2).pair(0, 1), cold=(one,))
    return dataclasses.replace(machine(2), link=lambda a, b: link, _links={}, _known={})


with open(Path(__file__).parents[1] / "data" / "seed003_golden_engine.csv", newline="") as stream:
    GOLDEN = list(csv.DictReader(stream))
HALVED = (1, 1, 0.5, 1)  # speeds of the CG chain
CHAINS = {
    "CG chain of 4 ranks, speeds 1,1,0.5,1, equal split": ([0.01] * 4, HALVED),
    "CG chain of 4 ranks, speeds 1,1,0.5,1, split by speed": (0.04 * np.array(HALVED) / 3.5, HALVED),
    "CG chain of 4 ranks": ([0.01] * 4, (1,) * 4),
    **{f"strong scaling of the A4 template, {p} ranks": ([0.04 / p] * p, (1,) * p) for p in (2, 4, 8)},
}


def chain(case):
    seconds, speeds = CHAINS[case]
    return both(cg_chain(seconds, 50, 2400), machine(len(seconds), speeds=speeds))


@pytest.mark.row("001:F11", "001:7.1e", "003:A1-A3", "003:A4", "003:A5")
@pytest.mark.parametrize("row", GOLDEN, ids=lambda r: f"{r['case']}: {r['quantity']}")
def test_the_engine_gives_the_golden_numbers_of_calzeta_and_de_souza(row):
    """A1 to A3 follow from closed forms; A4 and A5 were computed by two other programs, which do not let the
    inner ranks of a chain hear of the outer ones an overhead earlier."""
    case, quantity, expected = row["case"], row["quantity"], float(row["expected_value"])
    ranks = int(re.search(r"(\d+) (?:processes|ranks)", case)[1]) if row["test"] != "A1" else 2
    if row["test"] == "A1":
        found, near = both(ping_pong(100, 1000)).makespan, 1e-9
    elif row["test"] == "A2":
        result, near = both(master_slaves(ranks, 0.732, 16, 8)), 1e-11
        found = result.makespan if quantity == "makespan_s" else result.messages.sum()
    elif row["test"] == "A3":
        found, near = 1e6 * both(allreduces(ranks, 8)).makespan, 1e-9
    elif quantity == "gain":
        equal, weighted, *_ = (chain(name).makespan for name in CHAINS)
        found, near = equal / weighted, 1e-4
    elif quantity == "messages":
        found, near = chain(case).messages.sum(), 1e-9
    else:
        found, near = chain(case).makespan, 1e-4
    assert found == pytest.approx(expected, rel=near)


def linked(ranks, **changes):
    one = machine(ranks)
    link = msgspec.structs.replace(one.link(0, 1), **changes)
    return dataclasses.replace(one, link=lambda a, b: link)


def exchange(there, back, computing=1e-3, **options):
    sizes = there, back
    return graph_of(
        [
            [Receive(1 - r, sizes[1 - r], 2), Send(1 - r, sizes[r], 2), Compute(1, computing), Wait(2)]
            for r in range(2)
        ],
        **options,
    )


def test_messages_both_ways_at_once_take_as_much_longer_as_was_measured():
    on, m = linked(2, both_ways=((1000, 1.0), (100_000, 1.5))), 10_000
    assert both(exchange(m, m, 0.0), on).makespan == pytest.approx(1.25 * message(m), rel=1e-9)
    assert both(exchange(m, m // 5, 0.0), on).makespan == pytest.approx(1.05 * message(m), rel=1e-9)
    assert both(exchange(m, m, 0.0)).makespan == pytest.approx(message(m), rel=1e-9)
    assert both(ping_pong(100, m), on).makespan == pytest.approx(both(ping_pong(100, m)).makespan)
    turning = both(ring(6, 2, m, 1e-3), linked(6, both_ways=((8, 2.0),))).makespan
    assert turning == pytest.approx(both(ring(6, 2, m, 1e-3)).makespan)


def test_messages_that_travel_beside_computing_cost_it_time_and_are_taken_in_afterwards():
    m, longer, left = 10_000, 4e-5, 3e-5
    on = linked(2, beside=(Beside(m=m, longer=longer, left=left),))
    plan = make_plan(exchange(m, m), on)
    assert both(exchange(m, m), on).makespan == pytest.approx(O + 1e-3 + longer + left, rel=1e-9)
    assert simulate(plan).busy.sum() == pytest.approx(2e-3)  # what is lost is no work
    assert both(exchange(2 * m, 2 * m), on).makespan == pytest.approx(O + 1e-3 + 2 * (longer + left))
    half = (ALPHA + BETA * m) / 2  # of the way: half as much is lost, and the rest is waited for
    assert both(exchange(m, m, half), on).makespan == pytest.approx(O + 2 * half + O + (left - O) / 2)
    assert both(exchange(m, m, 0.0), on).makespan == pytest.approx(message(m), rel=1e-9)
    recorded = exchange(m, m, hosts=("a", "b"))  # whose computing has it in it
    assert both(recorded, on).makespan == pytest.approx(O + 1e-3 + left, rel=1e-9)
    waits = linked(2, beside=(Beside(m=m, longer=longer, left=left),), switch=m)
    assert both(exchange(m, m), waits).makespan == pytest.approx(
        both(exchange(m, m), linked(2, switch=m)).makespan
    )


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 12])
def test_other_numbers_of_ranks_pair_up_before_and_after(ranks):
    found = both(allreduces(ranks, 8)).makespan / 52.064e-6
    # who has no partner is early, and its messages wait for the others
    assert 0.99 + math.floor(math.log2(ranks)) < found < 2.1 + math.floor(math.log2(ranks))


def test_a_large_all_reduce_goes_round_a_ring_in_parts():
    m, ranks = 8_000_000, 8
    assert both(allreduces(ranks, m)).makespan == pytest.approx(14 * message(m // ranks), rel=1e-12)


@pytest.mark.parametrize("kind", ["bcast", "reduce"])
@pytest.mark.parametrize("root", [0, 3])
def test_a_tree_is_as_deep_as_its_doublings(kind, root):
    result = both(graph_of([[Collective(kind, 1000, 2, root)]] * 8))
    assert result.messages.sum() == 7
    # sending twice more costs the root two overheads, which the deepest leaf does not see first
    assert result.makespan == pytest.approx(3 * message(1000), abs=3 * O)


def test_a_barrier_takes_as_many_rounds_as_doublings():
    assert both(graph_of([[Collective("barrier", 0, 2)]] * 5)).makespan == pytest.approx(3 * message(0))


def test_a_ring_takes_all_its_ranks_in_turn():
    result = both(ring(6, 20, 5000, 1e-3))
    assert result.makespan == pytest.approx(20 * 6 * (1e-3 + message(5000)), rel=1e-9)


def test_incast_without_contention_costs_the_receiver_one_overhead_a_message():
    assert both(incast(8, 10_000)).makespan == pytest.approx(message(10_000) + 7 * O, rel=1e-9)


@pytest.mark.row("003:2sem")
def test_incast_with_contention_takes_the_wire_for_one_after_the_other():
    m, n = 1_000_000, 8
    on = machine(n + 1, contention=True)
    result = simulate_events(make_plan(incast(n, m), on))
    assert result.makespan == pytest.approx(2 * O + ALPHA + n * BETA * m, rel=1e-9)


def test_messages_of_one_host_leave_one_after_the_other():
    m = 1_000_000
    programs = [
        [Send(1, m, 1), Send(2, m, 1), Wait(1)],
        [Receive(0, m, 1, blocking=True)],
        [Receive(0, m, 1, blocking=True)],
    ]
    result = simulate_events(make_plan(graph_of(programs), machine(3, contention=True)))
    assert result.finish[1:] == pytest.approx([O + ALPHA + BETA * m + O, O + ALPHA + 2 * BETA * m + O])


@pytest.mark.row("001:7.3.3", "003:A4")
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_cg_of_equal_ranks_in_a_ring_is_the_sum_of_its_parts(ranks):
    seconds, n, halo = 0.003, 30, 24_000
    neighbours = [sorted({(r - 1) % ranks, (r + 1) % ranks} - {r}) for r in range(ranks)]
    k = len(neighbours[0])
    result = both(cg_graph([seconds] * ranks, neighbours, n, halo))
    # the first message of a pair leaves after one overhead; the last to arrive left after k
    turn = k * O + ALPHA + BETA * halo + O + seconds + 2 * math.log2(ranks) * message(8)
    assert result.makespan == pytest.approx(n * turn, rel=2e-3)


@pytest.mark.row("003:2sem")
def test_messages_travel_while_ranks_compute():
    hidden = both(cg_chain([0.01] * 2, 10, 100_000, inside=0.5)).makespan
    shown = both(cg_chain([0.01] * 2, 10, 100_000)).makespan
    assert shown - hidden == pytest.approx(10 * (ALPHA + BETA * 100_000), rel=1e-9)


def test_beyond_the_switch_messages_without_progress_travel_only_while_both_wait():
    graph = cg_chain([0.01] * 2, 10, 100_000, inside=0.5)
    travelling = both(graph, machine(2, switch=65536)).makespan
    waiting = both(graph, machine(2, switch=65536, overlap=False)).makespan
    assert travelling == pytest.approx(both(graph).makespan, rel=1e-9)
    assert waiting - travelling == pytest.approx(10 * (ALPHA + BETA * 100_000), rel=1e-9)


def test_a_message_beyond_the_switch_waits_for_its_receiver():
    late = Compute(0, 1.0)
    programs = [[Send(1, 100_000, 1, blocking=True)], [late, Receive(0, 100_000, 1, blocking=True)]]
    eager = both(graph_of(programs))
    patient = both(graph_of(programs), machine(2, switch=65536))
    assert eager.finish == pytest.approx([O, 1.0 + O])
    travel = ALPHA + BETA * 100_000
    assert patient.finish == pytest.approx([1.0 + travel, 1.0 + travel + O])


def test_overheads_are_paid_in_the_order_of_arrival():
    programs = [
        [Compute(0, 1e-3), Send(2, 8, 1, blocking=True)],
        [Send(2, 8, 1, blocking=True)],
        [Receive(0, 8, 1), Receive(1, 8, 1), Wait(1)],
    ]
    assert both(graph_of(programs)).finish[2] == pytest.approx(1e-3 + message(8))


@pytest.mark.row("003:dead")
@pytest.mark.parametrize(
    "programs",
    [
        [
            [Receive(1, 8, 1, blocking=True), Send(1, 8, 1)],
            [Receive(0, 8, 1, blocking=True), Send(0, 8, 1)],
            [],
        ],
        [[Receive(1, 8, 1, blocking=True)], [], []],
        [
            [Send(1, 100_000, 1, blocking=True), Receive(1, 8, 1, blocking=True)],
            [Send(0, 8, 1, 5)],
            [Compute(0, 1.0)],
        ],
        [[Collective("allreduce", 8, 2)], [Collective("allreduce", 8, 2)], []],
    ],
)
def test_a_deadlock_names_the_ranks_that_are_blocked(programs):
    with pytest.raises(DeadlockError, match="blocked ranks 0 "):
        make_plan(graph_of(programs), machine(3, switch=65536))


def test_graph_and_machine_must_have_as_many_ranks_and_messages_as_many_bytes():
    with pytest.raises(InputError, match="2 ranks; expected 3"):
        make_plan(ping_pong(1, 8), machine(3))
    with pytest.raises(InputError, match="expects 8 bytes"):
        make_plan(graph_of([[Send(1, 9, 1)], [Receive(0, 8, 1, blocking=True)]]), machine(2))


def test_loops_that_differ_from_rank_to_rank_are_unrolled():
    master = [Loop(3, (Send(1, 8, 1, blocking=True),)), Loop(3, (Receive(1, 8, 1, blocking=True),))]
    slave = [Loop(3, (Receive(0, 8, 1, blocking=True), Send(0, 8, 1, blocking=True)))]
    result = both(graph_of([master, slave]))
    assert result.messages.sum() == 6


def test_messages_that_wait_for_their_receiver_and_others_are_waited_for_at_once():
    sizes = {1: 8, 2: 100_000}  # by tag
    programs = [
        [
            *(Receive(1 - r, m, 1, tag) for tag, m in sizes.items()),
            *(Send(1 - r, m, 1, tag) for tag, m in sizes.items()),
            Compute(0, 1e-3),
            Wait(1),
            *[Collective("barrier", 0, 2)] * 2,
        ]
        for r in range(2)
    ]
    travel = ALPHA + BETA * sizes[2]
    assert travel < 1e-3
    found = both(graph_of([[Loop(3, tuple(one))] for one in programs]), machine(2, switch=65536)).makespan
    assert found == pytest.approx(3 * (4 * O + 1e-3 + 2 * message(0)), rel=1e-9)


@pytest.mark.row("003:F11")
def test_random_graphs_agree_to_the_last_bits():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ranks = int(rng.integers(2, 9))
        neighbours = [[] for _ in range(ranks)]
        for a in range(ranks):
            for b in range(a):
                if rng.random() < 0.5:
                    neighbours[a].append(b)
                    neighbours[b].append(a)
        graph = cg_graph(
            rng.uniform(0, 1e-3, ranks), neighbours, 7, int(rng.integers(0, 200_000)), inside=0.4
        )
        switch = [None, 65536][seed % 2]
        both(graph, machine(ranks, speeds=rng.uniform(0.2, 1, ranks), switch=switch, overlap=seed % 3 > 0))


def test_a_faster_network_divides_latency_and_leaves_overheads():
    quick = both(ping_pong(10, 1000), faster_network(machine(2), 10)).makespan
    assert quick == pytest.approx(20 * ((ALPHA + 8e-6) / 10 + 2 * O), rel=1e-9)


@pytest.mark.row("003:3.1", "003:cp")
def test_the_critical_path_runs_over_the_slow_rank():
    graph = cg_chain([0.01] * 4, 50, 2400)
    plan = make_plan(graph, machine(4, speeds=(1, 1, 0.5, 1)))
    path = critical_path(plan, simulate(plan))
    assert next(iter(by_rank(path))) == 2
    assert by_rank(path)[2] == pytest.approx(50 * 0.02, rel=0.05)
    assert next(iter(by_phase(path))) == "compute"


def test_bars_of_the_timeline_fill_each_ranks_time():
    plan = make_plan(cg_chain([0.01] * 3, 4, 2400), machine(3))
    result = simulate(plan, period=False)
    for rank in range(3):
        bars = [b for b in timeline(result) if b.rank == rank]
        assert sum(b.end - b.begin for b in bars) == pytest.approx(result.finish[rank], rel=1e-12)
        assert all(a.end <= b.begin + 1e-12 for a, b in itertools.pairwise(bars))


def grid(n):
    """Neighbours of n^3 ranks in a box: six, as faces have."""
    place = np.arange(n**3).reshape(n, n, n)
    found = [[] for _ in range(n**3)]
    for axis in range(3):
        a, b = np.split(place, [n - 1], axis)[0].ravel(), np.split(place, [1], axis)[1].ravel()
        for p, q in zip(a.tolist(), b.tolist()):
            found[p].append(q)
            found[q].append(p)
    return found


@pytest.mark.row("003:ps")
def test_turns_that_repeat_are_skipped_without_a_shift():
    rng = np.random.default_rng(1)
    graph = cg_graph(rng.uniform(5e-4, 1e-3, 64), grid(4), 200, 20_000, inside=0.3)
    plan = make_plan(graph, machine(64))
    short, whole = simulate(plan), simulate(plan, period=False)
    assert short.simulated < 60
    assert whole.simulated == 200
    assert short.finish == pytest.approx(whole.finish, rel=1e-9)
    assert short.wait == pytest.approx(whole.wait, rel=1e-6)
    paths = [by_phase(critical_path(plan, r)) for r in (short, whole)]
    assert paths[0] == pytest.approx(paths[1], rel=1e-2)


def test_a_turn_of_the_period_is_simulated_once_however_often_it_is_looked_at():
    rng = np.random.default_rng(1)
    plan = make_plan(cg_graph(rng.uniform(5e-4, 1e-3, 8), grid(2), 50, 20_000, inside=0.3), machine(8))
    turns = next(run.turns for run in simulate(plan).runs if len(run.turns) > 1)
    assert turns[1] is turns[1]
    assert turns[1] is not turns[0]


@pytest.mark.slow
def test_a_thousand_iterations_on_256_ranks_take_seconds():
    rng = np.random.default_rng(1)
    neighbours = [[q for q in found if q < 256] for found in grid(7)[:256]]
    graph = cg_graph(rng.uniform(5e-4, 1e-3, 256), neighbours, 1000, 20_000, inside=0.3)
    start = time.perf_counter()
    plan = make_plan(graph, machine(256))
    short = simulate(plan)
    quick = time.perf_counter() - start
    whole = simulate(plan, period=False)
    assert time.perf_counter() - start < 30  # the promise is 5 s on an idle core, and 0.5 s with periods
    assert quick < 5
    assert short.makespan == pytest.approx(whole.makespan, rel=1e-3)


def test_a_message_after_computing_costs_more_in_every_turn_of_a_loop():
    seconds, rounds = 0.02, 10
    found = both(ring(2, rounds, 8, seconds), cold_machine(0.5, 0.25))
    assert found.makespan == pytest.approx(2 * rounds * (1.75 * seconds + message(8)))
    warm = both(ping_pong(rounds, 8), cold_machine(0.5, 0.25))
    assert warm.makespan == pytest.approx(2 * rounds * message(8))


def test_a_message_that_arrives_while_its_receiver_computes_is_received_after_computing():
    sender = (Send(1, 8, 0, blocking=True),)
    receiver = (Receive(0, 8, 0), Compute(0, 0.02), Wait(0))
    found = both(graph_of([sender, receiver]), cold_machine(0.5, 0.25))
    assert found.finish[1] == pytest.approx(1.25 * 0.02 + O)
