"""Ctrl-C is answered in one line, also while modules are imported."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from planted_profile import planted_profile

from fembench.base.errors import RunFailedError
from fembench.cli import doctor
from fembench.cli.main import main
from fembench.records.profile import load_profile

WHILE_IMPORTING = """
import os, signal, sys
from fembench.cli.entry import main
class Interrupts:
    def find_spec(name, *_):
        if name == "MODULE":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts)
sys.argv = ["fembench", "--help"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["fembench.cli.main", "fembench.base.errors", "fembench.cli.verbs"])
def test_an_interruption_while_the_command_is_loaded_is_one_line(module):
    line = [sys.executable, "-c", WHILE_IMPORTING.replace("MODULE", module)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fembench: interrupted\n")


def test_an_interruption_that_python_has_turned_into_another_error_is_one_line(monkeypatch, capsys):
    def interrupted(options):
        raise RuntimeError("Error calling __set_name__ on 'x'") from KeyboardInterrupt()

    monkeypatch.setattr(doctor, "run", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "fembench: interrupted\n")


@pytest.mark.parametrize(
    ("measuring", "words"),
    [
        ("run.launch", "run m1 --results {}/new/results"),
        ("characterize.measured_speeds", "characterize --ranks 2 -o {}/new/m.json"),
    ],
)
def test_an_interrupted_run_says_that_nothing_was_kept_and_leaves_nothing(
    measuring, words, monkeypatch, capsys, tmp_path
):
    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(f"fembench.workflows.{measuring}", interrupted)
    assert main(words.format(tmp_path).split()) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "fembench: interrupted; nothing was kept"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("there", [False, True])
def test_an_interrupted_network_leaves_the_speeds_in_a_new_file(there, monkeypatch, capsys, tmp_path):
    speeds, path = planted_profile([1.0, 0.5]), tmp_path / "new" / "m.json"
    monkeypatch.setattr("fembench.workflows.characterize.measured_speeds", lambda *_: speeds)
    monkeypatch.setattr("fembench.workflows.characterize.measure", Mock(side_effect=KeyboardInterrupt))
    if there:
        path.parent.mkdir()
        path.write_text("an earlier one")
    assert main(["characterize", "--ranks", "2", "--network", "-o", str(path)]) == 130
    said = capsys.readouterr().err.splitlines()[-1].removeprefix("fembench: interrupted; ")
    if there:
        assert (said, path.read_text()) == ("nothing was kept", "an earlier one")
    else:
        how = f"`fembench characterize --add-to {path}` adds the network of the same ranks"
        assert said == f"the speeds are kept in {path}: {how}"
        assert load_profile(path) == speeds


def test_a_network_that_fails_leaves_the_speeds(monkeypatch, capsys, tmp_path):
    path, failure = tmp_path / "m.json", RunFailedError("a rank crashed", "its words")
    monkeypatch.setattr("fembench.workflows.characterize.measured_speeds", lambda *_: planted_profile([1, 1]))
    monkeypatch.setattr("fembench.workflows.characterize.measure", Mock(side_effect=failure))
    assert main(["characterize", "--ranks", "2", "--network", "-o", str(path)]) == 1
    said = f"its words\nfembench: a rank crashed; the speeds are kept in {path}: "
    assert said in capsys.readouterr().err
    assert load_profile(path).network is None


@pytest.mark.parametrize("ended", [0, 1])
def test_an_interrupted_tuning_says_where_its_runs_are_and_that_there_are_no_weights(
    ended, monkeypatch, capsys, tmp_path
):
    if ended:
        (tmp_path / "runs").mkdir()
        shutil.copy(Path(__file__).parents[1] / "data" / "record.json", tmp_path / "runs")

    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("fembench.workflows.tune.launch", interrupted)
    words = ["--results", str(tmp_path), "-o", str(tmp_path / "new" / "w.json")]
    assert main(["tune", "m1", "--ranks", "2", *words]) == 130
    kept = f"; records of runs that ended are kept in {tmp_path}/runs" if ended else ""
    said = f"fembench: interrupted; no weights were written{kept}"
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert len(list(tmp_path.iterdir())) == ended


def test_an_interrupted_campaign_says_what_is_kept_and_how_it_goes_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("fembench.workflows.sweep_runs.execute", Mock(side_effect=KeyboardInterrupt))
    campaign = tmp_path / "c.toml"
    campaign.write_text('name = "c"\n[[cases]]\nmesh = "m1"\n')
    assert main(["sweep", str(campaign), "--results", str(tmp_path / "results")]) == 130
    said = "fembench: interrupted; 0 runs kept: start the sweep again to continue"
    assert capsys.readouterr().err.splitlines()[-1] == said


def test_an_error_without_an_interruption_stays_an_error(monkeypatch):
    def broken(options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(doctor, "run", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["doctor"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_whose_exception_python_dropped_ends_the_command_at_its_end(monkeypatch, capsys, number):
    class Dropping:
        def __del__(self):
            os.kill(os.getpid(), number)

    def interrupted(options):
        monkeypatch.setattr(sys, "unraisablehook", lambda dropped: None)
        Dropping()
        return 0

    monkeypatch.setattr(doctor, "run", interrupted)
    assert main(["doctor"]) == 128 + number
    assert capsys.readouterr().err in ("fembench: interrupted\n", "fembench: ended by SIGTERM\n")
