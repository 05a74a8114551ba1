"""The tables of the thesis that the package carries."""

from pathlib import Path

import pytest

from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.storage_tables import printed_work


def test_the_package_carries_every_table_of_chapter_5():
    data = Path(thesis.__file__).parent / "data"
    assert {path.stem for path in data.glob("*.csv")} == {f"table_5_{n}" for n in range(1, 34)}
    assert all(thesis.rows(f"5_{n}") for n in range(1, 34))


def test_totals_and_runs_read_as_printed():
    assert thesis.totals("node8", 3)[8] == pytest.approx(24.417125862)
    assert thesis.totals("node00", 1)[1] == pytest.approx(6.442371311)
    assert thesis.runs(2)[3] == (1, 7, 10.40932)


def test_the_work_that_dense_splitting_saves_follows_from_the_thesis_partitions():
    work = printed_work()
    assert [round(work[p].dense.total, 4) for p in (2, 4, 8)] == [0.6124, 0.3746, 0.2472]
    assert [round(work[p].dense.largest, 4) for p in (2, 4, 8)] == [0.3065, 0.1043, 0.0437]
    assert work[8].one_dense == pytest.approx(3.188, abs=1e-3)
