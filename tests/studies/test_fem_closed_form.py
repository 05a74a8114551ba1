"""Assembly and CG in closed form."""

import dataclasses
from pathlib import Path

import pytest

from fembench.base.errors import InputError
from fembench.model.interval import TimeRange
from fembench.records.store import load
from fembench.studies.pamela.fem import FemCosts, fitted_iterations, predict_fem
from fembench.studies.pamela.fem_record import priced, unit_costs

RECORD = Path(__file__).parent.parent / "data" / "record-schema-1.json"


def same(value, ranks):
    return (TimeRange(value, 2 * value),) * ranks


def costs(ranks=4, cores=4, **changes):
    values = FemCosts(
        assembly=same(10.0, ranks),
        product=same(3.0, ranks),
        updates=same(1.0, ranks),
        halo=same(0.25, ranks),
        allreduce=TimeRange(0.5, 0.5),
        host=(0,) * ranks,
        cores=(cores,),
    )
    return dataclasses.replace(values, **changes)


def test_by_phase_everything_adds_up():
    found = predict_fem(costs(), 10)
    # one interface for four halos: 1; two all-reduces: 1
    assert found.iteration == TimeRange(3 + 1 + 1 + 1, 6 + 2 + 2 + 1)
    assert found.seconds == TimeRange(10 + 60, 20 + 110)


def test_globally_messages_hide_behind_computing():
    found = predict_fem(costs(), 10, compose="global")
    assert found.terms["T_core_0"] == TimeRange(10 + 40, 20 + 80)
    assert found.terms["T_nic_0"] == TimeRange(10, 20)
    assert (
        found.seconds
        == found.terms["T_0"]
        == TimeRange(10 + 10 * (3 + 0.25 + 1 + 1), 20 + 10 * (6 + 0.5 + 2 + 1))
    )


def test_ranks_on_too_few_cores_wait_for_them():
    alone, crowded = predict_fem(costs(), 10), predict_fem(costs(cores=2), 10)
    assert crowded.iteration == TimeRange(2 * 4 + 1 + 1, 2 * 8 + 2 + 1)
    assert crowded.seconds.low > 1.4 * alone.seconds.low


def test_memory_that_all_ranks_share_bounds_the_product():
    found = predict_fem(costs(traffic=same(2.0, 4)), 1)
    assert found.iteration.low == 8 + 1 + 1 + 1
    assert "T_mem[h[p]]" in found.expression


def test_the_expression_names_every_resource():
    text = predict_fem(costs(), 1).expression
    assert "/* T_core[h[p]] */ max[p](assembly[p] + sum[k](product[p] + updates[p]))" in text
    assert "/* T_nic[h[p]] */" in text
    assert "sum[k](max[p](product[p]) + max[p](halo[p]) + max[p](updates[p]) + 2*allreduce[1])" in text


def test_iterations_follow_from_coarser_meshes():
    assert fitted_iterations([(1000, 100), (8000, 200)], 64000) == 400
    with pytest.raises(InputError, match="two coarser"):
        fitted_iterations([(1000, 100)], 64000)


def test_a_record_predicts_its_own_sets():
    record = load(RECORD)
    found = predict_fem(priced(unit_costs(record), record.partition), record.sets[-1].iterations)
    assembly, cg = record.phases.index("assembly"), record.phases.index("cg")
    for s in (s for s in record.sets if not s.warmup):
        spent = max(row[assembly] + row[cg] for row in s.seconds)
        assert 0.5 * found.seconds.low < spent < 2 * found.seconds.high


def test_values_for_too_few_ranks_are_refused():
    with pytest.raises(InputError, match="halo: expected a value for each of 4"):
        predict_fem(costs(halo=same(1.0, 3)), 1)
