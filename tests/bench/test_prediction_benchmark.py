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


@pytest.mark.row("000:C7")
@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, []),
        ({"median": 0.031}, ["simulation: median |error|: 3.1%"]),
        ({"coverage": 0.583}, ["simulation: runs inside the interval: 58.3%"]),
        ({"coverage": 1.0}, []),
        ({"half_width": 0.127}, ["simulation: half-width of intervals: 12.7%"]),
        ({"bias": -0.021}, ["simulation: |bias|: 2.1%"]),
        ({"closed": {"median": 0.061}}, ["closed form: median |error|: 6.1%"]),
        ({"closed": {"coverage": 0.583}}, ["closed form: runs inside the interval: 58.3%"]),
        ({"closed": {"half_width": 0.127}}, ["closed form: half-width of intervals: 12.7%"]),
        (
            {"median": 0.41},
            [
                "simulation: median |error|: 41.0%",
                "simulation: median |error|, against ideal sum of speeds: 41.0%",
            ],
        ),
    ],
)
def test_each_target_can_be_missed(benchmark, changes, missed):
    rows = list(benchmark.promises(scores(**changes), "emulated"))
    assert [f"{row.what}: {row.found}" for row in rows if not row.kept] == missed
    assert len(rows) == 10


@pytest.mark.parametrize(("median", "kept"), [(0.10, True), (0.101, False)])
def test_in_the_lab_the_median_error_alone_is_judged(benchmark, median, kept):
    (promise,) = benchmark.promises(scores(median=median), "lab")
    assert (promise.what, promise.kept) == ("simulation: median |error|", kept)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, []),
        ({"median": 0.061}, ["simulation: median |error|: 6.1%"]),
        ({"closed": {"median": 0.101}}, ["closed form: median |error|: 10.1%"]),
        ({"closed": {"coverage": 0.79}}, ["closed form: runs inside the interval: 79.0%"]),
        ({"coverage": 1.0, "half_width": 0.127}, ["simulation: half-width of intervals: 12.7%"]),
    ],
)
def test_on_this_machine_the_closed_form_and_the_intervals_are_judged_as_well(benchmark, changes, missed):
    rows = list(benchmark.promises(scores(**changes), "real"))
    assert [f"{row.what}: {row.found}" for row in rows if not row.kept] == missed
    assert len(rows) == 6


@pytest.mark.parametrize("which", ["emulated", "lab", "real"])
def test_if_every_configuration_is_too_noisy_the_verdict_is_invalid_and_says_so(
    benchmark, which, tmp_path, monkeypatch, capsys
):
    found = scores(cells=0, left_out=12, closed={"cells": 0, "left_out": 12})
    monkeypatch.setattr(benchmark, "fembench", lambda *words, capture: json.dumps(found))
    assert benchmark.judge(tmp_path, which) == 1
    assert "INVALID: 12 of 12 configurations vary too much" in capsys.readouterr().out


@pytest.mark.parametrize("found", [scores(left_out=10), scores() | {"state": {"stale": "slower memory"}}])
def test_nothing_is_judged_if_the_verdict_is_invalid(benchmark, found, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "fembench", lambda *words, capture: json.dumps(found))
    assert benchmark.judge(tmp_path, "emulated") == 1
    rows = [line for line in capsys.readouterr().out.splitlines() if line.endswith("|")][2:]
    assert len(rows) == 10
    assert all(row.endswith("| INVALID |") for row in rows)
