"""Predictions: from a profile and a partition, corrected by runs, recorded before a run, scored after it."""

import dataclasses
import itertools
import json
import math
import re
import socket
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from planted_machine import flat_class, planted_machine, planted_network
from planted_profile import one_speed
from planted_runs import ITERATIONS, even_prices, planted_run, run_of, study_of
from thesis_001 import DATA

from fembench.base.errors import InputError
from fembench.base.units import count
from fembench.cli.main import main
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.model.cg import Correction, cg_graph, prices
from fembench.model.closed_form_prices import bounded
from fembench.model.correct import fit, folds, learn, measured, taught_by
from fembench.model.engine import simulate
from fembench.model.forecast import allreduce_scale, half_width, smallest
from fembench.model.from_record import graph_of_record, message_of
from fembench.model.graph import save_graph
from fembench.model.grid import read_grid
from fembench.model.grid import study_of as study_of_grid
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.model.predictor import open_study, taught
from fembench.model.rates import Rates, beside_others, rates_of
from fembench.model.score import Grid, ScoredConfiguration, check_held_out, ideal, kendall, score
from fembench.model.slots import Slot, company, machine_of, slots_of
from fembench.model.workload import restrained, workload
from fembench.records.case import Case
from fembench.records.hlogp import parse_link
from fembench.records.network import AllReduceTime, Beside
from fembench.records.phases import ALLREDUCE, AXPY, CG, LOOP, NAMES, SPMV_INTERIOR
from fembench.records.prediction import load_prediction
from fembench.records.profile import save_profile
from fembench.records.store import load, load_all, save
from fembench.records.verdict import Rule, Verdict

HOSTS = ("a", "a", "b", "b")


@pytest.mark.row("003:gen")
def test_the_workload_is_the_partition_that_a_run_makes():
    record = load(DATA / "record.json")
    assert workload(record.case).parts == record.partition
    assert workload(record.case).mesh_hash == record.mesh.hash
    assert workload(record.case).n_equations == record.mesh.n_equations


def test_a_problem_held_at_its_boundary_has_fewer_equations():
    assert (
        workload(Case.of(mesh="m1", problem="patch")).n_equations < workload(Case.of(mesh="m1")).n_equations
    )


def test_a_name_of_nodes_and_of_facets_restrains_what_it_restrains_in_a_run(tmp_path, refusal, machine_file):
    box = resolve("box:2x2x2")
    face = np.flatnonzero(box.x[:, 0] == 0)
    apart = int(np.flatnonzero(box.x[:, 0] == box.x[:, 0].max())[0])
    tags = {"held": box.facet_tags[next(n for n, f in box.facet_tags.items() if set(f.ravel()) == {*face})]}
    mesh = Mesh.create(box.x, box.cells, box.element, "both", {"held": [apart]}, tags)
    problem = tmp_path / "p.toml"
    problem.write_text('[[constraints]]\non = {tag = "held"}\n')
    assert restrained(str(problem), mesh).sum() == 3 * (len(face) + 1)
    words = ["predict", "m1", "--machine", machine_file, "--problem", str(problem)]
    assert "unknown tag 'held'" in refusal(*words)


def test_a_prediction_says_why_its_preconditioner_was_chosen(capsys, machine_file):
    words = ["predict", "m1", "--machine", machine_file, "--link", "2e-5,1e9"]
    assert main([*words, "--ranks", "1,2", "--precond", "auto"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "precond auto" in line]
    runs = [line.split(": precond auto: ")[0] for line in lines]
    assert runs == ["predict: m1 on 1 rank", "predict: m1 on 2 ranks"]
    assert all("expected to solve 630 equations" in line for line in lines)


def test_a_number_of_ranks_that_is_given_twice_is_predicted_once(answer, machine_file):
    words = ["predict", "m1", "--machine", machine_file, "--link", "2e-5,1e9", "--ranks"]
    assert [len(answer(*words, text)) for text in ("2,2", "2")] == [1, 1]


def test_speeds_are_read_at_the_rank_s_own_size_and_company():
    rates = rates_of(planted_machine([1.0] * 4))  # made up: 1 / sqrt(ranks at once), the same at all sizes
    alone = rates.seconds(0, "product sym", 1e6, 1)
    assert alone == pytest.approx(1e6 / (4e8 * 2.5))
    assert rates.seconds(0, "product sym", 1e6, 2) == pytest.approx(2**0.5 * alone)
    assert rates.seconds(0, "product sym", 1e6, 4) == pytest.approx(2 * alone)
    assert rates.seconds(0, "product sym", 1e6, 8) == pytest.approx(4 * alone)  # twice as many as measured
    assert rates.seconds(0, "product sym", 0, 4) == 0


def test_between_two_sizes_the_time_of_a_call_lies_between_theirs():
    profile = planted_machine([1.0])
    slow = [
        msgspec.structs.replace(s, speed=s.speed / 4) if s.level == "memory" else s for s in profile.speeds
    ]
    rates = rates_of(msgspec.structs.replace(profile, speeds=tuple(slow)))
    small, large = 40_000 * 2.5, 600_000 * 2.5
    ends = [rates.seconds(0, "product sym", units, 1) for units in (small, large)]
    assert ends == pytest.approx([small / 1e9, large / 1e9 * 4])
    assert rates.seconds(0, "product sym", (small + large) / 2, 1) == pytest.approx(sum(ends) / 2)
    assert rates.speed(0, "product sym", 1.0, 1) == pytest.approx(1e9)
    assert rates.speed(0, "product sym", 1e12, 1) == pytest.approx(1e9 / 4)


def cached_rates():
    """Two ranks that share a cache of 60 units: then both are half as fast, or one alone is at 0.8."""
    sizes = {1: [(10, 100), (60, 100), (61, 80), (400, 80)], 2: [(10, 100), (30, 100), (31, 50), (200, 50)]}
    found = [
        one_speed(rank, "product", "sym", "memory", k, "blocks", 1.0, n, np.array([float(speed)]))
        for rank in range(2)
        for k, points in sizes.items()
        for n, speed in points
    ]
    return Rates({(rank, "product sym"): [s for s in found if s.rank == rank] for rank in range(2)})


@pytest.mark.parametrize(
    ("units", "total", "speed"),
    [
        (20, 40, 100),  # both fit
        (20, 100, 50),  # this one alone would fit
        (80, 100, 50),
        (10, 100, 100),  # into a cache of its own
    ],
)
def test_a_part_fits_into_a_shared_cache_if_all_parts_together_do(units, total, speed):
    assert cached_rates().speed(0, "product sym", units, 2, total) == pytest.approx(speed)


def test_whoever_ends_earlier_leaves_the_others_the_memory_but_not_the_cache():
    slots = [Slot(0, 0, 0), Slot(0, 0, 1)]
    rates, name = cached_rates(), "product sym"
    short, long = beside_others(rates, slots, name, [100, 300], [2, 2])
    assert short == pytest.approx(100 / 50)
    assert long == pytest.approx(100 / 50 + 200 / 80)
    short, long = beside_others(rates, slots, name, [15, 50], [2, 2])
    assert short == pytest.approx(15 / 50)
    assert long == pytest.approx(15 / 50 + 35 / 80)  # 50 of 65 units: the cache has not become larger
    apart = beside_others(rates, [Slot(0, 0, 0), Slot(1, 0, 1)], name, [100, 300], [1, 1])
    assert apart == pytest.approx([100 / 80, 300 / 80])
    assert beside_others(rates, slots, name, [0, 300], [2, 2]) == pytest.approx([0, 300 / 80])


def test_equal_parts_compute_together_to_the_end():
    slots = [Slot(0, 0, rank) for rank in range(4)]
    rates = rates_of(planted_machine([1.0] * 4))  # made up: 1 / sqrt(ranks at once), the same at all sizes
    times = beside_others(rates, slots, "product sym", [1e6, 1.02e6, 1e6, 1.01e6], [4] * 4)
    assert times == pytest.approx([2e-3, 2.04e-3, 2e-3, 2.02e-3])
    fewer = beside_others(rates, slots, "product sym", [1e6] * 4, [2] * 4)  # on two cores
    assert fewer == pytest.approx([2**0.5 * 1e-3] * 4)


def test_the_last_part_of_the_longest_call_has_the_host_for_itself():
    work = workload(Case.of(mesh="m1", ranks=2, shares="1:3"))
    slots, rates = [Slot(0, 0, 0), Slot(0, 0, 1)], rates_of(planted_machine([1.0] * 2))
    alone, both = (rates.seconds(1, "product sym", work.parts.blocks[1], k) for k in (1, 2))
    (_, long) = prices(work, slots, rates)
    part = work.parts.blocks[0] / work.parts.blocks[1]
    assert long.product == pytest.approx(part * both + (1 - part) * alone)


def test_parts_larger_than_what_was_measured_are_told(tmp_path, capsys, machine_file):
    assert main(["predict", "m1", "--machine", machine_file, "--ranks", "2,4"]) == 0
    (note,) = [line for line in capsys.readouterr().err.splitlines() if "note" in line]
    assert "does not say how long messages take after computing" in note
    small = planted_machine([1.0] * 2)
    cut = [msgspec.structs.replace(s, units=s.units // 1000) for s in small.speeds if s.rank == 0]
    other = study_of(msgspec.structs.replace(small, speeds=(*cut, *(s for s in small.speeds if s.rank))))
    works = [workload(Case.of(mesh="m1", ranks=n)) for n in (1, 2)]
    one, two = (other.beyond(work) for work in works)
    assert [line.split(":")[1].split(" of ")[0] for line in one] == [" product sym", " updates"]
    most = max(s.units for s in cut if s.name == "product sym")
    assert (
        f"{count(works[0].parts.blocks[0])} blocks per rank; the profile covers up to {count(most)}" in one[0]
    )
    assert two[0].startswith("2 ranks")


def test_products_from_cell_to_cell_cost_by_the_cell():
    """The profile's box has 2.5 blocks to a cell, parts of a small mesh fewer."""
    profile = planted_machine([1.0, 1.0])
    ebe = [msgspec.structs.replace(s, storage="ebe") for s in profile.speeds if s.storage == "sym"]
    rates = rates_of(msgspec.structs.replace(profile, speeds=profile.speeds + tuple(ebe)))
    box = min(ebe, key=lambda s: s.cells)
    assert rates.seconds(0, "product ebe", box.cells, 1) == pytest.approx(box.units / box.speed)
    assert rates.spread(0, "product ebe", box.cells) == pytest.approx(np.array(box.samples) / box.speed)
    work = workload(Case.of(mesh="m2", ranks=2, storage="ebe"))
    assert work.product_units() == work.parts.cells != work.parts.blocks
    slots, _, _ = study_of(profile).place(2)
    a, b = prices(work, slots, rates)
    assert a.product / b.product == pytest.approx(work.parts.cells[0] / work.parts.cells[1])


@pytest.mark.row("001:7.1d")
def test_an_iteration_takes_what_its_parts_take():
    s = study_of(planted_machine([1.0, 1.0], ("a", "b")))
    found = s.predict(Case.of(mesh="m3", ranks=2))
    work, (slots, machine, _) = found.work, s.place(2)
    priced = prices(work, slots, s.rates)
    compute = max(p.product + p.updates for p in priced)
    m = work.parts.message_bytes[0][0]
    exchange = machine.cost(0, 1, m).total
    sums = 2 * machine.cost(0, 1, 8).total
    assert compute + sums < found.iteration < compute + sums + exchange + 1e-9
    assert found.low <= found.iteration <= found.high
    assert sum(found.phases.values()) == pytest.approx(found.iteration, rel=0.02)


@pytest.mark.row("000:C9")
def test_a_prediction_touches_no_host(machine_file, monkeypatch, output):
    def touched(*_, **__):
        raise AssertionError("a prediction went to a host")

    resolve("m1")
    for module, name in ((socket, "socket"), (subprocess, "Popen")):
        monkeypatch.setattr(module, name, touched)
    words = ["predict", "m1", "--machine", machine_file, "--link", "1e-5,1e9", "--ranks", "4"]
    assert "iteration" in output(*words)


@pytest.mark.row("004:9.1.11b", "003:A13")
def test_balanced_shares_let_all_ranks_finish_at_once():
    s = study_of(planted_machine([1, 1, 0.5, 0.25], ("a", "b", "c", "d")))
    equal, even = (s.predict(Case.of(mesh="m3", ranks=4, shares=shares)) for shares in ("", "balanced"))
    spread = [f.outcome.busy.sum(axis=1).max() / f.outcome.busy.sum(axis=1).mean() for f in (equal, even)]
    assert spread[0] > 1.5
    assert spread[1] < 1.25  # cells are shared out, time goes by blocks
    assert even.outcome.busy.sum(axis=1).max() < 0.7 * equal.outcome.busy.sum(axis=1).max()


@pytest.mark.row("000:r_cc")
@pytest.mark.parametrize(
    ("speed", "link", "suits"),
    [
        (0.1, "1e-9,1e15", "messages hardly matter"),
        (1.0, "1e-5,1e9", "computing outweighs messages"),
        (1.0, "1e-3,1e9", "more ranks gain little"),
    ],
)
def test_a_program_is_classed_by_computing_over_messages(tmp_path, output, speed, link, suits):
    save_profile(planted_machine([speed] * 2, ("a", "b")), tmp_path / "machine.json")
    words = ["predict", "s", "--machine", str(tmp_path / "machine.json"), "--link", link, "--ranks", "2"]
    (line,) = (t for t in output(*words).splitlines() if t.startswith("computing over messages"))
    assert line.endswith(f"({suits})")
    ratio = float(line.split(": ")[1].split()[0])
    holds = {"messages hardly matter": ratio >= 10, "computing outweighs messages": 1 < ratio < 10}
    assert holds.get(suits, ratio <= 1)


def test_where_nothing_is_sent_computing_is_not_compared_with_messages(tmp_path, output):
    save_profile(msgspec.structs.replace(planted_machine([1.0]), network=None), tmp_path / "machine.json")
    text = output("predict", "s", "--machine", str(tmp_path / "machine.json"))
    assert "imbalance: the busiest rank computes 1.00 times the mean" in text
    assert "messages" not in text


def test_what_if_edits_change_machines_and_network():
    profile = planted_machine([1, 1, 0.5, 0.5], HOSTS)
    case = Case.of(mesh="m3", ranks=4)
    plain = study_of(profile).predict(case).iteration
    assert study_of(profile, edits=("fastest",)).predict(case).iteration < plain
    assert study_of(profile, edits=("slowest",)).predict(case).iteration > plain
    assert study_of(profile, factor=10).predict(case).iteration < plain
    six = study_of(profile, edits=("add:b",))
    assert six.place(6)[2] == ["a", "a", "b", "b", "b", "b"]
    assert company(six.place(6)[0]) == [2] * 6
    slots = slots_of(profile, "sym", ("add:b*2",))
    assert len({s.host for s in slots}) == 4
    with pytest.raises(InputError, match="add:NAME"):
        slots_of(profile, "sym", ("add:b*10000000000",))


def test_a_link_is_between_hosts_and_ranks_of_one_host_exchange_messages_as_measured():
    measured = (AllReduceTime(ranks=2, m=8, seconds=9e-6, low=None, high=None),)
    profile = planted_machine([1.0] * 2, network=planted_network(allreduce=measured))
    study = study_of(profile, edits=("add:node8",), link=parse_link("2e-3,1e9"))
    two = Case.of(mesh="m1", ranks=2)
    assert study.predict(two).iteration == study_of(profile).predict(two).iteration
    _, machine, _ = study.place(4)
    assert machine.pair(0, 1) == machine.pair(2, 3) == profile.network.classes[0]
    assert machine.pair(1, 2).name == "given"


@pytest.mark.parametrize(("hosts", "link"), [(("a", "a"), " and --link SECONDS,BYTES/S"), (("a", "b"), "")])
def test_more_ranks_than_slots_are_refused_with_all_that_they_need(tmp_path, refusal, output, hosts, link):
    path = str(tmp_path / "machine.json")
    save_profile(planted_machine([1.0] * 2, hosts), path)
    words = ["predict", "m1", "--machine", path, "--ranks", "4"]
    names = ", ".join(dict.fromkeys(hosts))
    said = f"expected 1 to 2 ranks, or --machines add:NAME*COUNT{link} (NAME one of {names})"
    assert said in refusal(*words)
    output(*words, "--machines", "add:a*2", *(["--link", "2e-5,1e9"] if link else []))
    save_profile(planted_machine([1.0]), path)
    assert "the profile has 1 slot: expected 1 rank, or --machines add:" in refusal(*words)


def test_a_profile_without_a_network_needs_a_link():
    profile = planted_machine([1.0, 1.0], ("a", "b"))
    bare = msgspec.structs.replace(profile, network=None)
    with pytest.raises(InputError, match="of `fembench characterize --network`, or link = "):
        study_of(bare).predict(Case.of(mesh="m1", ranks=2))
    link = parse_link("50e-6,125e6,1e-6", overhead=True)
    one = Case.of(mesh="m1", ranks=1)  # which sends nothing
    assert study_of(bare).predict(one).iteration == study_of(profile).predict(one).iteration
    given = study_of(bare, link=link).predict(Case.of(mesh="m1", ranks=2)).iteration
    assert given == pytest.approx(study_of(profile).predict(Case.of(mesh="m1", ranks=2)).iteration, rel=1e-9)


def test_all_reduces_take_what_was_measured():
    network = planted_network(1)
    on = machine_of(planted_machine([1.0] * 4, network=network), slots_of(planted_machine([1.0] * 4), "sym"))
    single = 2 * on.cost(0, 1, 8).total  # log2 4 exchanges
    assert allreduce_scale(on, {4: 3 * single}) == pytest.approx(3.0, rel=1e-6)
    assert allreduce_scale(on, {}) == 1.0


def test_the_fewest_ranks_in_time_are_found():
    assert smallest([1, 2, 4, 8], [4.0, 2.1, 1.2, 1.3], 2.0) == 4
    with pytest.raises(InputError, match="the fastest of these runs may take up to"):
        smallest([1, 2, 4, 8], [4.0, 2.1, 1.2, 1.3], 1.0)


@pytest.mark.row("000:deadline by t_max")
@pytest.mark.parametrize("method", ["simulation", "analytic"])
def test_a_deadline_between_the_middle_and_the_upper_end_of_the_interval_is_not_met(
    method, capsys, output, machine_file
):
    words = ["predict", "m1", "--machine", machine_file, "--ranks", "1", "--iterations", "100"]
    words += ["--method", method, "--deadline"]
    profile = open_study(machine_file)
    case, mesh = Case.of(mesh="m1", ranks=1), resolve("m1")
    if method == "analytic":
        found = bounded(profile, profile.workload(case, mesh), 100)
        middle, high = found.expected.seconds, found.seconds.high
    else:
        _, middle, high = profile.predict(case, mesh).total(100)
    assert high > 1.01 * middle
    assert main([*words, f"{(middle + high) / 2:.9g}"]) == 2
    assert "may take up to" in capsys.readouterr().err
    assert "1 rank suffices" in output(*words, f"{1.001 * high:.9g}")
    for seconds, status in ((1.001 * high, 0), ((middle + high) / 2, 2)):
        assert main([*words, f"{seconds:.9g}", "--json"]) == status
        assert json.loads(capsys.readouterr().out)[0]["within_deadline"] == (status == 0)


def test_runs_teach_what_the_profile_does_not_know():
    s = study_of(planted_machine([1.0, 1.0], ("a", "b")))
    cases = [Case.of(mesh=mesh, ranks=2) for mesh in ("m1", "m2", "m3")]
    runs = [run_of(s, case, {"product": 1.2, "updates": 0.9}, loop=5e-6)[0] for case in cases]
    found = learn(runs, s.rates, s.place)
    assert found.product.at(20_000, 1) == pytest.approx(1.2, rel=1e-3)
    assert found.updates.at(2_000, 1) == pytest.approx(0.9, rel=1e-3)
    assert found.loop.at(2_000, 1) == pytest.approx(5e-6, rel=1e-2)
    knowing = taught(s, runs)
    assert knowing.iterations[runs[0].mesh.hash] == ITERATIONS
    again = knowing.predict(cases[2])
    assert again.iteration == pytest.approx(measured(runs[2]).iteration, rel=0.01)
    assert again.low <= measured(runs[2]).iteration <= again.high
    assert again.phases.keys() - set(NAMES) == {LOOP}  # as in tables of runs: CG is the whole there
    assert NAMES[CG] not in again.phases


def test_the_loop_is_learned_by_the_data_of_all_ranks_of_a_host():
    """Its code and its objects leave the caches, the more of them, the more data pass through."""
    s = study_of(planted_machine([1.0, 1.0]))
    cases = [Case.of(mesh=mesh, ranks=2, shares="1:3") for mesh in ("m1", "m2", "m3")]
    whole = [sum(workload(case).parts.dofs) for case in cases]
    loops = [1e-6 * dofs**0.5 for dofs in whole]
    runs = [run_of(s, case, loop=loop)[0] for case, loop in zip(cases, loops)]
    found = learn(runs, s.rates, s.place)
    assert [found.loop.at(dofs, 2) for dofs in whole] == pytest.approx(loops, rel=1e-2)
    work = workload(cases[1])
    slots, _, _ = s.place(2)
    assert [p.loop for p in prices(work, slots, s.rates, found)] == pytest.approx([loops[1]] * 2, rel=1e-2)


def test_the_loop_is_what_the_parts_leave_in_the_same_set():
    s = study_of(planted_machine([1.0, 1.0], ("a", "b")))
    run, _ = run_of(s, Case.of(mesh="m2", ranks=2), loop=5e-6)
    late = ((SPMV_INTERIOR,), (AXPY,), (SPMV_INTERIOR, AXPY), (SPMV_INTERIOR,), (AXPY,))
    sets = []
    for one, phases in zip(run.sets, late):  # in the medians, both parts are late, CG once
        seconds = np.array(one.seconds)
        seconds[:, phases] += 1e-3
        seconds[:, CG] += 1e-3 * len(phases)
        sets.append(msgspec.structs.replace(one, seconds=tuple(map(tuple, seconds.tolist()))))
    found = learn([msgspec.structs.replace(run, sets=tuple(sets))], s.rates, s.place)
    assert found.loop.at(2_000, 1) == pytest.approx(5e-6, rel=1e-2)


@pytest.mark.parametrize("recurrence", ["standard", "single-reduction"])
def test_runs_teach_what_all_reduces_take_in_them(recurrence):
    s = study_of(planted_machine([1.0, 1.0], ("a", "b")))
    case = Case.of(mesh="m2", ranks=2, recurrence=recurrence)
    record, result = run_of(s, case, collective=2.5)
    found = learn([record], s.rates, s.place)
    assert found.reduce.at(1, 1) == pytest.approx(2.5, rel=0.02)
    knowing = dataclasses.replace(s, correction=dataclasses.replace(found, scale=1.0))
    assert knowing.predict(case).iteration == pytest.approx(result.makespan / ITERATIONS, rel=0.02)
    assert s.predict(case).iteration < 0.9 * result.makespan / ITERATIONS
    alone = study_of(planted_machine([1.0]))
    record, _ = run_of(alone, Case.of(mesh="m1", ranks=1))
    assert (
        learn([record], alone.rates, alone.place).reduce.at(1, 1) == 1.0
    )  # one rank teaches nothing of them


def test_a_factor_may_depend_on_the_size_and_ends_where_nothing_taught_it():
    s = study_of(planted_machine([1.0, 1.0], ("a", "b")))
    runs = []
    for mesh in ("m1", "m2", "m3"):
        case = Case.of(mesh=mesh, ranks=2)
        blocks = np.array(workload(case).product_units())
        runs.append(run_of(s, case, {"product": (blocks / 1e4) ** 0.5})[0])
    found = learn(runs, s.rates, s.place).product
    assert found.at(4_000, 1) == pytest.approx(0.4**0.5, rel=1e-3)
    assert found.at(1e9, 1) == found.at(max(runs[2].partition.blocks), 5)


def test_errors_are_those_of_runs_that_others_taught():
    s = study_of(planted_machine([1.0] * 8, network=planted_network(1)))
    runs = [
        run_of(s, Case.of(mesh=mesh, ranks=ranks), {"product": factor})[0]
        for mesh in ("m2", "m3")
        for ranks, factor in ((2, 1.0), (4, 1.3), (8, 1.1))
    ]
    assert folds([*runs[:3], runs[1]]) == [([1, 2, 3], [0]), ([0, 2], [1, 3]), ([0, 1, 3], [2])]
    assert folds(runs[:2]) == []  # one would teach alone
    found = learn(runs, s.rates, s.place)
    without = fit(taught_by([runs[0], *runs[2:]], s.rates, s.place))
    knowing = dataclasses.replace(s, correction=without).predict(runs[1].case)
    truth = math.log(measured(runs[1]).iteration / knowing.iteration)
    assert found.errors[1] == (pytest.approx(truth - math.log(found.scale), abs=1e-9),)
    assert min(map(abs, sum(found.errors, ()))) > 1e-3  # none is told its own


def test_errors_contain_what_changed_between_the_passes_of_the_training():
    """The machine is 4 % slower in the second pass; no run is predicted from runs of its own pass."""
    s = study_of(planted_machine([1.0] * 8, network=planted_network(1)))
    runs = [
        run_of(s, Case.of(mesh="s", ranks=ranks), {"product": slower, "updates": slower}, created=created)[0]
        for slower, created in ((1.0, "2026-02-01T00:00:00+00:00"), (1.04, "2026-02-02T00:00:00+00:00"))
        for ranks in (2, 3, 4)
    ]
    by_pass = {0: [4, 5], 3: [1, 2], 1: [3, 5], 4: [0, 2], 2: [3, 4], 5: [0, 1]}
    assert folds(runs) == [(teachers, [run]) for run, teachers in by_pass.items()]
    errors = np.array(learn(runs, s.rates, s.place).errors)
    assert errors[:, 1] - errors[:, 0] == pytest.approx(2 * math.log(1.04), rel=0.2)
    assert ([0, 2, 4], [1]) in folds([*runs[:3], *runs[4:]])  # the second pass lacks a configuration


def test_what_messages_cost_computing_beside_them_is_not_taken_for_slow_kernels():
    """One kilobyte, that of a mesh more, keeps its ranks from computing for 0.1 ms."""
    quick = flat_class("here", latency=1e-7, a_byte=1e-10)
    far = msgspec.structs.replace(quick, beside=(Beside(m=1000, longer=1e-4, left=0.0),))
    costly, free = (
        study_of(planted_machine([1.0, 1.0], ("a", "b"), network=planted_network(2, far=one)))
        for one in (far, quick)
    )
    case = Case.of(mesh="m3", ranks=2)
    run, _ = run_of(costly, case)
    more = costly.predict(case).iteration - free.predict(case).iteration
    assert more == pytest.approx(1e-7 * run.partition.message_bytes[0][0], rel=0.05)
    assert learn([run], costly.rates, costly.place).product.value == pytest.approx(1.0, rel=1e-6)
    assert learn([run], free.rates, free.place).product.value > 1.05
    closed = [bounded(s, s.workload(case), 50).expected.iteration for s in (costly, free)]
    assert closed[0] - closed[1] == pytest.approx(more, rel=0.05)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_interval_is_as_wide_as_the_turns_of_messages_beside_computing(noise):
    """One kilobyte costs its receiver 0.1 ms, in nine turns of ten from 0.06 to 0.4 ms."""
    quick = flat_class("here", latency=1e-7, a_byte=1e-10)
    effect = Beside(m=1000, longer=0.0, left=1e-4, faster=4e-5, slower=3e-4)
    wide, narrow = (
        study_of(planted_machine([1.0] * 2, ("a", "b"), network=planted_network(2, far=one), noise=noise))
        for one in (
            msgspec.structs.replace(quick, beside=(effect,)),
            msgspec.structs.replace(quick, beside=(msgspec.structs.replace(effect, faster=0.0, slower=0.0),)),
        )
    )
    case = Case.of(mesh="m3", ranks=2)
    found, other = wide.predict(case), narrow.predict(case)
    kilobytes = found.work.parts.message_bytes[0][0] / 1000
    assert found.iteration == other.iteration
    assert found.high - other.high == pytest.approx(3e-4 * kilobytes, rel=1e-3)
    assert other.low - found.low == pytest.approx(4e-5 * kilobytes, rel=1e-3)
    closed, exact = (bounded(s, s.workload(case), 50) for s in (wide, narrow))
    assert closed.expected == exact.expected
    assert closed.iteration.high - exact.iteration.high == pytest.approx(3e-4 * kilobytes, rel=1e-3)
    assert exact.iteration.low - closed.iteration.low == pytest.approx(4e-5 * kilobytes, rel=1e-3)


def test_a_factor_may_depend_on_how_many_ranks_share_a_host():
    """Products and all-reduces are planted slower by the root of the number of ranks."""
    s = study_of(planted_machine([1.0] * 8, network=planted_network(1)))
    runs = [
        run_of(s, Case.of(mesh=mesh, ranks=ranks), {"product": ranks**0.5}, collective=ranks**0.5)[0]
        for mesh in ("m1", "m3")
        for ranks in (2, 4)
    ]
    found = learn([*runs, *runs], s.rates, s.place)
    for together in (1, 2, 3, 4, 8):
        assert found.product.at(20_000, together) == pytest.approx(together**0.5, rel=0.02)
    assert found.updates.at(2_000, 8) == pytest.approx(1.0, rel=1e-3)
    assert found.reduce.at(1, 4) / found.reduce.at(1, 2) == pytest.approx(2**0.5, rel=0.05)


@pytest.mark.row("003:rec")
def test_a_recorded_run_simulated_on_its_own_machine_takes_as_long():
    on = even_machine(4, latency=50e-6, per_byte=8e-9, overhead=0.0)
    case = Case.of(mesh="m3", ranks=4)
    uneven = [dataclasses.replace(p, product=t) for p, t in zip(even_prices(4), (1e-3, 2e-3, 1.5e-3, 1e-3))]
    record, truth = planted_run(case, on, uneven)
    message = message_of(record)
    assert message.latency == pytest.approx(50e-6 + 64e-9, rel=0.02)
    again = even_machine(4, latency=message.latency, per_byte=message.per_byte, overhead=0.0)
    graph = graph_of_record(record)
    cg = simulate(make_plan(graph, again)).makespan - record.sets[0].seconds[0][5]
    assert cg / graph.iterations == pytest.approx(truth.makespan / ITERATIONS, rel=0.02)


@pytest.fixture
def a_run():
    """A record of two ranks with their first iterations traced."""
    on = even_machine(2, latency=50e-6, per_byte=8e-9, overhead=0.0)
    return planted_run(Case.of(mesh="m1", ranks=2), on, even_prices(2))[0]


@pytest.mark.parametrize("offset", [-1.0, -1e-3, -2e-5, 2e-5, 1e-3, 1.0])
def test_clocks_that_are_apart_give_no_message_that_costs_less_than_nothing(a_run, offset):
    def at(e, end):
        moved = e.begin + e.rank * offset, e.end + e.rank * end
        return msgspec.structs.replace(e, begin=moved[0], end=moved[1])

    message = message_of(msgspec.structs.replace(a_run, events=tuple(at(e, offset) for e in a_run.events)))
    assert message.latency >= 0
    assert message.per_byte > 0
    # all-reduces of rank 1 seem to end before they begin
    events = tuple(at(e, abs(offset) * (e.phase != ALLREDUCE)) for e in a_run.events)
    assert message_of(msgspec.structs.replace(a_run, events=events)).latency >= 0.0


def test_a_graph_says_that_others_used_the_processors_of_its_run(a_run):
    record = a_run
    busy = Rule(id="D6", ok=False, value="vm: others used 30 % of the CPU time", threshold="<= 2 %")
    loud = msgspec.structs.replace(record, verdict=Verdict("PROVISIONAL", (), (busy,)))
    line = graph_of_record(loud).note.splitlines()[-1]
    assert line.startswith("PROVISIONAL: no other programs on the cores (D6) not met: vm: others used 30 %")
    assert "others cause part of the waiting and interruptions" in line
    quiet = msgspec.structs.replace(record, verdict=Verdict("VALID", (), ()))
    assert "D6" not in graph_of_record(quiet).note


def test_simulation_without_a_machine_says_what_is_in_the_cost_of_messages(tmp_path, output, a_run):
    path = tmp_path / "graph.json"
    save_graph(msgspec.structs.replace(graph_of_record(a_run), note="PROVISIONAL: D6 not met"), path)
    said = [output("simulate", str(path), *options) for options in ((), ("--link", "2e-5,1e9"))]
    assert all("PROVISIONAL: D6 not met\n" in text for text in said)
    assert ["include waiting and interruptions" in text for text in said] == [True, False]


def test_a_prediction_from_a_profile_measured_beside_others_says_so(tmp_path, output):
    quiet = planted_machine([1.0, 1.0])
    loud = on_hosts_with(quiet, others_percent=32.0, others_resolution=1.0)
    for profile in (loud, quiet):
        save_profile(profile, tmp_path / "machine")
        text = output("predict", "m3", "--machine", str(tmp_path / "machine"), "--link", "2e-5,1e9")
        assert "m3: 5 460 equations, storage sym; " in text
        assert text.startswith("DISTURBED: others used up to 32 %") == (profile is loud)
        assert ("may contain fewer than nine runs in ten" in text) == (profile is loud)
        assert ("is meant to contain nine runs in ten" in text) == (profile is quiet)


def test_where_spans_were_dropped_the_last_traced_iteration_is_left_out(a_run):
    record = a_run
    last = max(e.iteration for e in record.events)
    cut = [e for e in record.events if e.iteration < last]
    half = [e for e in record.events if e.iteration == last and e.rank == 0]
    half += [e for e in record.events if e.iteration == last and e.rank == 1][
        :2
    ]  # of which the rest was lost
    whole = graph_of_record(msgspec.structs.replace(record, events=tuple(cut)))
    found = graph_of_record(msgspec.structs.replace(record, events=(*cut, *half), dropped=(0, 5)))
    assert found.programs == whole.programs
    assert found.note.endswith("5 spans dropped, last traced iteration left out")


def test_overlap_and_recurrences_shape_the_graph():
    work = workload(Case.of(mesh="m1", ranks=2))
    kinds = [type(e).__name__ for e in cg_graph(work, even_prices(2), 5).programs[0][-1].body]
    assert kinds.index("Wait") > kinds.index("Send") + 1  # computing between
    turned = dataclasses.replace(
        work, case=Case.of(mesh="m1", ranks=2, overlap=False, recurrence="single-reduction")
    )
    kinds = [type(e).__name__ for e in cg_graph(turned, even_prices(2), 5).programs[0][-1].body]
    assert kinds.index("Wait") == kinds.index("Send") + 1
    assert kinds.count("Collective") == 1


BLOCKING = Case.of(mesh="m1", ranks=2, exchange="blocking", overlap=False)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda run: workload(Case.of(mesh="m1", partitioner="blocks")), "expected metis or rcb"),
        (
            lambda run: study_of(planted_machine([1.0] * 2)).predict(BLOCKING),
            "exchange blocking cannot be predicted",
        ),
        (
            lambda run: graph_of_record(msgspec.structs.replace(run, case=BLOCKING)),
            "exchange blocking has no graph",
        ),
        (lambda run: graph_of_record(msgspec.structs.replace(run, events=())), "no traced iterations"),
    ],
)
def test_what_has_no_prediction_or_graph_is_refused(a_run, ask, message):
    with pytest.raises(InputError, match=message):
        ask(a_run)


def cell(predicted, measured_time, *, low=None, high=None, variation=0.0, ranks=2, mesh="m"):
    return ScoredConfiguration(
        mesh, ranks, "", predicted, low or 0.9 * predicted, high or 1.1 * predicted, measured_time, variation
    )


def test_scores_are_medians_over_cells_that_are_quiet():
    cells = [cell(1.1, 1.0), cell(2.0, 2.0), cell(2.7, 3.0), cell(9.0, 1.0, variation=0.5)]
    found = score(cells)
    assert (found.cells, found.left_out) == (3, 1)
    assert found.median == pytest.approx(0.1)
    assert found.bias == 0
    assert found.coverage == pytest.approx(2 / 3)  # 3.0 is above 2.97
    assert found.tau == 1.0
    assert found.invalid  # a quarter left out
    assert score(cells[3:]).invalid


def test_an_interval_is_of_one_run():
    runs = (0.95, 1.05, 1.2, 1.25)
    found = score([cell(1.0, 1.1)._replace(runs=runs), cell(1.0, 1.0)])
    assert found.coverage == pytest.approx((0.5 + 1.0) / 2)


def test_an_interval_holds_nine_of_ten_errors_and_one_that_is_wild_does_not_widen_it():
    errors = [[0.01 * k * (-1) ** k] for k in range(1, 25)]
    assert half_width(errors) == pytest.approx(0.23)  # 23 of 24; (24 + 1) x 0.9 = 22.5
    assert half_width([*errors[:-1], [5.0]]) == pytest.approx(0.23)
    few = [0.01, -0.01, 0.02, -0.02]
    student = pytest.approx(2.3534 * np.std(few, ddof=1) * math.sqrt(1.25), rel=1e-3)
    assert half_width([[e] for e in few]) == half_width([few]) == student
    twice = half_width([[e, e] for e in few])
    assert twice == student  # repetitions of a configuration do not make more configurations


@pytest.mark.parametrize(("configurations", "repetitions"), [(24, 2), (10, 6)])
def test_an_interval_holds_nine_of_ten_runs_of_other_configurations(configurations, repetitions):
    """Runs of a configuration err alike: as if each stood for itself, ten of them six times hold fewer."""
    rng = np.random.default_rng(1)
    inside, alone = [], []
    for _ in range(1000):
        errors = rng.standard_normal((configurations + 1, 1))
        errors = errors + 0.3 * rng.standard_normal((configurations + 1, repetitions))
        inside += (np.abs(errors[-1]) <= half_width(errors[:-1].tolist())).tolist()
        alone += (np.abs(errors[-1]) <= half_width(errors[:-1].reshape(-1, 1).tolist())).tolist()
    assert 0.89 <= np.mean(inside) <= (0.93 if configurations == 24 else 0.97)
    assert configurations == 24 or np.mean(alone) < 0.9


@pytest.mark.parametrize("visits", [3, 12])
def test_without_runs_an_interval_holds_nine_of_ten_of_what_the_visits_are_samples_of(visits):
    case, mesh, rng = Case.of(mesh="m1", ranks=1), resolve("m1"), np.random.default_rng(visits)
    exact = study_of(planted_machine([1.0])).predict(case, mesh).iteration
    inside = []
    for _ in range(200):
        *speeds, now = np.exp(0.05 * rng.standard_normal(visits + 1))
        found = study_of(planted_machine([1.0], visits=visits, common=speeds)).predict(case, mesh)
        inside.append(found.low <= exact / now <= found.high)
    assert 0.85 <= np.mean(inside) <= 0.95


def test_an_interval_is_no_narrower_than_the_visits_whatever_runs_of_other_sizes_say():
    case, mesh, rng = Case.of(mesh="m1", ranks=1), resolve("m1"), np.random.default_rng(5)
    speeds = np.exp(0.2 * rng.standard_normal(9))
    study = study_of(planted_machine([1.0], visits=9, common=speeds))
    alone, errors = study.predict(case, mesh), ((0.01,), (-0.01,), (0.02,), (-0.02,))
    steady = dataclasses.replace(study, correction=Correction(errors=errors)).predict(case, mesh)
    assert (steady.low, steady.high) == pytest.approx((alone.low, alone.high), rel=0.05)
    wild = tuple((50 * e,) for (e,) in errors)
    wild = dataclasses.replace(study, correction=Correction(errors=wild)).predict(case, mesh)
    assert wild.high / wild.iteration == pytest.approx(
        math.exp(half_width(((0.5,), (-0.5,), (1.0,), (-1.0,))))
    )


def test_kendall_counts_pairs_in_order():
    assert kendall([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    assert kendall([1, 2, 3], [3, 2, 1]) == -1
    assert math.isnan(kendall([1.0], [1.0]))


def grid(ranks, work, measured_time, speeds=None):
    return Grid(ranks, work, speeds or [1.0] * ranks, measured_time)


def test_the_baseline_is_work_over_the_sum_of_speeds():
    assert ideal([grid(1, 100.0, 10.0)], [grid(8, 400.0, 0.0)]) == pytest.approx([5.0])
    assert ideal([grid(2, 90.0, 30.0, [1.0, 0.5])], [grid(1, 10.0, 0.0)]) == pytest.approx([5.0])


def test_held_out_cells_are_other_ranks_and_meshes_and_many():
    train = [grid(1, 1, 1.0), grid(2, 1, 1.0)]
    check_held_out(train, [cell(1, 1, ranks=4), cell(1, 1, ranks=3)], ["m1"])
    with pytest.raises(InputError, match="expected at least 40 %"):
        check_held_out(train, [cell(1, 1, ranks=4)], ["m1"])
    with pytest.raises(InputError, match="ranks \\[2\\]"):
        check_held_out(train, [cell(1, 1, ranks=2)] * 2, ["m1"])
    with pytest.raises(InputError, match="meshes m"):
        check_held_out(train, [cell(1, 1, ranks=4)] * 2, ["m"])


def test_the_verb_predicts_records_and_is_held_against_the_run(tmp_path, output, machine_file):
    before = str(tmp_path / "before.json")
    words = ["predict", "m1", "--machine", machine_file]
    text = output(*words, "--ranks", "2", "--iterations", "210", "-o", before)
    assert text.splitlines()[0].endswith("; t_min to t_max is meant to contain nine runs in ten")
    assert "t_min | t_max" in re.sub(" +", " ", text)
    assert "cg.allreduce" in text
    assert re.search(r"\nrank \d on [ab] computes \d+\.\d % of the critical path", text)  # as in the table
    assert main([*words, "--ranks", "2", "-o", before]) == 2  # never overwritten
    said = load_prediction(before).predicted
    case = Case.of(mesh="m1", ranks=2)
    run, _ = run_of(open_study(machine_file), case, created="2199-01-01T00:00:00+00:00")
    assert "predicted" in output(*words, "-o", before, "--against", str(save(run, tmp_path)))
    kept = load_prediction(before)
    assert kept.predicted == said
    assert abs(kept.observed[0].error) < 0.02


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ranks", "9"], "the profile has 4 slots"),
        (["--ranks", "2,x"], "expected numbers"),
        (["--ranks", "2,4", "--shares", "1:1"], "or one number"),
        (["--ranks", "2,4", "-o", "a.json"], "expected one number per file"),
        (["--network", "fast"], "x10"),
        (["--network", "x1.2.3"], "x10"),
        (["--network", "x0"], "x10"),
        (["--machines", "quick"], "fastest, slowest, share:COUNT or add"),
        (["--deadline", "1"], "needs --iterations"),
        (["--storage", "ebe"], "no product ebe of rank 0; it has assembly, product csr"),
    ],
)
def test_a_wrong_question_is_answered_in_one_line(refusal, machine_file, words, message):
    assert message in refusal("predict", "m1", "--machine", machine_file, *words)


def test_the_verb_sweeps_and_meets_deadlines(answer, output, machine_file):
    words = ["predict", "m3", "--machine", machine_file, "--ranks", "1,2,4", "--iterations", "400"]
    text = output(*words, "--shares", "balanced", "--deadline", "10")
    assert "deadline 10 s: 1 rank suffices" in text
    assert len(answer(*words)) == 3


def test_contention_makes_messages_of_a_host_wait_for_each_other():
    wide = planted_network(2, far=flat_class("here", 1e-6, 50e-6, 1e-6))
    profile = planted_machine([1.0] * 4, HOSTS, network=wide)
    case = Case.of(mesh="m3", ranks=4)
    plain, queued = (study_of(profile, contention=c).predict(case).iteration for c in (False, True))
    assert queued > 1.2 * plain


def test_a_record_becomes_a_graph_that_is_simulated(tmp_path, answer, output):
    graph, record = str(tmp_path / "graph.json"), str(DATA / "record.json")
    assert "execution graph of" in output("trace", record, "-o", graph)
    text = output("simulate", graph, "--chrome", str(tmp_path / "c.json"), "--against", record)
    assert "critical path" in text
    assert "per rank, absolute" in text
    assert "cg.loop" in text
    found = answer("simulate", graph, "--link", "50e-6,125e6", "--contention")
    assert found["makespan"] == pytest.approx(max(found["finish"]))
    spent = np.array([np.sum(found[k], axis=1) for k in ("busy", "wait", "overhead")]).sum(axis=0)
    assert spent == pytest.approx(np.array(found["finish"]), rel=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trace"], "one of them"),
        (["trace", "--binary", "x", "--ranks", "²"], "expected a number of ranks"),
        (["simulate", "GRAPH", "--network", "0"], "expected a number above 0"),
        (["simulate", "GRAPH", "--speeds", "1,x"], "expected numbers"),
        (["simulate", "GRAPH", "--speeds", "1"], "expected 2 positive"),
        (["simulate", str(DATA / "record.json")], "not an execution graph"),
    ],
)
def test_wrong_graphs_and_options_are_refused_in_one_line(tmp_path, refusal, words, message):
    graph = str(tmp_path / "graph.json")
    assert main(["trace", str(DATA / "record.json"), "-o", graph]) == 0
    assert message in refusal(*(graph if w == "GRAPH" else w for w in words))


def runs_on(machine_file, meshes, ranks, created, folder):
    """Runs that take 1.1 times as long in products, saved in a folder."""
    for mesh, p in itertools.product(meshes, ranks):
        case, id = Case.of(mesh=mesh, ranks=p), f"{mesh}-p{p}"
        run, _ = run_of(open_study(machine_file), case, {"product": 1.1}, loop=3e-6, created=created, id=id)
        save(run, folder / "runs")


@pytest.mark.row("003:A12")
def test_validation_writes_predictions_first_and_scores_them_after_the_runs(
    tmp_path, capsys, answer, output, refusal, machine_file, grid_file
):
    runs_on(machine_file, ["m1"], [1, 2], "2026-01-01T00:00:00+00:00", tmp_path / "train")
    assert "expected --cases" in refusal("validate", grid_file)
    cases = ["validate", grid_file, "--cases", str(tmp_path / "held.toml")]
    assert "4 predictions written" in output(*cases)
    assert "0 predictions written" in output(*cases)
    runs_on(machine_file, ["m2", "m3"], [4], "2026-01-01T00:00:00+00:00", tmp_path / "held")
    assert main(["validate", grid_file]) == 2  # older than what was said of them
    assert "no held-out run began after its prediction" in capsys.readouterr().err
    runs_on(machine_file, ["m2", "m3"], [4], "2199-01-01T00:00:00+00:00", tmp_path / "held")
    assert "ideal sum of speeds" in output("validate", grid_file)
    found = answer("validate", grid_file)
    assert found["fembench"]["median"] < 0.03
    assert found["fembench, analytic"]["median"] < 0.05
    assert {c["method"] for c in found["cells"]} == {"simulation", "analytic"}
    assert found["fembench"]["median"] < min(
        v["median"] for k, v in found.items() if k not in ("cells", "state") and not k.startswith("fembench")
    )


def test_the_profile_can_be_judged_alone(tmp_path, machine_file, grid_file):
    runs_on(machine_file, ["m1"], [1, 2], "2026-01-01T00:00:00+00:00", tmp_path / "train")
    training, grid = load_all(tmp_path / "train"), Path(grid_file)
    correction = study_of_grid(read_grid(grid), training).correction
    assert correction.product.at(20_000, 1) == pytest.approx(1.1, rel=0.01)
    grid.write_text(f"{grid.read_text()}learn = false\n")
    assert study_of_grid(read_grid(grid), training).correction is None
