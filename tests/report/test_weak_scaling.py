"""Weak scaling on planted records: which runs form a series, and its efficiencies by hand."""

import msgspec
import numpy as np
import pytest
from report_sample import HOST, computing, environment, make_record, rows_of

from fembench.report.plots.lines import weak_scaling
from fembench.report.results import results
from fembench.report.tables import every_table
from fembench.report.weak import weak_points, weak_series
from fembench.stats.student import ratio_unpaired

replace = msgspec.structs.replace


def test_meshes_that_grow_with_the_ranks_form_a_series():
    """630, 648 and 682 equations per rank are within 10 %; the other two are on their own."""
    found = results([make_record(*r) for r in [("m1", 1), ("m2", 4), ("m3", 8), ("m2", 1), ("m3", 4)]])
    (series,) = weak_series(found)
    assert [(r.mesh, r.ranks) for r in series] == [("m1", 1), ("m2", 4), ("m3", 8)]


def test_of_two_meshes_on_the_same_ranks_a_series_has_that_of_the_typical_size():
    records = [make_record("m1"), make_record("m2", 4), make_record("m3", 4)]
    larger = replace(records[2], mesh=replace(records[2].mesh, n_equations=4 * 680))
    (series,) = weak_series(results([*records[:2], larger]))
    assert [(r.mesh, r.ranks) for r in series] == [("m1", 1), ("m2", 4)]


def test_one_mesh_on_nearly_as_many_ranks_is_not_a_series():
    assert weak_series(results([make_record("m3", p) for p in (20, 21)])) == []


@pytest.mark.parametrize(
    "changes", [{"storage": "sym"}, {"precond": "jacobi"}, {"tolerance": 1e-3}, {"status": "INVALID"}]
)
def test_runs_of_another_method_or_that_are_invalid_are_in_no_series(changes):
    assert weak_series(results([make_record("m1"), make_record("m2", 4, **changes)])) == []


def test_runs_on_another_processor_or_element_are_in_no_series():
    other = make_record("m2", 4, environment=environment(4, hosts=(replace(HOST, cpu_model="Other"),)))
    assert weak_series(results([make_record("m1"), other])) == []
    hexes = make_record("m2", 4)
    hexes = replace(hexes, mesh=replace(hexes.mesh, element="hex8"))
    assert weak_series(results([make_record("m1"), hexes])) == []


def test_more_hosts_of_the_same_kind_continue_a_series():
    two = environment(4, hosts=(HOST, replace(HOST, name="node9")))
    first, second = rows_of([make_record("m1"), make_record("m2", 4, environment=two)], "weak")
    assert (first["hosts"], second["hosts"]) == (1, 2)


def sized(mesh, ranks, per_rank, **changes):
    """A record with exactly so many equations per rank."""
    record = make_record(mesh, ranks, **changes)
    return replace(record, mesh=replace(record.mesh, n_equations=ranks * per_rank))


def test_a_rank_with_more_equations_than_the_base_may_take_longer():
    """1.1 times the equations per rank in 1.1 times the time: a perfect machine."""
    records = [computing(sized("m1", 1, 600), 1e-3), computing(sized("m2", 4, 660), 1.1e-3)]
    _, row = rows_of(records, "weak")
    assert row["iteration_efficiency"] == pytest.approx(1.0)
    assert {r["phase"]: r["efficiency"] for r in rows_of(records, "weak_phases")}["cg"] == pytest.approx(1.0)


def test_each_row_of_a_series_and_the_headline_give_the_equations_of_their_own_run():
    records = [computing(sized("m1", 1, 600), 1e-3), computing(sized("m2", 4, 660), 1.1e-3)]
    assert [row["equations_per_rank"] for row in rows_of(records, "weak")] == [600, 660]
    assert {row["series"] for row in rows_of(records, "weak")} == {"csr, 600 to 660 equations per rank"}
    headline = {row["what"]: row["remarks"] for row in rows_of(records, "headline")}
    assert "csr, 660 equations per rank, from 1 to 4 ranks" in headline["weak scaling efficiency"]


def test_a_run_of_a_series_is_no_speedup_without_a_base():
    series = [computing(sized("m1", 1, 600), 1e-3), computing(sized("m2", 4, 600), 1e-3)]
    assert "speedup_cg" not in {table.name for table in every_table(series)}
    lonely = computing(sized("m3", 4, 9000), 1e-3)
    assert [row["mesh"] for row in rows_of([*series, lonely], "speedup_cg")] == ["m3"]


@pytest.mark.row("004:4g")
def test_efficiency_is_the_time_of_the_base_over_the_time_on_more_ranks():
    records = [computing(sized("m1", 1, 640), 1e-3), computing(sized("m2", 4, 640), 1.25e-3, iterations=200)]
    first, second = rows_of(records, "weak")
    assert (first["iteration_efficiency"], second["iteration_efficiency"]) == pytest.approx((1.0, 0.8))
    assert second["iteration_s"] == pytest.approx(1.25e-3)
    by_phase = {r["phase"]: r["efficiency"] for r in rows_of(records, "weak_phases")}
    assert by_phase["assembly"] == pytest.approx(1.0)
    assert by_phase["product"] == by_phase["iteration"] == pytest.approx(0.8)
    assert by_phase["cg"] == pytest.approx(0.4)
    assert by_phase["assembly + cg"] == pytest.approx((0.01 + 0.1) / (0.01 + 0.25))


def test_the_interval_is_that_of_the_ratio_of_runs():
    alone, together = (1.0e-3, 1.01e-3, 1.03e-3), (1.2e-3, 1.22e-3, 1.25e-3, 1.3e-3)
    records = [computing(sized("m1", 1, 640, run=k), t) for k, t in enumerate(alone)]
    records += [computing(sized("m2", 4, 640, run=k), t) for k, t in enumerate(together)]
    _, row = rows_of(records, "weak")
    expected = ratio_unpaired(alone, together).interval
    assert (row["iteration_low"], row["iteration_high"]) == pytest.approx((expected.low, expected.high))
    assert (row["base_runs"], row["runs"]) == (3, 4)


def test_the_base_may_have_several_ranks():
    records = [make_record("m1"), make_record("m2", 4), make_record("m3", 8)]
    points = weak_points(results(records), base=4)
    assert {p.base.ranks for p in points} == {4}
    assert [p.efficiency["iteration"][0] for p in points][1] == 1.0
    assert {p.base.ranks for p in weak_points(results(records), base=2)} == {1}


def test_unequal_ranks_have_times_but_no_efficiency():
    odd = (HOST, replace(HOST, name="node9", cpu_model="Other"))
    ones = [make_record("m1", 2, environment=environment(2, hosts=odd))]
    ones.append(make_record("m2", 8, environment=environment(8, hosts=odd)))
    _, row = rows_of(ones, "weak")
    assert row["iteration_efficiency"] is None
    assert row["iteration_s"] > 0
    assert "unequal ranks" in row["remarks"]


def test_the_plot_has_a_curve_for_each_series_and_none_without_one():
    points = weak_points(results([make_record("m1"), make_record("m2", 4)]))
    plot = weak_scaling(points)
    assert "630 to 648 equations per rank" in plot.svg
    assert weak_scaling([]) is None
    assert np.isfinite([p.times["iteration"].median for p in points]).all()
