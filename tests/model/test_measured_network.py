"""A network that was measured: what follows from its samples, and what the simulation makes of it."""

import re
from dataclasses import replace

import msgspec
import pytest
from planted_machine import flat_class, planted_machine, planted_network
from planted_runs import study_of

from fembench.base.errors import InputError
from fembench.base.terminal import arranged, columns_of
from fembench.characterize.estimate import estimated, kielmann_costs
from fembench.model.closed_form_prices import bounded
from fembench.model.events import simulate_events
from fembench.model.graph import Compute, ExecutionGraph, Receive, Send, Wait, save_graph
from fembench.model.heterogeneity import brought_up_to_date, slowness_rows
from fembench.model.planner import make_plan
from fembench.model.rates import rates_of, slowed
from fembench.model.slots import machine_of, share_of, slots_of, waiting_slows
from fembench.records.case import Case
from fembench.records.hlogp import GivenLink
from fembench.records.network import (
    ColdCost,
    Contention,
    Exchange,
    HostLoad,
    KernelTime,
    Network,
    NetworkSettings,
    PairSamples,
    RankLoad,
    Trains,
    beside_at,
    both_ways_at,
    check_network,
    class_of,
    value_at,
)
from fembench.records.profile import load_profile, save_profile
from fembench.records.sites import by_pair, with_nodes
from fembench.report.profiles import costs_table, network_text

SIZES = (8, 64, 1024, 8192, 65536, 524288)
O, L, A_BYTE, GAP = 2e-6, 5e-5, 8e-9, 7e-9


def pair_samples(a, b, mode="isend", stretch=1.0, n=8):
    """Ping-pongs without noise."""
    for m in SIZES:
        latency = stretch * (L + A_BYTE * m)
        one = dict.fromkeys(("os_measure", "or_mirror", "os_mirror", "or_measure"), (O,) * n)
        yield PairSamples(measure=a, mirror=b, m=m, rtt=(2 * (2 * O + latency),) * n, mode=mode, **one)


def trains(a, b):
    for m in (0, 64, 65536, 524288):
        counts = (1, 1, 10, 20)
        first = 2 * (2 * O + L) + A_BYTE * m
        seconds = tuple(first + (n - 1) * (1e-6 + GAP * m) for n in counts)
        yield Trains(measure=a, mirror=b, m=m, counts=counts, seconds=seconds)


def brought_home(hosts=("a", "b"), *, inside=True):
    """What ranks 0, 1 on the first host and 2 on the second bring home."""
    classes = by_pair(hosts)
    pairs = [(0, 2), (2, 0)] + ([(0, 1)] if inside else [])
    return Network(
        send_mode="isend",
        pairs="all",
        sites=("here",) * len(hosts),
        classes=(),
        class_names=classes.names,
        pair_class=classes.pair_class,
        samples=tuple(
            s
            for p in pairs
            for mode in ("isend", "send")
            for s in pair_samples(*p, mode, 1 + (mode == "send"))
        ),
        trains=tuple(t for p in pairs for t in trains(*p)),
        overlap_left=0.1,
    )


def test_messages_across_the_nodes_of_a_host_are_estimated_and_predicted_apart():
    alike = brought_home()
    classes, across = with_nodes(by_pair(("a", "b")), (0, 0, 1, 0), (0, 0, 0, 1))
    assert across == (3, -1)
    found = msgspec.structs.replace(
        alike,
        class_names=classes.names,
        samples=(*alike.samples, *(pair_samples(0, 3, "isend", 5.0))),
        numa=(0, 0, 0, 1),
        across=across,
    )
    network = estimated(found, (0, 0, 1, 0))
    check_network(network, 2, 4, "here")
    near, far = class_of(network, 0, 0), class_of(network, 0, 0, apart=True)
    assert far.name == "same host, other NUMA node"
    assert class_of(network, 0, 1, apart=True) is class_of(network, 0, 1)
    assert class_of(network, 1, 1, apart=True) is class_of(network, 1, 1)
    assert value_at(far.latency, 1000) == pytest.approx(5 * value_at(near.latency, 1000))
    profile = planted_machine((1.0,) * 4, ("a", "a", "b", "a"), network=network)
    machine = machine_of(profile, slots_of(profile, "sym"))
    assert [machine.pair(0, q).name for q in (1, 3)] == [near.name, far.name]
    assert machine.cost(0, 3, 1000).latency == pytest.approx(value_at(far.latency, 1000))
    assert machine.cost(0, 1, 1000).latency == pytest.approx(value_at(near.latency, 1000))
    assert machine.pair(0, 2).name == class_of(network, 0, 1).name
    for wrong, message in (
        ({"across": (4, -1)}, "across; expected a class below 4 for each host"),
        ({"across": (3,)}, "across; expected a class below 4 for each host"),
        ({"numa": ()}, "numa; expected a node for each of 4 ranks"),
    ):
        with pytest.raises(InputError, match=message):
            check_network(msgspec.structs.replace(network, **wrong), 2, 4, "here")


def test_method_one_alone_tells_what_a_message_takes_and_nothing_of_overheads():
    found = msgspec.structs.replace(
        brought_home(), samples=(), overlap_left=None, settings=NetworkSettings(methods=("I",))
    )
    network = estimated(found, (0, 0, 1))
    check_network(network, 2, 3, "here")
    assert not network.blocking
    for one in network.classes:
        for m in (64, 5000, 500_000):
            # T = L + g(m): half an empty round trip, and what m bytes add to one way
            assert value_at(one.latency, m) == pytest.approx(2 * O + L + A_BYTE * m, rel=1e-6)
            assert value_at(one.send, m) == value_at(one.receive, m) == 0
    text = network_text(network)
    assert "trains of MPI_Isend alone" in text
    assert "overheads are unknown, and assumed to be 0" in text


def test_costs_by_blocking_calls_alone_are_those_of_the_profile():
    samples = tuple(s for s in brought_home().samples if s.mode == "send")
    network = estimated(msgspec.structs.replace(brought_home(), samples=samples, send_mode="send"), (0, 0, 1))
    assert network.classes == network.blocking
    assert value_at(network.classes[1].latency, 5000) == pytest.approx(2 * (L + A_BYTE * 5000), rel=1e-6)
    assert "MPI_Send," in network_text(network)


def test_messages_both_ways_take_as_much_longer_as_turns_of_them_did():
    def exchange(pair, m, factor):
        turns = (1.0, 1.1, 0.9, 1.0, 50.0)
        return Exchange(
            measure=pair[0], mirror=pair[1], m=m, in_turn=turns, at_once=tuple(factor * t for t in turns)
        )

    found = tuple(exchange((0, 2), m, f) for m, f in ((65536, 1.5), (1024, 0.9)))
    found += (
        msgspec.structs.replace(
            exchange((2, 0), 1000, 1.0), alone=(3.0, 3.1, 9.0), beside=(3.5, 3.7, 9.1), left=(0.2, 0.1, 5.0)
        ),
    )
    network = estimated(msgspec.structs.replace(brought_home(), exchanges=found), (0, 0, 1))
    near, far, back = network.classes
    text = network_text(network)
    assert "x 1.33" in text  # 16 KiB
    assert re.search(r"b > a +\| +1000 B \| +500 ms \| +200 ms", text)
    assert far.both_ways == ((1024, 1.0), (65536, pytest.approx(1.5)))
    assert [both_ways_at(far, m) for m in (8, 8192, 1 << 20)] == pytest.approx([1.0, 1.25, 1.5])
    assert near.both_ways == near.beside == far.beside == ()
    assert [beside_at(back, m) for m in (10, 1000, 3000)] == [
        pytest.approx((k * 0.5, k * 0.2)) for k in (1, 1, 3)
    ]
    assert both_ways_at(near, 8) == 1.0


@pytest.mark.row("001:3.1")
def test_parameters_of_every_class_follow_from_the_samples():
    network = estimated(brought_home(), (0, 0, 1))
    check_network(network, 2, 3, "here")
    assert [c.name for c in network.classes] == ["same host", "a > b", "b > a"]
    for one, blocking in zip(network.classes, network.blocking):
        for m in (8, 5000, 500_000):
            assert value_at(one.send, m) == pytest.approx(O, rel=1e-6)
            assert value_at(one.latency, m) == pytest.approx(L + A_BYTE * m, rel=1e-6)
            assert value_at(one.gap, m) == pytest.approx(1e-6 + GAP * m, rel=1e-3)
            assert value_at(blocking.latency, m) == pytest.approx(2 * (L + A_BYTE * m), rel=1e-6)
        assert one.switch is None
    assert network.overlap is True
    assert any("differ by" in note for note in network.notes)
    other = estimated(brought_home(inside=False), (0, 0, 1)).classes  # no two ranks of a host could measure
    assert other[0].name == "same host, as a > b"
    assert other[0].latency == other[1].latency


def test_kielmann_s_parameters_are_those_of_the_published_formulas():
    found = kielmann_costs("x", list(trains(0, 1)))
    rtt_0, g_0 = 2 * (2 * O + L), (2 * (2 * O + L) + 19e-6) / 20
    assert [k.m for k in found] == [0, 64, 65536, 524288]
    assert found[0].latency == pytest.approx((rtt_0 - 2 * g_0) / 2)
    assert found[2].gap == pytest.approx(A_BYTE * 65536 + g_0)
    assert kielmann_costs("x", [t for t in trains(0, 1) if t.m]) == []


def crowd(factor, pairs, m, where):
    return Contention(pairs=pairs, m=m, factor=factor, where=where)


@pytest.mark.row("001:7.3.10")
@pytest.mark.parametrize("where", ["between", "inside"])
@pytest.mark.parametrize("factor", [1.5, 2.8])
def test_messages_of_several_pairs_take_as_much_longer_as_was_measured(where, factor):
    m, k = 1 << 20, 4
    network = planted_network(2, contention=(crowd(factor, k, m, where),))
    hosts = ("a",) * k + ("b",) * k if where == "between" else ("a",) * 2 * k + ("b",)
    profile = planted_machine([1.0] * len(hosts), hosts, network=network)
    machine = machine_of(profile, slots_of(profile, "sym"))
    assert machine.contention
    programs = [
        *((Send(r + k, m, 0), Wait(0)) for r in range(k)),
        *((Receive(r, m, 0), Wait(0)) for r in range(k)),
        *(() for _ in hosts[2 * k :]),
    ]
    graph = ExecutionGraph(phases=("x",), programs=tuple(programs))
    result = simulate_events(make_plan(graph, machine))
    alone = machine.cost(0, k, m).total
    assert result.makespan == pytest.approx(factor * alone, rel=1e-9)


@pytest.mark.parametrize(("asked", "between"), [(None, 0.0), (True, None)])
def test_a_given_link_holds_nothing_up_unless_asked_for_whatever_a_host_does(asked, between):
    network = planted_network(contention=(crowd(2.8, 4, 1 << 20, "inside"),))
    profile = planted_machine([1.0] * 2, network=network)
    slots = slots_of(profile, "sym", ("add:node8",))
    machine = machine_of(profile, slots, GivenLink(2e-5, 1e9), asked)
    assert machine.contention
    assert machine.inside == share_of(network, "inside") > 0.5
    assert machine.between == between


def test_pairs_that_hardly_disturb_each_other_are_simulated_without():
    network = planted_network(
        2, contention=(crowd(1.05, 2, 65536, "between"), crowd(0.9, 2, 65536, "inside"))
    )
    profile = planted_machine([1.0] * 2, ("a", "b"), network=network)
    slots = slots_of(profile, "sym")
    assert not machine_of(profile, slots).contention
    assert machine_of(profile, slots, None, True).contention  # asked for
    assert share_of(network, "apart") is None
    crowded = msgspec.structs.replace(network, contention=(crowd(2.0, 2, 65536, "between"),))
    profile = msgspec.structs.replace(profile, network=crowded)
    assert not machine_of(profile, slots, None, False).contention
    assert share_of(crowded, "between") == 1.0  # no more than one after the other


@pytest.mark.row("001:F12b", "001:7.3.7")
def test_ranks_that_wait_slow_others_where_they_keep_the_core_they_share():
    polls = planted_network(1, polling=2.0)
    profile = planted_machine([1.0] * 12, network=polls)  # on a host of 8 cores
    slots = slots_of(profile, "sym")
    assert waiting_slows(profile, slots) == [1.5] * 12
    assert waiting_slows(profile, slots[:8]) == [1.0] * 8
    for changes in ({"dilate": 4.0}, {"network": planted_network(1, polling=1.02)}, {"network": None}):
        assert waiting_slows(msgspec.structs.replace(profile, **changes), slots) == [1.0] * 12


@pytest.fixture
def polling_machine(tmp_path):
    """The file of a profile of 12 ranks on 8 cores, which waiting ranks keep."""
    profile = planted_machine([1.0] * 12, network=planted_network(1, polling=2.0))
    save_profile(profile, tmp_path / "machine.json")
    return str(tmp_path / "machine.json")


@pytest.mark.parametrize(("hosts", "seconds"), [((), 1.5), (("node8",) * 12, 1.0)])
def test_a_graph_made_elsewhere_is_slowed_by_waiting_ranks_and_one_made_there_is_not(
    tmp_path, polling_machine, answer, hosts, seconds
):
    path = str(tmp_path / "graph.json")
    save_graph(ExecutionGraph(phases=("x",), programs=((Compute(0, 1.0),),) * 12, hosts=hosts), path)
    assert answer("simulate", path, "--machine", polling_machine)["makespan"] == pytest.approx(seconds)


def with_kernels(profile):
    times = [
        KernelTime(rank=r, kernel=k, seconds=s, cpu=c)
        for r, s, c in ((0, 2.0, 1.0), (1, 4.0, 4.0))
        for k in "ab"
    ]
    loads = (RankLoad(rank=0, queue=16.0, load=4.0), RankLoad(rank=1, queue=1.0, load=12.0))
    network = msgspec.structs.replace(profile.network, kernels=tuple(times), loads=loads)
    return msgspec.structs.replace(profile, network=network)


@pytest.mark.row("001:4.1-3")
def test_h_is_told_by_product_and_kernels_and_brought_up_to_date_by_three_laws():
    profile = with_kernels(planted_machine([1.0, 0.5], ("a", "b"), network=planted_network(2)))
    first, second = slowness_rows(profile)  # hosts of 8 cores
    assert first[:2] == [0, "a"]
    assert first[2:] == pytest.approx(
        [1.0, 1.0, 1.0, 2.0, 1.0, 2.0]
    )  # queue of 2 a core, half a load, half served
    assert second[2:] == pytest.approx([2.0, 2.0, 4.0, 4.0, 6.0, 4.0])
    assert slowness_rows(planted_machine([1.0])) == []
    assert "Eq. 4.3" in network_text(profile.network, [first, second])


def test_a_host_is_as_slow_as_its_clock_says_it_is_now():
    profile = planted_machine([1.0] * 3, ("a", "a", "b"), network=planted_network(2))
    now = HostLoad("a", 2.0, 0.5)
    found = {rank: one.factor for rank, one in brought_up_to_date(profile, [now]).items()}
    assert found == pytest.approx({0: 4.0, 1: 4.0})
    rates, slow = rates_of(profile), slowed(rates_of(profile), found)
    for rank in range(3):
        was, now_is = (r.seconds(rank, "product sym", 1e6, 1) for r in (rates, slow))
        assert now_is == pytest.approx(was * found.get(rank, 1.0))
    with pytest.raises(InputError, match="no host c; expected one of a, b"):
        brought_up_to_date(profile, [msgspec.structs.replace(now, host="c")])


@pytest.mark.row("001:F8")
def test_a_host_as_loaded_as_in_the_profile_is_as_fast_as_there():
    kernels = tuple(KernelTime(rank=r, kernel=k, seconds=2.0, cpu=0.5) for r in range(2) for k in "ab")
    profile = planted_machine([1.0] * 2, ("a", "a"), network=planted_network(1, kernels=kernels))
    assert brought_up_to_date(profile, [HostLoad("a", 4.0, 1.0)])[0] == (1.0, 1.0, 1.0)
    assert brought_up_to_date(profile, [HostLoad("a", 1.0, 1.0)])[0].factor < 1.0


@pytest.mark.parametrize("method", ["simulation", "closed form"])
def test_the_samples_of_the_load_widen_the_interval_around_their_median(method):
    profile = planted_machine([1.0], ("a",), network=planted_network(1))
    samples = [HostLoad("a", s, 1.0) for s in (1.0, 2.0, 3.0)]
    (now,) = brought_up_to_date(profile, samples).values()
    assert now == (2.0, 1.0, 3.0)
    rates, case = slowed(rates_of(profile), {0: now.factor}), Case.of(mesh="m1")

    def ends(uncertain):
        study = replace(study_of(profile), rates=replace(rates, uncertain=uncertain))
        if method == "simulation":
            found = study.predict(case)
            return found.low, found.iteration, found.high
        bounds = bounded(study, study.workload(case), 10)
        return bounds.iteration.low, bounds.expected.iteration, bounds.iteration.high

    (low, middle, high), (lower, same, higher) = ends(0.0), ends(now.uncertain)
    assert same == middle
    assert (lower, higher) == pytest.approx((low / 2, high * 2), rel=1e-6)


def test_each_part_of_a_table_of_messages_that_is_split_begins_with_pair_and_bytes():
    cold = ColdCost(m=8, computed=1e-3, swept=True, send=2e-6, latency=0.0, receive=3e-6)
    network = estimated(brought_home(), (0, 0, 1))
    classes = tuple(msgspec.structs.replace(one, cold=(cold,)) for one in network.classes)
    table = columns_of(costs_table(msgspec.structs.replace(network, classes=classes)).splitlines())
    blocks, _ = arranged(table, 80)
    assert len(blocks) > 1
    for block in blocks:
        assert [column.head for column in block[:2]] == ["pair", "bytes"]
        rows = list(zip(block[0].cells, block[1].cells))
        assert len(set(rows)) == len(rows) > len(classes)


def test_the_report_shows_every_part_of_a_network_which_survives_its_file(tmp_path):
    network = estimated(brought_home(), (0, 0, 1))
    profile = planted_machine([1.0] * 3, ("a", "a", "b"), network=network)
    save_profile(profile, tmp_path / "machine.json")
    assert load_profile(tmp_path / "machine.json") == profile
    assert "after computing" not in network_text(network)
    cold = ColdCost(m=8, computed=1e-3, swept=True, send=2e-6, latency=0.0, receive=3e-6)
    one = msgspec.structs.replace(flat_class("cold", latency=5e-6, a_byte=0.0), cold=(cold,))
    shown = costs_table(msgspec.structs.replace(network, classes=(one,)))
    (row,) = (line for line in shown.splitlines() if "cold, after computing 1 ms" in line)
    assert [cell.strip() for cell in row.split("|")[4:8]] == ["3 µs", "5 µs", "4 µs", "12 µs"]
    measured = msgspec.structs.replace(network, contention=(crowd(1.5, 2, 65536, "between"),), polling=1.9)
    text = network_text(measured, synthetic="a lab")
    for part in ("SYNTHETIC: a lab", "a > b", "Kielmann", "between", "1.50", "travels", "keep their core"):
        assert part in text
    slow = msgspec.structs.replace(measured, overlap=False, overlap_left=0.97, polling=1.01)
    assert "does not travel while ranks compute: 97 %" in network_text(slow)
    assert "leave their core" in network_text(slow)
    waits = network_text(msgspec.structs.replace(slow, overlap_left=1.26))
    assert "all of its time remains afterwards (measured: 126 %; more is a disturbance)" in waits
