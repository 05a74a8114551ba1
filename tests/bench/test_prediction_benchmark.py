"""benchmarks/prediction.py: the passes of its training, and what it judges."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from fembench.base.config import read_toml
from fembench.bench.campaign import read_campaign

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("prediction_benchmark", BENCHMARKS / "prediction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("commands", None)


@pytest.mark.parametrize(("which", "times"), [("emulated", (1, 1)), ("real", (1, 2)), ("lab", (1, 2))])
def test_training_has_two_passes_over_the_same_configurations(benchmark, tmp_path, which, times):
    text = (BENCHMARKS / "prediction" / which / "train.toml").read_text()
    cases = []
    for number, (one, repetitions) in enumerate(zip(benchmark.two_passes(text), times, strict=True)):
        path = tmp_path / f"{number}.toml"
        path.write_text(one)
        assert read_toml(path, dict)["repetitions"] == repetitions
        cases.append({run.case for run in read_campaign(path)[1]})
    assert cases[0] == cases[1]


def scores(closed=None, **changes):
    values = {"cells": 24, "left_out": 0, "median": 0.02, "p90": 0.04, "bias": 0.01, "coverage": 0.9}
    values |= {"tau": 0.95, "outside": 0.0, "half_width": 0.05}
    return {
        "fembench": values | changes,
        "fembench, analytic": values | {"median": 0.05} | (closed or {}),
        "ideal sum of speeds": values | {"median": 0.4},
        "cells": [],
        "state": {"stale": "", "changes": []},
    }


ERROR, CLOSED = "simulation: median |error|", "closed form: median |error|"
INSIDE, WIDTH = "runs inside the interval", "half-width of intervals"
JUDGED = {"emulated": 10, "real": 6, "lab": 1}  # promises


@pytest.mark.row("000:C7")
@pytest.mark.parametrize(
    ("which", "changes", "missed"),
    [
        *((which, {}, []) for which in JUDGED),
        ("emulated", {"median": 0.031}, [f"{ERROR}: 3.1%"]),
        ("emulated", {"median": 0.41}, [f"{ERROR}: 41.0%", f"{ERROR}, against ideal sum of speeds: 41.0%"]),
        ("emulated", {"coverage": 0.583}, [f"simulation: {INSIDE}: 58.3%"]),
        ("emulated", {"coverage": 1.0}, []),
        ("emulated", {"half_width": 0.127}, [f"simulation: {WIDTH}: 12.7%"]),
        ("emulated", {"bias": -0.021}, ["simulation: |bias|: 2.1%"]),
        ("emulated", {"closed": {"median": 0.061}}, [f"{CLOSED}: 6.1%"]),
        ("emulated", {"closed": {"half_width": 0.127}}, [f"closed form: {WIDTH}: 12.7%"]),
        ("real", {"median": 0.061}, [f"{ERROR}: 6.1%"]),
        ("real", {"closed": {"median": 0.101}}, [f"{CLOSED}: 10.1%"]),
        ("real", {"closed": {"coverage": 0.79}}, [f"closed form: {INSIDE}: 79.0%"]),
        ("real", {"coverage": 1.0, "half_width": 0.127}, [f"simulation: {WIDTH}: 12.7%"]),
        ("lab", {"median": 0.101}, [f"{ERROR}: 10.1%"]),
    ],
)
def test_each_target_can_be_missed(benchmark, which, changes, missed):
    rows = list(benchmark.promises(scores(**changes), which))
    assert [f"{row.what}: {row.found}" for row in rows if not row.kept] == missed
    assert len(rows) == JUDGED[which]


NOISY = scores(cells=0, left_out=12, closed={"cells": 0, "left_out": 12})
STALE = scores() | {"state": {"stale": "slower memory"}}


@pytest.mark.parametrize(
    ("found", "which"),
    [*((NOISY, which) for which in JUDGED), (scores(left_out=10), "emulated"), (STALE, "emulated")],
)
def test_noise_or_a_changed_machine_judges_nothing(benchmark, found, which, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "fembench", lambda *words, capture: json.dumps(found))
    assert benchmark.judge(tmp_path, which) == 1
    said = capsys.readouterr().out
    assert ("INVALID: 12 of 12 configurations vary too much" in said) == (found is NOISY)
    rows = [line for line in said.splitlines() if line.endswith("|")][2:]
    assert all(row.endswith("| INVALID |") for row in rows)
    assert found is NOISY or len(rows) == JUDGED[which]
