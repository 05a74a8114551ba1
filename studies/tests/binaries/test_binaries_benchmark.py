"""The verdict of benchmarks/binaries.py, from planted predictions and times."""

import argparse
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


@pytest.fixture
def status(monkeypatch, capsys):
    """The exit status for a prediction of each of six programs and the times of its runs."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import binaries

    def of(predictions, times):
        made = []
        found, spent = iter(predictions), iter(times)
        monkeypatch.setattr(binaries, "predicted", lambda *_: made.append("predicted") or next(found))
        monkeypatch.setattr(binaries, "measured", lambda *_: made.append("run") or [next(spent)] * 3)
        plans = [binaries.Plan(name, "O2", 2) for name in binaries.PROGRAMS]
        status = binaries.judged(plans, argparse.Namespace(runs=3, json=None, machine=""), Path("none"))
        assert made == ["predicted"] * 6 + ["run"] * 6
        printed = capsys.readouterr().out
        assert printed.index("predictions sealed: sha256") < printed.index("| jacobi -O2, 2 ranks")
        assert ("NOT KEPT" in printed) == bool(status)
        return status

    return of


def prediction(low=0.9, high=1.1, wide=""):
    return {"seconds": 1.0, "low": low, "high": high, "wide": wide}


@pytest.mark.row("003:bin-acc")
def test_five_of_six_times_lie_within_their_intervals(status):
    assert status([prediction()] * 6, [1.0] * 5 + [1.2]) == 0
    assert status([prediction()] * 6, [1.0] * 4 + [1.2] * 2) == 1


def test_a_wide_interval_is_not_kept_and_must_say_why(status):
    wide = prediction(0.5, 1.5, "ranks wait")
    assert status([prediction()] * 5 + [wide], [1.0] * 6) == 0
    assert status([prediction()] * 4 + [wide] * 2, [1.0] * 6) == 1
    assert status([prediction()] * 5 + [prediction(0.5, 1.5)], [1.0] * 6) == 1
