"""The verdict of benchmarks/binaries.py, from planted predictions and times."""

import argparse
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


@pytest.fixture
def status(monkeypatch, capsys):
    """The exit status for a prediction and the times of its runs."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import binaries

    def of(prediction, wall, processor=0.0, clock="wall"):
        made = []
        monkeypatch.setattr(binaries, "predicted", lambda *_: made.append("predicted") or prediction)
        monkeypatch.setattr(binaries, "measured", lambda *_: made.append("run") or (wall, processor))
        options = argparse.Namespace(levels="O0,O2", runs=1, clock=clock, json=None)
        found = binaries.judged(binaries.PROGRAMS[:1], options, Path("none"))
        assert made == ["predicted"] * 2 + ["run"] * 2
        printed = capsys.readouterr().out
        assert printed.index("predictions sealed: sha256") < printed.index("| integral -O0")
        assert ("NOT KEPT" in printed) == bool(found)
        return found

    return of


def prediction(seconds, low, high, *, drawn):
    return {"seconds": seconds, "low": low, "high": high, "drawn": drawn}


@pytest.mark.parametrize(("took", "status_of_it"), [(0.92, 0), (1.1, 0), (0.9, 1), (1.12, 1)])
def test_where_all_counts_are_known_the_error_is_at_most_ten_per_cent(status, took, status_of_it):
    assert status(prediction(1.0, 0.5, 1.5, drawn=False), took) == status_of_it


@pytest.mark.parametrize(("took", "status_of_it"), [(0.61, 0), (1.39, 0), (0.59, 1), (1.41, 1)])
def test_where_counts_are_drawn_the_time_lies_within_the_interval(status, took, status_of_it):
    assert status(prediction(1.0, 0.6, 1.4, drawn=True), took) == status_of_it


def test_beside_other_work_the_processor_clock_may_be_judged(status):
    known = prediction(1.0, 0.9, 1.1, drawn=False)
    assert status(known, wall=2.0, processor=1.0) == 1
    assert status(known, wall=2.0, processor=1.0, clock="processor") == 0
