"""The tables of the thesis that the package carries."""

from pathlib import Path

import pytest

from fembench_studies.thesis_004 import thesis


def test_the_package_carries_every_table_of_chapter_5():
    data = Path(thesis.__file__).parent / "data"
    assert {path.stem for path in data.glob("table_*.csv")} == {f"table_5_{n}" for n in range(1, 34)}
    assert all(thesis.rows(f"5_{n}") for n in range(1, 34))


def test_times_and_parts_read_as_printed():
    side = thesis.printed()
    assert side.total("node8", 3, 8) == pytest.approx(24.417125862)
    assert side.total("node00", 1, 1) == pytest.approx(6.442371311)
    assert (thesis.RUNS[3], side.total("run", 2, 3)) == ((1, 7), pytest.approx(10.40932))
    assert side.at("cluster2", 1, 2).total == pytest.approx(3.291970573)  # a slip
    assert side.at("smp", 2, 4).receive == pytest.approx(1.940730377)
    assert side.gain("single_cpu", 8) == pytest.approx(3.188, abs=1e-3)
