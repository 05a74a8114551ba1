"""The conclusions of the source thesis, from its printed tables (seed 004, 9.4, A1 to A12)."""

import numpy as np
import pytest
from thesis_tables import COMMUNICATION_TABLES, MESHES, PHASE_TABLES, one_task, rows, runs, totals

from fembench.report.table import to_json
from fembench.weights.scaling import (
    against_each,
    amdahl,
    amdahl_fraction,
    efficiency,
    growth_exponents,
    gustafson,
    speedup,
)
from fembench_studies.thesis_004.quantities import (
    bottleneck_seconds,
    dense_work,
    ideal_seconds,
    local_equations,
)
from fembench_studies.thesis_004.tables import slips

ALONE = {"5_18": "5_6", "5_19": "5_7", "5_20": "5_8", "5_21": "5_9", "5_22": "5_10", "5_23": "5_11"}


def communication_rows():
    return [(table, row) for table in COMMUNICATION_TABLES for row in rows(f"table_{table}")]


@pytest.mark.row("004:3.3", "004:A1")
def test_all_24_communication_shares_are_as_printed():
    errors = [
        100 * r["communication_ms"] / r["cg_ms"] - r["communication_percent"] for _, r in communication_rows()
    ]
    assert len(errors) == 24
    assert max(map(abs, errors)) < 0.005


def phase_sum(row):
    return row["partition_ms"] + row["assembly_ms"] + row["cg_ms"]


def timer_cells():
    """(machine, timer, mean cycles, MHz, printed milliseconds) of Tables 5.1 to 5.3."""
    clocks = {r["machine"]: r["clock_mhz"] for r in rows("table_5_1")}
    means = {r["timer"]: r for r in rows("table_5_2") if r["statistic_of_100_calls"] == "mean"}
    for r in rows("table_5_3"):
        for timer, mean in means.items():
            machine = f"{r['machine']:.0f}"
            cycles = mean[f"machine_{machine}_cycles"]
            yield machine, timer, cycles, clocks[r["machine"]], r[f"{timer.lower()}_ms"]


def found_slips():
    """(table, place, what, printed, expected) by the three rules of the page."""
    for table in PHASE_TABLES:
        for r in rows(f"table_{table}"):
            if abs(r["total_ms"] - phase_sum(r)) > 1e-4 * r["total_ms"]:
                yield table, f"{r['tasks']:.0f}", "total, ms", r["total_ms"], phase_sum(r)
    for table, r in communication_rows():
        gain = one_task(ALONE[table])["cg_ms"] / (r["cg_ms"] - r["communication_ms"])
        if gain > r["tasks"] ** 2:
            yield table, f"{r['tasks']:.0f}", "speedup of computing", gain, r["tasks"] ** 2
    for machine, timer, cycles, clock, printed in timer_cells():
        expected = cycles / clock / 1e3
        if abs(printed / expected - 1) > 0.01:
            yield "5_3", f"machine {machine}", f"{timer}, ms", printed, expected


@pytest.mark.row("004:8", "004:A3", "004:7.3", "004:A9")
def test_the_ten_slips_of_the_page_are_those_that_three_rules_find():
    expected = list(found_slips())
    told = to_json(slips())
    assert len(told) == len(expected) == 10
    for slip, (table, place, what, printed, right) in zip(told, expected):
        assert (slip["table"], slip["what"]) == (table.replace("_", "."), what)
        assert place in (slip["tasks"], slip["where"])
        assert (slip["printed"], slip["expected"]) == pytest.approx((printed, right), rel=1e-4)


@pytest.mark.row("004:A4")
def test_speedups_without_communication_are_those_of_the_derived_table():
    derived = {(r["source_table"], r["tasks"]): r for r in rows("derived_communication")}
    for table, r in communication_rows():
        alone = one_task(ALONE[table])["cg_ms"]
        expected = derived[float(table.replace("_", ".")), r["tasks"]]
        got = alone / (r["cg_ms"] - r["communication_ms"])
        share = r["communication_ms"] / r["cg_ms"]
        assert round(100 * share, 4) == expected["communication_percent_recomputed"]
        assert round(got, 4) == expected["speedup_of_cg_minus_communication"]
        assert round(speedup(alone, r["cg_ms"]), 4) == expected["speedup_cg"]
        assert round(efficiency(alone, r["cg_ms"], r["tasks"]), 4) == expected["efficiency_cg"]


@pytest.mark.row("004:A2")
@pytest.mark.parametrize("row", rows("derived_slowness_ratio"), ids=lambda r: f"{r['tasks']:.0f} tasks")
def test_slowness_ratios(row):
    ratios = [speedup(*totals(mesh)[int(row["tasks"])]) for mesh in MESHES]
    expected = [row[f"mesh_{mesh}_ratio_node00_over_node8"] for mesh in MESHES]
    assert [round(r, 4) for r in ratios] == expected
    assert round(float(np.mean(ratios)), 4) == row["mean_ratio"]
    assert round(float(np.mean(ratios)), 1) == row["mean_ratio_printed_in_text"]
    assert round(float(np.mean(ratios[1:])), 4) == row["mean_ratio_without_mesh_1"]


@pytest.mark.row("004:7.1")
def test_speedups_of_every_phase_table():
    derived = {(r["source_table"], r["tasks"]): r for r in rows("derived_phase_speedup")}
    for table in PHASE_TABLES:
        alone = one_task(table)
        for r in rows(f"table_{table}"):
            expected = derived[float(table.replace("_", ".")), r["tasks"]]
            for phase in ("total", "cg", "assembly"):
                times = alone[f"{phase}_ms"], r[f"{phase}_ms"]
                assert round(speedup(*times), 4) == expected[f"speedup_{phase}"]
                assert r["total_ms"] - phase_sum(r) == pytest.approx(expected["total_minus_sum_ms"], abs=1e-6)
                if phase != "assembly":
                    assert round(efficiency(*times, r["tasks"]), 4) == expected[f"efficiency_{phase}"]


HETEROGENEOUS = rows("derived_heterogeneous")


@pytest.mark.row("004:7.4", "004:A6")
@pytest.mark.parametrize("row", HETEROGENEOUS, ids=lambda r: f"mesh {r['mesh']:.0f}, run {r['run']:.0f}")
def test_every_run_on_both_machines_against_each_alone_and_the_bottleneck_model(row):
    mesh = int(row["mesh"])
    tasks, seconds = runs(mesh)[int(row["run"])]
    slow, fast = totals(mesh)[1]
    found = against_each({"node8": fast, "node00": slow}, seconds, sum(tasks))
    for host, (faster, each) in found.items():
        assert round(faster, 4) == row[f"speedup_vs_{host}_one_task"]
        assert round(each, 4) == row[f"efficiency_vs_{host}_one_task"]
        assert ("no", "yes")[faster > 1] == row[f"faster_than_{host}_one_task"]
    model = bottleneck_seconds(tasks, totals(mesh)[sum(tasks)])
    assert model == pytest.approx(row["bottleneck_model_s"], abs=1e-6)
    assert 100 * (model / seconds - 1) == pytest.approx(row["bottleneck_model_error_percent"], abs=0.0051)


@pytest.mark.row("004:A5")
def test_7_of_33_runs_beat_one_task_on_node8_and_32_on_node00():
    """The text says that almost all runs gain: true only against node00."""
    assert [
        sum(r[f"faster_than_{host}_one_task"] == "yes" for r in HETEROGENEOUS) for host in ("node8", "node00")
    ] == [7, 32]


@pytest.mark.row("004:7.5")
def test_the_ideal_weighted_split():
    at_8 = [ideal_seconds(totals(mesh)[8]) for mesh in MESHES]
    assert [round(seconds, 3) for seconds in at_8] == [1.460, 5.389, 22.669]
    shares = [seconds / totals(mesh)[8][0] for mesh, seconds in zip(MESHES, at_8)]
    assert [round(100 * share, 2) for share in shares] == [18.26, 8.98, 7.16]
    at_1 = [ideal_seconds(totals(mesh)[1]) for mesh in MESHES]
    assert [round(at_1[0], 4), round(at_1[1], 2), round(at_1[2], 2)] == [0.8009, 19.92, 124.05]


@pytest.mark.row("004:A7")
def test_the_weighted_split_bounds_of_the_derived_table():
    for r in rows("derived_weighted_split_bound"):
        slow, fast = totals(int(r["mesh"]))[int(r["tasks_on_each_machine_alone"])]
        ideal = ideal_seconds((slow, fast))
        assert round(ideal, 6) == r["ideal_weighted_split_s"]
        assert round(100 * ideal / slow, 4) == r["ideal_share_of_node00_percent"]
        assert round(speedup(slow, fast), 3) == r["slowness_ratio_node00_over_node8"]
        seconds = runs(int(r["mesh"]))[int(r["best_measured_run"])][1]
        assert seconds == min(s for _, s in runs(int(r["mesh"])).values())
        assert round(seconds, 6) == r["best_measured_run_s"]
        assert round(speedup(seconds, ideal), 4) == r["best_run_over_ideal"]
        assert round(speedup(seconds, r["best_node8_alone_s"]), 4) == r["best_run_over_best_node8_alone"]


@pytest.mark.row("004:7.2", "004:A8")
def test_conjugate_gradients_grow_with_more_than_the_square_of_the_equations():
    equations = [r["equations"] for r in rows("table_5_5")]
    for tables, expected in (
        (("5_6", "5_8", "5_10"), [2.311, 2.371]),
        (("5_7", "5_9", "5_11"), [2.353, 2.396]),
    ):
        times = [one_task(t)["cg_ms"] for t in tables]
        assert growth_exponents(equations, times).round(3).tolist() == expected


def partition_tables():
    for table in ("5_31", "5_32", "5_33"):
        parts = rows(f"table_{table}")
        yield [r["elements"] for r in parts], [r["shared_dofs"] for r in parts]


@pytest.mark.row("004:A10")
def test_partition_sums_and_balance():
    found = [(sum(e), round(max(e) / np.mean(e), 4), sum(s)) for e, s in partition_tables()]
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
    works = [dense_work(local_equations(e, s, 5565), 5565) for e, s in partition_tables()]
    assert [round(w.total, 4) for w in works] == [0.6124, 0.3746, 0.2472]
    assert [round(w.largest, 4) for w in works] == [0.3065, 0.1043, 0.0437]
    derived = rows("derived_partition_mesh3")
    assert [round(1 / w.total, 3) for w in works] == [r["predicted_gain_on_one_cpu"] for r in derived]
    assert [round(1 / w.largest, 3) for w in works] == [
        r["predicted_cg_speedup_on_separate_cpus"] for r in derived
    ]
