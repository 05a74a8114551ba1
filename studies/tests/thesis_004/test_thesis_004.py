"""The conclusions of the source thesis, from its printed tables (seed 004, 9.4, A1 to A12)."""

import csv
from pathlib import Path

import pytest

from fembench.report.table import to_json
from fembench.weights.scaling import (
    against_each,
    amdahl,
    amdahl_fraction,
    gustafson,
)
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.findings import growth_exponents
from fembench_studies.thesis_004.tables import slips
from fembench_studies.thesis_004.thesis import COMMUNICATION, PHASES, RUNS

DATA = Path(__file__).parents[3] / "tests" / "data"
MESHES = (1, 2, 3)
SIDE = thesis.printed()


def derived(name):
    """Rows of numbers derived from the printed ones by hand."""
    with open(DATA / f"seed004_{name}.csv", newline="", encoding="utf-8") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def _value(text):
    try:
        return float(text)
    except ValueError:
        return text


def cases(tables):
    """(table, (platform, mesh, tasks), row) of each row of these tables."""
    for platform, names in tables.items():
        for mesh, name in zip(MESHES, names):
            for row in thesis.rows(name):
                yield name, (platform, mesh, int(row["tasks"])), row


@pytest.mark.row("004:3.3", "004:A1")
def test_all_24_communication_shares_are_as_printed():
    found = [(SIDE.at(*key), row["communication_percent"]) for _, key, row in cases(COMMUNICATION)]
    assert len(found) == 24
    assert all(abs(100 * p.communication / p.cg - printed) < 0.005 for p, printed in found)


def timer_cells():
    """(machine, timer, mean cycles, MHz, printed milliseconds) of Tables 5.1 to 5.3."""
    clocks = {r["machine"]: r["clock_mhz"] for r in thesis.rows("5_1")}
    means = {r["timer"]: r for r in thesis.rows("5_2") if r["statistic_of_100_calls"] == "mean"}
    for r in thesis.rows("5_3"):
        for timer, mean in means.items():
            machine = f"{r['machine']:.0f}"
            cycles = mean[f"machine_{machine}_cycles"]
            yield machine, timer, cycles, clocks[r["machine"]], r[f"{timer.lower()}_ms"]


def found_slips():
    """(table, place, what, printed, expected) by the three rules of the page."""
    for table, (*_, tasks), row in cases(PHASES):
        phases = row["partition_ms"] + row["assembly_ms"] + row["cg_ms"]
        if abs(row["total_ms"] - phases) > 1e-4 * row["total_ms"]:
            yield table, f"{tasks}", "total, ms", row["total_ms"], phases
    for table, (platform, mesh, tasks), row in cases(COMMUNICATION):
        gain = 1e3 * SIDE.at(platform, mesh, 1).cg / (row["cg_ms"] - row["communication_ms"])
        if gain > tasks**2:
            yield table, f"{tasks}", "speedup of computing", gain, tasks**2
    for machine, timer, cycles, clock, printed in timer_cells():
        expected = cycles / clock / 1e3
        if abs(printed / expected - 1) > 0.01:
            yield "5_3", f"machine {machine}", f"{timer}, ms", printed, expected


@pytest.mark.row("004:8", "004:A3", "004:7.3", "004:A9")
def test_the_ten_slips_of_the_page_are_those_that_three_rules_find():
    told = {(s["table"], s["tasks"] or s["where"], s["what"]): s for s in to_json(slips())}
    expected = list(found_slips())
    assert len(told) == len(expected) == 10
    for table, place, what, printed, right in expected:
        slip = told[table.replace("_", "."), place, what]
        assert (slip["printed"], slip["expected"]) == pytest.approx((printed, right), rel=1e-4)


@pytest.mark.row("004:A4")
def test_speedups_without_communication_are_those_of_the_derived_table():
    expected = {(r["source_table"], r["tasks"]): r for r in derived("derived_communication")}
    for table, (platform, mesh, tasks), _ in cases(COMMUNICATION):
        row, p = expected[float(table.replace("_", ".")), tasks], SIDE.at(platform, mesh, tasks)
        alone = SIDE.at(platform, mesh, 1).cg
        assert 100 * p.communication / p.cg == pytest.approx(
            row["communication_percent_recomputed"], abs=6e-5
        )
        assert alone / (p.cg - p.communication) == pytest.approx(
            row["speedup_of_cg_minus_communication"], abs=2e-4
        )
        assert alone / p.cg == pytest.approx(row["speedup_cg"], abs=6e-5)
        assert alone / p.cg / tasks == pytest.approx(row["efficiency_cg"], abs=6e-5)


@pytest.mark.row("004:A2")
def test_slowness_ratios():
    for row in derived("derived_slowness_ratio"):
        tasks = int(row["tasks"])
        ratios = [row[f"mesh_{mesh}_ratio_node00_over_node8"] for mesh in MESHES]
        assert [round(SIDE.slowness(mesh, tasks), 4) for mesh in MESHES] == ratios
        assert round(SIDE.mean_slowness(tasks), 4) == row["mean_ratio"]
        assert round(SIDE.mean_slowness(tasks), 1) == row["mean_ratio_printed_in_text"]


@pytest.mark.row("004:7.1")
def test_speedups_of_every_phase_table():
    expected = {(r["source_table"], r["tasks"]): r for r in derived("derived_phase_speedup")}
    for table, (platform, mesh, tasks), _ in cases(PHASES):
        row = expected[float(table.replace("_", ".")), tasks]
        for phase in ("total", "cg", "assembly"):
            gain = getattr(SIDE.at(platform, mesh, 1), phase) / getattr(SIDE.at(platform, mesh, tasks), phase)
            assert round(gain, 4) == row[f"speedup_{phase}"]
            if phase != "assembly":
                assert round(gain / tasks, 4) == row[f"efficiency_{phase}"]


HETEROGENEOUS = derived("derived_heterogeneous")


@pytest.mark.row("004:7.4", "004:A6")
@pytest.mark.parametrize("row", HETEROGENEOUS, ids=lambda r: f"mesh {r['mesh']:.0f}, run {r['run']:.0f}")
def test_every_run_on_both_machines_against_each_alone_and_the_bottleneck_model(row):
    mesh, run = int(row["mesh"]), int(row["run"])
    seconds, tasks = SIDE.total("run", mesh, run), RUNS[run]
    alone = {host: SIDE.total(host, mesh, 1) for host in ("node8", "node00")}
    for host, (faster, each) in against_each(alone, seconds, sum(tasks)).items():
        assert faster == pytest.approx(SIDE.run_speedup(host, mesh, run))
        assert round(faster, 4) == row[f"speedup_vs_{host}_one_task"]
        assert round(each, 4) == row[f"efficiency_vs_{host}_one_task"]
        assert ("no", "yes")[faster > 1] == row[f"faster_than_{host}_one_task"]
    model = SIDE.bottleneck(mesh, *tasks)
    assert model == pytest.approx(row["bottleneck_model_s"], abs=1e-6)
    assert 100 * (model / seconds - 1) == pytest.approx(row["bottleneck_model_error_percent"], abs=0.0051)


@pytest.mark.row("004:A5")
def test_7_of_33_runs_beat_one_task_on_node8_and_32_on_node00():
    """The text says that almost all runs gain: true only against node00."""
    for host, faster in (("node8", 7), ("node00", 32)):
        assert sum(SIDE.run_speedup(host, mesh, run) > 1 for mesh in MESHES for run in RUNS) == faster


@pytest.mark.row("004:7.5", "004:A7")
def test_the_ideal_weighted_split():
    assert [round(SIDE.ideal(mesh, 1), 2) for mesh in MESHES] == [0.80, 19.92, 124.05]
    for r in derived("derived_weighted_split_bound"):
        mesh, tasks = int(r["mesh"]), int(r["tasks_on_each_machine_alone"])
        ideal, best = SIDE.ideal(mesh, tasks), min(SIDE.total("run", mesh, run) for run in RUNS)
        assert round(ideal, 6) == r["ideal_weighted_split_s"]
        assert round(100 * ideal / SIDE.total("node00", mesh, tasks), 4) == r["ideal_share_of_node00_percent"]
        assert round(SIDE.slowness(mesh, tasks), 3) == r["slowness_ratio_node00_over_node8"]
        assert best == SIDE.total("run", mesh, int(r["best_measured_run"]))
        assert round(best / ideal, 4) == r["best_run_over_ideal"]
        assert round(best / r["best_node8_alone_s"], 4) == r["best_run_over_best_node8_alone"]


@pytest.mark.row("004:7.2", "004:A8")
def test_conjugate_gradients_grow_with_more_than_the_square_of_the_equations():
    equations = [r["equations"] for r in thesis.rows("5_5")]
    for platform, expected in (("cluster1", [2.311, 2.371]), ("cluster2", [2.353, 2.396])):
        times = [SIDE.at(platform, mesh, 1).cg for mesh in MESHES]
        assert growth_exponents(equations, times).round(3).tolist() == expected


@pytest.mark.row("004:A10")
def test_partition_sums_and_balance():
    found = []
    for tasks in (2, 4, 8):
        elements, shared = zip(*((p.elements, p.shared_dofs) for p in SIDE.parts[tasks]))
        found.append((sum(elements), round(max(elements) * tasks / sum(elements), 4), sum(shared)))
    assert found == [(9126, 1.0007, 1188), (9126, 1.0296, 2478), (9126, 1.0493, 4383)]


@pytest.mark.row("004:4f", "004:A11")
def test_the_example_of_the_two_laws():
    assert round(amdahl(0.004, 1024), 1) == 201.1
    assert round(gustafson(0.004, 1024), 1) == 1019.9
    f = amdahl_fraction(0.004, 1024)
    assert f"{f:.2e}" == "3.92e-06"
    assert amdahl(f, 1024) == pytest.approx(gustafson(0.004, 1024))


@pytest.mark.row("004:A12")
def test_dense_work_of_the_partitions():
    works = [SIDE.work(tasks) for tasks in (2, 4, 8)]
    assert [round(w.total, 4) for w in works] == [0.6124, 0.3746, 0.2472]
    assert [round(w.largest, 4) for w in works] == [0.3065, 0.1043, 0.0437]
    for work, row in zip(works, derived("derived_partition_mesh3"), strict=True):
        assert round(1 / work.total, 3) == row["predicted_gain_on_one_cpu"]
        assert round(1 / work.largest, 3) == row["predicted_cg_speedup_on_separate_cpus"]
