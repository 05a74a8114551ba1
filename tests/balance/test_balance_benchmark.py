"""The promises of benchmarks/balance.py, from planted measurements."""

import sys

import pytest


@pytest.fixture
def benchmark(from_benchmarks):
    return from_benchmarks("balance")


def overhead(run, against, more, noise=0.5):
    return {"run": run, "against": against, "more %": more, "noise %": noise}


def gain(c, percent, best, off=3.0, noise=1.0):
    row = {"speeds": "0.5 1 1 1", "blocks per rank": c, "gain %": percent, "optimum %": best}
    return row | {"noise %": noise, "prediction off, median %": off}


def still(c, percent):
    return gain(c, percent, 0)


def change(over):
    return [{"over it %": percent, "noise %": 1.0} for percent in (90, 40, 20, 12, over, 2)]


def policies(ours):
    return [
        {"scenario": "a rank slows", "policy": policy, "behind the best %": behind, "noise %": 1.0}
        for policy, behind in (("none", 60.0), ("amortised", ours), ("rcb", 0.0))
    ]


WEIGHTS = [
    {"cluster": cluster, "way": way, "gain %": 30.0, "noise %": 1.0}
    for cluster in ("static", "changing")
    for way in ("nothing", "static weights", "balancing", "both")
]
OBSERVE = ("c = 4, observe", "c = 4, none")
BLOCKS = {"blocks per rank": "c = 4", "noise %": 0.0}


@pytest.mark.row("002:7.7-2", "002:7.7-3", "002:7.7-5", "002:E6", "002:lab")
@pytest.mark.parametrize(
    ("part", "rows", "verdicts"),
    [
        ("overhead", [overhead(*OBSERVE, 2.1)], ["NOT KEPT"]),
        ("overhead", [overhead("c = 4, none", "c = 1, none", 7.9)], ["kept"]),
        ("overhead", [overhead(*OBSERVE, -1.0, noise=2.1)], ["not decidable"]),
        ("overhead", [overhead(*OBSERVE, -1.0, noise=float("nan"))], ["not decidable"]),
        ("blocks", [BLOCKS | {"more %": 8.1}], ["NOT KEPT"]),
        ("gain", [gain(2, 22.1, 25)], ["kept", "kept"]),
        ("gain", [gain(4, 32.9, 37.5, off=6.1)], ["NOT KEPT", "NOT KEPT"]),
        ("gain", [gain(2, 24.0, 25, noise=3.1)], ["not decidable", "kept"]),
        ("still", [still(1, -4.9), still(4, -5.1)], ["kept", "NOT KEPT"]),
        ("change", change(11), ["NOT KEPT"]),  # five looks after a change the optimum is near
        ("change", change(9), ["kept"]),
        ("policies", policies(4.9), ["kept"]),
        ("policies", policies(5.1), ["NOT KEPT"]),
        ("weights", WEIGHTS, ["NOT KEPT", "NOT KEPT", "kept"]),  # each is best somewhere
        ("lab", [{"cg s": seconds} for seconds in (10.0, 10.1, 8.9)], ["kept"]),
        ("lab", [{"cg s": seconds} for seconds in (10.0, 10.1, 9.2)], ["NOT KEPT"]),
    ],
)
def test_a_promise_is_kept_unless_it_is_missed_by_more_than_the_noise(benchmark, part, rows, verdicts):
    assert [promise.verdict for promise in benchmark.promises(part, rows)] == verdicts
    assert part in {*benchmark.GROUPS, "lab"}


@pytest.mark.row("002:7.7-3")
def test_the_best_gains_are_those_of_whole_blocks(benchmark):
    assert [benchmark.optimum(c) for c in (1, 2, 4)] == [0.0, 25.0, 37.5]


@pytest.mark.parametrize(("more", "status"), [(1.0, 0), (9.0, 1)])
def test_the_exit_status_says_whether_promises_are_kept(benchmark, monkeypatch, capsys, more, status):
    row = overhead("c = 4, observe", "c = 4, none", more)
    monkeypatch.setitem(benchmark.GROUPS, "overhead", lambda bench: [row])
    monkeypatch.setattr(sys, "argv", ["balance.py", "--only", "overhead"])
    assert benchmark.main() == status
    assert ("NOT KEPT" in capsys.readouterr().out) == bool(status)
