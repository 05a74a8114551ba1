"""Weights that should not be used are used with a warning, before anything runs."""

import msgspec
import pytest
from planted_records import FROZEN

from fembench.cli.main import main
from fembench.launch.run_job import JobEnd
from fembench.records.store import load
from fembench.records.weights import save_weights
from fembench.weights.make import by_time
from fembench.weights.stale import doubts

DISTURBED = "DISTURBED: others used up to 57 % of the CPU time on n1"
EMULATED = "SYNTHETIC ranks (emulated speeds 1,0.5)"
UNDECIDED = "tune reached no verdict on these weights: every pair of runs was DISTURBED"
OTHERS = "SYNTHETIC ranks (emulated speeds 0.5,1)"


def weights(synthetic="", rule="time", notes=()):
    """Weights of two ranks."""
    return msgspec.structs.replace(by_time([load(FROZEN)]), synthetic=synthetic, rule=rule, notes=notes)


def test_weights_of_ranks_at_these_speeds_or_given_by_hand_are_not_in_doubt():
    same = "emulated speeds 1,0.5"
    assert doubts(weights(same), same) == doubts(weights(), "") == doubts(weights(rule="given"), same) == []


@pytest.fixture
def warned(tmp_path, monkeypatch, capsys):
    """A function: the warnings of a command that uses these weights; no rank is started."""
    ended = JobEnd(None, "killed", "the reason", 1, "")
    for caller in ("workflows.run", "bench.campaign"):
        monkeypatch.setattr(f"fembench.{caller}.launch", lambda *_, **__: ended)
    monkeypatch.chdir(tmp_path)

    def lines(used, *words):
        save_weights(used, "w.json")
        main([*words, "--weights", "w.json"])
        told = capsys.readouterr().err.splitlines()
        return [line.removeprefix("fembench: warning: ") for line in told if "warning: " in line]

    return lines


@pytest.mark.parametrize(
    ("used", "options", "said"),
    [
        (weights("emulated speeds 1,0.5"), "", [f"the weights are of {EMULATED}, but used for real ranks"]),
        (
            weights("emulated speeds 1,0.5"),
            "--emulate 0.5,1",
            [f"the weights are of {EMULATED}, but used for {OTHERS}"],
        ),
        (weights("emulated speeds 1,0.5"), "--emulate 1,0.5", []),
        (weights(), "--emulate 0.5,1", [f"the weights are of real ranks, but used for {OTHERS}"]),
        (weights(notes=(DISTURBED, "speeds at 9 cells")), "", [f"weights: {DISTURBED}"]),
        (weights(notes=(UNDECIDED, DISTURBED)), "", [UNDECIDED, f"weights: {DISTURBED}"]),
    ],
)
def test_a_run_says_why_its_weights_should_not_be_used(warned, used, options, said):
    assert warned(used, *f"run m1 --ranks 2 {options}".split()) == said


def test_a_campaign_says_it_once(warned, tmp_path):
    text = 'name = "c"\n[[cases]]\nmesh = ["m1", "m2"]\nranks = [1, 2]\n'
    (tmp_path / "c.toml").write_text(text)
    used = weights("emulated speeds 1,0.5", notes=(DISTURBED,))
    said = [f"weights: {DISTURBED}", f"the weights are of {EMULATED}, but used for real ranks"]
    assert warned(used, "sweep", "c.toml", "--results", "out", "--no-report") == said


def test_an_export_for_another_program_says_it_too(tmp_path, capsys):
    save_weights(weights("emulated speeds 1,0.5"), tmp_path / "w.json")
    assert main(["weights", str(tmp_path / "w.json"), "--export", "shares"]) == 0
    said = f"fembench: warning: the weights are of {EMULATED}, but used for real ranks\n"
    assert capsys.readouterr().err == said
