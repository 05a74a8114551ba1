"""How benchmarks end: every promise with its verdict, and an exit status."""

import json

import pytest


@pytest.fixture
def commands(from_benchmarks):
    return from_benchmarks("commands")


def test_every_promise_is_printed_with_its_limit_what_was_found_and_the_verdict(commands, capsys):
    rows = [commands.at_most("error", 0.02, 0.05), commands.at_least("tau", 0.8, 0.9, ".2f")]
    assert commands.end([*rows, commands.Promise("time", "3 s", "")]) == 1
    lines = capsys.readouterr().out.split("\n")[3:]
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line] == [
        ["error", "<= 5.0%", "2.0%", "kept"],
        ["tau", ">= 0.90", "0.80", "NOT KEPT"],
        ["time", "", "3 s", "stated"],
    ]


def test_the_exit_status_is_0_only_if_every_promise_is_kept(commands):
    good, bad = commands.at_most("a", 1.0, 1.0), commands.at_most("b", float("nan"), 1.0)
    stated, unknown = good._replace(limit=""), good._replace(undecided="not measured")
    assert [commands.end(rows) for rows in ([good], [good, stated])] == [0, 0]
    assert [commands.end(rows) for rows in ([], [good, bad], [good, unknown])] == [1, 1, 1]


def test_nothing_is_judged_of_measurements_that_test_nothing(commands, capsys, tmp_path):
    kept, stated = commands.at_least("a", 2, 1, "d"), commands.Promise("b", "3", "")
    assert commands.end([kept, stated], "too noisy", file=tmp_path / "found.json", runs=[5]) == 1
    assert "INVALID: too noisy" in capsys.readouterr().out
    tree = json.loads((tmp_path / "found.json").read_text())
    assert [promise["verdict"] for promise in tree["promises"]] == ["INVALID", "stated"]
    assert tree["runs"] == [5]


def planted(commands, monkeypatch, own):
    """What is said of ten seconds in which the processors worked for one, a part `own` for the benchmark."""
    passed = 10.0 * len(commands.host.affinity())
    ends = (passed / 10, 0.0, 0.0, 0.9 * passed, 0.0, 0.0, 0.0, 0.0)
    looks = iter([(0.0, (0.0,) * 8, {"own": 0.0}), (10.0, ends, {"own": own * passed})])
    monkeypatch.setattr(commands, "_processors", lambda: commands.CpuTimes(*next(looks)))
    return commands.disturbance()()


def test_work_of_others_during_a_benchmark_is_a_reason_not_to_judge(commands, monkeypatch):
    assert planted(commands, monkeypatch, 0.095) == ""
    said = "others used 4.0 % of the processors' time (at most 2 %): repeat without them"
    assert planted(commands, monkeypatch, 0.06) == said


def test_the_commands_that_a_benchmark_ran_are_not_others(commands):
    before = commands._processors().own["own"]
    commands.fembench("--version", capture=True)
    assert commands._processors().own["own"] > before
