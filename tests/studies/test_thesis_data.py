"""The thesis' tables that the package carries are those that the other tests hold the office against."""

from pathlib import Path

import pytest

from fembench.studies.thesis_004 import thesis
from fembench.studies.thesis_004.storage_tables import printed_work

SOURCE = Path(__file__).parents[1] / "data"


def test_the_package_carries_every_table_as_the_tests_have_it():
    names = [p.name for p in SOURCE.glob("seed004_table_*.csv")]
    assert len(names) == 28
    for name in names:
        assert (thesis.DATA / name.removeprefix("seed004_")).read_bytes() == (SOURCE / name).read_bytes()


def test_totals_and_runs_read_as_printed():
    assert thesis.totals("node8", 3)[8] == pytest.approx(24.417125862)
    assert thesis.totals("node00", 1)[1] == pytest.approx(6.442371311)
    assert thesis.runs(2)[3] == (1, 7, 10.40932)


def test_the_work_that_dense_splitting_saves_follows_from_the_thesis_partitions():
    work = printed_work()
    assert [round(work[p].dense.total, 4) for p in (2, 4, 8)] == [0.6124, 0.3746, 0.2472]
    assert [round(work[p].dense.largest, 4) for p in (2, 4, 8)] == [0.3065, 0.1043, 0.0437]
    assert work[8].one_dense == pytest.approx(3.188, abs=1e-3)
