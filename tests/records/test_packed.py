"""Large arrays of a record: packed in its file, the same numbers for every reader."""

import numpy as np
import pytest
from msgspec.structs import replace
from planted_records import planted

from fembench.base.errors import InputError
from fembench.records.schema import LARGE, Packed, packed, rows
from fembench.records.store import load, save
from fembench.records.times import Times

SPEEDS = (1.0, 1.0, 0.5)


@pytest.mark.parametrize("shape", [(5,), (3, 7), (0, 4)])
def test_whole_numbers_are_exact_and_others_keep_16_bits(shape):
    rng = np.random.default_rng(1)
    whole = rng.integers(0, 2**32, shape)
    assert np.array_equal(packed(whole).numbers(), whole)
    values = 10 ** rng.uniform(-9, 3, shape) * rng.integers(0, 2, shape)
    assert np.allclose(packed(values).numbers(), values, rtol=2**-16, atol=0)


def test_only_large_arrays_are_packed():
    assert rows(np.ones((2, 3))) == ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    assert isinstance(rows(np.ones(LARGE + 1)), Packed)


def large(record):
    """The record with all its times packed."""

    def in_one(of, *names):
        return replace(of, **{name: packed(np.array(getattr(of, name))) for name in names})

    sets = tuple(in_one(one, "seconds", "counts", "total") for one in record.sets)
    return replace(in_one(record, "setup"), sets=sets)


def with_seconds(record, seconds):
    """The record whose first set has these seconds instead."""
    return replace(record, sets=(replace(record.sets[0], seconds=seconds), *record.sets[1:]))


def test_a_packed_record_has_the_times_and_the_verdict_of_a_plain_one(tmp_path):
    plain = load(save(planted(SPEEDS, sets=20), tmp_path))
    found = load(save(large(planted(SPEEDS, sets=20, id="large")), tmp_path))
    assert np.allclose(Times(found).all_sets, Times(plain).all_sets, rtol=2**-16, atol=0)
    assert np.array_equal(Times(found).all_counts, Times(plain).all_counts)
    assert np.allclose(Times(found).all_walls, Times(plain).all_walls, rtol=2**-16, atol=0)
    assert found.verdict.status == plain.verdict.status
    assert [r.ok for r in found.verdict.rules] == [r.ok for r in plain.verdict.rules]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda p: packed(p.numbers()[:2]), "2 ranks"),
        (lambda p: packed(p.numbers()[:, :4]), "4 phases"),
        (lambda p: packed(np.array(1.0)), "0 ranks"),
    ],
)
def test_packed_times_of_other_ranks_or_phases_are_refused(tmp_path, change, named):
    record = large(planted(SPEEDS))
    path = save(with_seconds(record, change(record.sets[0].seconds)), tmp_path)
    with pytest.raises(InputError, match=named):
        load(path)


@pytest.mark.parametrize("data", ["", "AAAA", "not base64"])
def test_damaged_times_make_a_record_invalid(tmp_path, data):
    record = large(planted(SPEEDS))
    path = save(with_seconds(record, replace(record.sets[0].seconds, data=data)), tmp_path)
    assert load(path).verdict.status == "INVALID"
