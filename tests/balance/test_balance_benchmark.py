"""The promises of benchmarks/balance.py, from planted measurements."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import balance

    return balance


@pytest.fixture
def verdicts(benchmark):
    return lambda part, rows: [p.verdict for p in benchmark.promises(part, rows)]


def overhead(run, against, more, noise=0.5):
    return {"run": run, "against": against, "more %": more, "noise %": noise}


def gain(c, percent, best, off=3.0, noise=1.0):
    row = {"speeds": "0.5 1 1 1", "blocks per rank": c, "gain %": percent, "optimum %": best}
    return row | {"noise %": noise, "prediction off, median %": off}


@pytest.mark.row("002:7.7-2")
def test_observing_may_cost_two_percent_and_four_blocks_eight(verdicts):
    found = [("c = 4, observe", "c = 4, none", 2.1), ("c = 4, none", "c = 1, none", 7.9)]
    assert verdicts("overhead", [overhead(*row) for row in found]) == ["NOT KEPT", "kept"]
    assert verdicts("blocks", [{"blocks per rank": "c = 4", "more %": 8.1, "noise %": 0.0}]) == ["NOT KEPT"]


def test_a_noise_above_the_target_decides_nothing(verdicts):
    row = overhead("c = 4, observe", "c = 4, none", -1.0, noise=2.1)
    assert verdicts("overhead", [row]) == ["not decidable"]
    assert verdicts("overhead", [row | {"noise %": float("nan")}]) == ["not decidable"]


@pytest.mark.row("002:7.7-3")
def test_the_best_gains_are_those_of_whole_blocks(benchmark):
    assert [benchmark.optimum(c) for c in (1, 2, 4)] == [0.0, 25.0, 37.5]


@pytest.mark.row("002:7.7-3", "002:7.7-5")
def test_gains_are_asked_for_and_predictions(verdicts):
    assert verdicts("gain", [gain(2, 22.1, 25), gain(4, 32.9, 37.5, off=6.1)]) == [
        "kept",
        "kept",
        "NOT KEPT",
        "NOT KEPT",
    ]
    assert verdicts("gain", [gain(2, 24.0, 25, noise=3.1)]) == ["not decidable", "kept"]


def test_where_nothing_is_to_gain_little_may_be_lost(verdicts):
    assert verdicts("still", [gain(1, -4.9, 0), gain(4, -5.1, 0)]) == ["kept", "NOT KEPT"]


def test_five_looks_after_a_change_the_optimum_is_near(verdicts):
    rows = [{"over it %": over, "noise %": 1.0} for over in (90, 40, 20, 12, 11, 2)]
    assert verdicts("change", rows) == ["NOT KEPT"]
    rows[4]["over it %"] = 9
    assert verdicts("change", rows) == ["kept"]


def test_the_recommended_policy_may_be_five_percent_behind_the_best(benchmark, verdicts):
    rows = [
        {"scenario": scenario, "policy": policy, "behind the best %": behind, "noise %": 1.0}
        for scenario, ours in (("a slow rank", 4.9), ("a rank slows", 5.1))
        for policy, behind in (("none", 60.0), ("amortised", ours), ("rcb", 0.0))
    ]
    assert verdicts("policies", rows) == ["kept", "NOT KEPT"]
    assert "policies" in benchmark.GROUPS


@pytest.mark.row("002:E6")
def test_weights_and_balancing_are_asked_where_each_is_best(verdicts):
    rows = [
        {"cluster": cluster, "way": way, "gain %": 30.0, "noise %": 1.0}
        for cluster in ("static", "changing")
        for way in ("nothing", "static weights", "balancing", "both")
    ]
    assert verdicts("weights", rows) == ["NOT KEPT", "NOT KEPT", "kept"]


@pytest.mark.row("002:lab")
@pytest.mark.parametrize(("moved", "verdict"), [(8.9, "kept"), (9.2, "NOT KEPT")])
def test_a_host_that_slows_down_in_the_lab(verdicts, moved, verdict):
    rows = [{"cg s": seconds} for seconds in (10.0, 10.1, moved)]
    assert verdicts("lab", rows) == [verdict]


@pytest.mark.parametrize(("more", "status"), [(1.0, 0), (9.0, 1)])
def test_the_exit_status_says_whether_promises_are_kept(benchmark, monkeypatch, capsys, more, status):
    row = overhead("c = 4, observe", "c = 4, none", more)
    monkeypatch.setitem(benchmark.GROUPS, "overhead", lambda bench: [row])
    monkeypatch.setattr(sys, "argv", ["balance.py", "--only", "overhead"])
    assert benchmark.main() == status
    assert ("NOT KEPT" in capsys.readouterr().out) == bool(status)
