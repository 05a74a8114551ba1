"""benchmarks/messages.py on planted scores."""

from pathlib import Path

import pytest

from fembench_studies.programs.compared_messages import ComparedTime

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


@pytest.fixture
def messages(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import messages

    return messages


def run(messages, error, reason=""):
    score = ComparedTime("makespan", 1.0, 1.0 + error, 1.0, 0.99, 1.01, reason)
    return messages.Judged("ring", score, score._replace(what="messages", limit=15.0))


def printed(capsys):
    """The cells of the two promises."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[-2:]]


@pytest.mark.parametrize(
    ("errors", "status"), [((0.04, -0.04), 0), ((0.02, 0.07), 0), ((0.02, -0.09), 1), ((-0.08, 0.08), 1)]
)
def test_the_mean_of_absolute_errors_is_at_most_the_mean_limit(messages, errors, status, capsys):
    assert messages.judge([run(messages, e) for e in errors]) == status
    mean = 100 * sum(map(abs, errors)) / len(errors)
    assert printed(capsys) == [
        ["run times: mean │error│", "<= 5.0%", f"{mean:.1f}%", "NOT KEPT" if status else "kept"],
        ["time due to messages: mean │error│", "<= 15.0%", f"{mean:.1f}%", "kept"],
    ]


def test_the_time_due_to_messages_is_judged_apart(messages, capsys):
    exact = run(messages, 0.0)
    assert messages.judge([exact._replace(messages=run(messages, 0.16).messages)]) == 1
    assert [row[-1] for row in printed(capsys)] == ["kept", "NOT KEPT"]


def test_a_run_that_tests_nothing_fails(messages, capsys):
    assert messages.judge([run(messages, 0.0), run(messages, 0.0, "too noisy")]) == 1
    assert "INVALID: 1 of 2 runs" in capsys.readouterr().out


def test_links_have_three_classes(messages):
    rates = [line for line in messages.HOSTS.splitlines() if line.startswith("rate")]
    assert messages.HOSTS.count("[[hosts]]") == 4
    assert len(set(rates)) == 2  # and none
