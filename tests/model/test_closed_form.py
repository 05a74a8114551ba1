"""Time ranges against the tables of Herai (2005); bounds on assembly and CG, against sums by hand."""

import random

import pytest
from planted_records import FROZEN

from fembench.base.errors import InputError
from fembench.model.answers import fitted_iterations
from fembench.model.closed_form import (
    Activity,
    CgSet,
    TimeRange,
    closed_form,
    largest,
    shortest_window,
    total,
)
from fembench.records.store import load


def activity(name, resource, value, ranks=4):
    """Takes `value` to twice that on every rank."""
    return Activity(name, resource, (TimeRange(value, 2 * value),) * ranks)


PRODUCT, HALO = activity("product", "core", 3.0), activity("halo", "nic", 0.25)
UPDATES = activity("updates", "core", 1.0)


def one_host(cores=4, product=(PRODUCT,)):
    """Four ranks on one host; no messages travel while they compute."""
    return CgSet(
        assembly=(activity("assembly", "core", 10.0),),
        iteration=(product, (HALO,), (UPDATES,)),
        allreduce=TimeRange(0.5, 0.5),
        allreduces=2,
        host=(0,) * 4,
        cores=(cores,),
    )


def test_phase_by_phase_everything_adds_up():
    found = closed_form(one_host(), 10)
    # one network card for four halos: 1; two all-reduces: 1
    assert found.iteration == TimeRange(3 + 1 + 1 + 1, 6 + 2 + 2 + 1)
    assert found.seconds == TimeRange(10 + 60, 20 + 110)
    crowded = closed_form(one_host(cores=2), 10)
    assert crowded.iteration == TimeRange(2 * 4 + 1 + 1, 2 * 8 + 2 + 1)
    assert crowded.bottleneck == "T_core_0"


def test_each_term_is_of_the_whole_run():
    found = closed_form(one_host(), 10)
    assert found.terms["T_core_0"] == TimeRange(10 + 40, 20 + 80)
    assert found.terms["T_nic_0"] == TimeRange(10, 20)
    path = TimeRange(10 + 10 * (3 + 0.25 + 1 + 1), 20 + 10 * (6 + 0.5 + 2 + 1))
    assert found.terms["T_0"] == path
    assert found.bottleneck == "T_0"


def test_the_expression_has_a_term_for_every_resource():
    text = closed_form(one_host(), 1).expression
    assert "T_core[h] = sum[p on h](assembly[p] + n*(product[p] + updates[p])) / cores[h]" in text
    assert "T_nic[h] = sum[p on h](n*halo[p])" in text
    turn = "max[p](product[p]) + max[p](halo[p]) + max[p](updates[p]) + 2*allreduce"
    assert f"T_0 = max[p](assembly[p]) + n*({turn})" in text


@pytest.mark.row("000:C3")
def test_iterations_follow_from_coarser_meshes():
    assert fitted_iterations([(1000, 100), (8000, 200)], 64000) == 400
    with pytest.raises(InputError, match="at least two different meshes"):
        fitted_iterations([(1000, 100)], 64000)


@pytest.mark.row("000:fem_record")
def test_the_phases_of_a_record_bound_its_own_sets():
    """What waits for others is no cost: of halo and all-reduce the rank counts that came last."""
    record = load(FROZEN)
    sets, ranks = [s for s in record.sets if not s.warmup], range(record.case.placement.ranks)

    def spent(rank, one, *names):
        return sum(one.seconds[rank][record.phases.index(name)] for name in names)

    def each(name, resource, *phases, turns=True):
        return Activity(
            name,
            resource,
            [
                shortest_window([spent(r, s, *phases) / (s.iterations if turns else 1) for s in sets], 90)
                for r in ranks
            ],
        )

    def least(*phases):
        return shortest_window([min(spent(r, s, *phases) / s.iterations for r in ranks) for s in sets], 90)

    halo = Activity("halo", "nic", [least("cg.send", "cg.wait", "cg.unpack")] * len(ranks))
    work = CgSet(
        assembly=(each("assembly", "core", "assembly", turns=False),),
        iteration=(
            (each("product", "core", "cg.spmv_interior", "cg.spmv_interface"),),
            (halo,),
            (each("updates", "core", "cg.dot", "cg.axpy", "cg.precond"),),
        ),
        allreduce=least("cg.allreduce"),
        allreduces=1,
        host=record.environment.rank_host,
        cores=[len(ranks)] * len(record.environment.hosts),
    )
    found = closed_form(work, sets[-1].iterations)
    for s in sets:
        took = max(spent(r, s, "assembly", "cg") for r in ranks)
        assert 0.5 * found.seconds.low < took < 2 * found.seconds.high


def test_an_activity_without_a_value_for_every_rank_is_refused():
    with pytest.raises(InputError, match="halo: 3 values; expected one per rank, 4"):
        closed_form(one_host(product=(PRODUCT, activity("halo", "nic", 1.0, ranks=3))), 1)
    with pytest.raises(InputError, match="-1 iterations; expected 0 or more"):
        closed_form(one_host(), -1)


X, Y = TimeRange(1, 2), TimeRange(3, 5)


@pytest.mark.row("000:F28")
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (X + Y, TimeRange(4, 7)),
        (10 + X, TimeRange(11, 12)),
        (3 * X, TimeRange(3, 6)),
        (largest([TimeRange(1, 9), Y]), TimeRange(3, 9)),
        (total([X, Y, 1]), TimeRange(5, 8)),
        (Y - X, TimeRange(1, 4)),
        (Y / X, TimeRange(1.5, 5)),
        (-2 * X, TimeRange(-4, -2)),
        (TimeRange(-1, 2) * Y, TimeRange(-5, 10)),
    ],
)
def test_interval_algebra(found, expected):
    assert found == expected


def test_a_divisor_that_holds_zero_is_refused():
    with pytest.raises(InputError, match="without 0"):
        X / TimeRange(-1, 1)


def test_ends_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="low <= high"):
        TimeRange(2, 1)


@pytest.mark.row("000:F12")
@pytest.mark.parametrize(
    ("samples", "keep", "expected"),
    [
        ((1.0, 1.1, 1.12, 1.15, 1.2, 5.0, 0.2, 1.13, 1.18, 1.09), 80, TimeRange(1.0, 1.2)),
        ((3, 1, 2, 9), 100, TimeRange(1, 9)),
        ((3, 1, 2, 9), 75, TimeRange(1, 3)),
    ],
)
def test_published_windows(samples, keep, expected):
    assert shortest_window(samples, keep) == expected


def test_no_shorter_window_holds_as_many():
    draw = random.Random(1)
    for _ in range(200):
        x = sorted(draw.gauss(0, 1) for _ in range(draw.randint(1, 30)))
        keep = draw.randint(1, 100)
        kept = max(len(x) - (100 - keep) * len(x) // 100, 1)
        found = shortest_window(x, keep)
        assert sum(v in found for v in x) >= kept
        assert found.high - found.low == min(x[i + kept - 1] - x[i] for i in range(len(x) - kept + 1))
