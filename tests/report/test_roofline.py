"""The roofline on planted records: counts, rates and the roof by hand."""

import msgspec
import numpy as np
import pytest
from report_sample import make_record, rows_of

from fembench.methods.lookup import Combination
from fembench.methods.recipe import recipe
from fembench.records import phases as ph
from fembench.records.binding import taking_turns
from fembench.report.plots.gantt import roofline
from fembench.report.results import results
from fembench.report.roofline import phase_works, roofline_points

replace = msgspec.structs.replace


def counted(ranks=2, **changes):
    """A record whose work is that of a product of 1e5 flops and 4e5 bytes, and of the passes of plain CG."""
    record = make_record("m2", ranks, noise=0.0, storage="sym", **changes)
    n = np.array(record.partition.dofs, float)
    each = recipe(Combination(precond=record.case.method.precond)).counted(1.0)
    flops, n_bytes = 1e5 + each.flops * n, 4e5 + each.bytes * n
    solve = replace(record.solve, flops=tuple(flops.tolist()), bytes=tuple(n_bytes.tolist()))
    return replace(record, solve=solve)


def test_the_work_of_a_product_is_what_the_passes_over_vectors_leave():
    record = counted()
    works = phase_works(record)
    assert works["product"] == pytest.approx(np.array([[1e5] * 2, [4e5] * 2]))
    whole = np.array([record.solve.flops, record.solve.bytes])
    assert works["product"] + works["vectors"] == pytest.approx(whole)
    plain = recipe(Combination())
    assert works["vectors"][1] == pytest.approx(
        (plain.updates.bytes + plain.dots.bytes) * np.array(record.partition.dofs)
    )


def test_products_of_a_preconditioner_count_with_the_vectors_that_they_are_timed_with():
    record = counted(precond="chebyshev")
    record = replace(
        record,
        solve=replace(
            record.solve,
            flops=tuple(f + 3e5 for f in record.solve.flops),
            bytes=tuple(b + 12e5 for b in record.solve.bytes),
        ),
    )
    assert phase_works(record)["product"] == pytest.approx(np.array([[1e5] * 2, [4e5] * 2]))


@pytest.mark.parametrize("precond", ["two-level", "multigrid"])
def test_a_method_whose_cost_a_record_lacks_has_the_whole_iteration_alone(precond):
    points = roofline_points(results([counted(precond=precond)]))
    assert [p.phase for p in points] == ["iteration"]


def test_rates_are_work_over_the_time_of_the_phase_and_the_roof_is_the_sum_over_ranks():
    record = counted()
    rows = {r["phase"]: r for r in rows_of([record], "roofline")}
    spent = np.array(record.sets[-1].seconds)[:, list(ph.PRODUCT_PARTS)].sum(axis=1) / record.solve.iterations
    product = rows["product"]
    assert product["intensity"] == pytest.approx(0.25)
    assert product["gb_per_s"] == pytest.approx((4e5 / spent).sum() / 1e9)
    assert product["roof_gb_per_s"] == pytest.approx(16.0)
    assert product["of_roof_fraction"] == pytest.approx((4e5 / spent).sum() / 16e9)
    cg = max(row[ph.CG] for row in record.sets[-1].seconds) / record.solve.iterations
    assert rows["iteration"]["gflop_per_s"] == pytest.approx(sum(record.solve.flops) / cg / 1e9)


def test_a_core_counts_once_and_only_for_the_time_that_a_quota_leaves():
    """Two ranks, each with a core, of a host with a quota of 2 CPUs; one of half a CPU."""
    record = counted()
    (host,) = record.environment.hosts
    half = replace(host, name="n2", cores=1, cpu_quota=0.5)
    placed = replace(record.environment, hosts=(host, half), rank_host=(0, 1))
    (product, *_) = rows_of([replace(record, environment=placed)], "roofline")
    assert product["roof_gb_per_s"] == pytest.approx(1.5 * 8.0)


@pytest.mark.parametrize(("machines", "cores", "words"), [
    ((0, 0), ((0,), (0,)), "2 ranks take turns on 1 core"),
    ((0, 0), ((0,), (1,)), ""),
    ((0, 1), ((0,), (0,)), ""),
    ((-1, -1), ((0,), (0,)), ""),
    ((0, 0), (), ""),
])  # fmt: skip
def test_ranks_take_turns_if_their_machine_has_fewer_cores_whatever_its_hosts_are_called(
    machines, cores, words
):
    record = make_record(ranks=2)
    hosts = tuple(replace(record.environment.hosts[0], machine=machine) for machine in machines)
    found = taking_turns(replace(record.environment, hosts=hosts, rank_host=(0, 1), cores=cores))
    assert found == words


def test_without_a_measured_bandwidth_there_is_no_roof_and_no_plot():
    record = counted()
    bare = replace(record, solve=replace(record.solve, bandwidth=()))
    assert {r["remarks"] for r in rows_of([bare], "roofline")} == {
        "roof not available: no bandwidth was measured"
    }
    assert roofline(roofline_points(results([bare]))) is None
    assert "roofline" in [r["what"] for r in rows_of([bare], "unavailable")]


def test_the_plot_names_ranks_and_phases():
    plot = roofline(roofline_points(results([counted(1), counted(2), counted(8)])))
    assert all(word in plot.svg for word in ("product", "vectors", "whole iteration", "8 ranks", "1 rank<"))
