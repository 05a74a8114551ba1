"""`fembench watch`: how a campaign stands, from what it leaves in its folder."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from planted_records import planted

import fembench
from fembench.base.files import Owner
from fembench.base.progress import telling, working
from fembench.cli.main import main
from fembench.records.store import load, record_paths, save
from fembench.workflows import sweep_state
from fembench.workflows.sweep_state import DONE, STATE, Counts, SweepState, read_state, standing, unfinished

COUNTS = Counts(runs=20, verdicts={"VALID": 2, "PROVISIONAL": 1}, failed=1, left=754.0)
NOBODY = 2**22 + 1  # a process that cannot be


@pytest.fixture
def planted_state(tmp_path, monkeypatch):
    """A function: a folder with a campaign that was in this state some seconds ago."""
    monkeypatch.setattr(sweep_state, "AGAIN", 0.0)
    (tmp_path / "runs").mkdir()

    def plant(ago=1.0, pid=None, host=None, **changes):
        when = datetime.now(timezone.utc) - timedelta(seconds=ago)
        owner = Owner(pid or os.getpid(), host or os.uname().nodename, "2026-01-02T03:04:05+00:00")
        state = SweepState(
            owner=owner,
            written=when.isoformat(),
            doing="sweep: 4/20: m · sym · 2 ranks",
            seconds=65.0,
            stage="set 3 of about 12, 0:21 left; residual 1.2e-07",
            counts=COUNTS,
        )
        (tmp_path / STATE).write_bytes(msgspec.json.encode(msgspec.structs.replace(state, **changes)))
        return str(tmp_path)

    return plant


def once(capsys, folder):
    """(exit status, lines) of one look."""
    capsys.readouterr()
    status = main(["watch", folder, "--once"])
    return status, capsys.readouterr().out.splitlines()


def test_a_running_campaign_shows_its_run_its_sets_its_verdicts_and_the_time_left(planted_state, capsys):
    assert once(capsys, planted_state()) == (
        0,
        [
            "sweep: 4/20: m · sym · 2 ranks … 1:05, set 3 of about 12, 0:21 left; residual 1.2e-07.",
            "3 of 20 runs done: 2 VALID, 1 PROVISIONAL, 1 failed; about 12:34 left.",
            "No run was disturbed, as far as was measured.",
        ],
    )


def test_a_disturbance_is_shown(planted_state, capsys):
    line = "DISTURBED: others used up to 57 % of the CPU time on n1: times may be far off"
    counts = msgspec.structs.replace(COUNTS, disturbed=line)
    assert once(capsys, planted_state(counts=counts))[1][2] == line


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (DONE, 0, "The campaign is done."),
        ("ended by SIGTERM", 1, "The campaign was stopped: ended by SIGTERM."),
    ],
)
def test_a_campaign_that_has_ended_says_how(planted_state, capsys, end, status, said):
    found, lines = once(capsys, planted_state(ago=9000, pid=NOBODY, end=end))
    assert (found, lines[0]) == (status, said)
    assert lines[1] == "3 of 20 runs done: 2 VALID, 1 PROVISIONAL, 1 failed."


def test_a_killed_campaign_is_known_at_once_by_its_process(planted_state, capsys):
    status, lines = once(capsys, planted_state(ago=3, pid=NOBODY))
    assert status == 1
    assert lines[0].startswith("Killed, or cut off: no news since 20")
    assert lines[0].endswith(f"(0:03 ago), from pid {NOBODY} on host {os.uname().nodename}.")
    assert lines[1].startswith("It was doing this: sweep: 4/20: m · sym · 2 ranks … 1:05, set 3")


def test_one_on_another_host_is_known_by_its_silence(planted_state, capsys):
    assert once(capsys, planted_state(ago=20, host="elsewhere", pid=NOBODY))[0] == 0
    status, lines = once(capsys, planted_state(ago=40, host="elsewhere", pid=NOBODY))
    assert status == 1
    assert "(0:40 ago)" in lines[0]


def test_a_host_whose_clock_is_behind_is_given_time_for_news(planted_state, monkeypatch):
    monkeypatch.setattr(sweep_state, "AGAIN", 10.0)
    monkeypatch.setattr(sweep_state, "EVERY", 0.04)
    folder = planted_state(ago=400, host="elsewhere")
    threading.Timer(0.05, planted_state, (399,), {"host": "elsewhere"}).start()
    assert main(["watch", folder, "--once"]) == 0


def test_a_folder_without_a_campaign_is_refused_in_one_line(tmp_path, refusal):
    expected = "expected the results folder of a sweep\n"
    assert refusal("watch", str(tmp_path)) == f"fembench: {tmp_path}: no campaign has run here; {expected}"
    gone = tmp_path / "gone"
    assert refusal("watch", str(gone)) == f"fembench: {gone}: no such folder; {expected}"


def test_a_state_that_is_none_is_refused_in_one_line(planted_state, tmp_path, refusal):
    folder = planted_state()
    (tmp_path / STATE).write_text('{"schema": 1, "counts": 7}')
    assert "expected" in refusal("watch", folder)


def test_json_has_the_state_and_the_runs_that_are_done(planted_state, tmp_path, answer):
    folder = planted_state()
    save(planted((1.0, 1.0)), tmp_path / "runs")
    found = answer("watch", folder)
    assert found["running"]
    assert found["counts"]["verdicts"] == {"VALID": 2, "PROVISIONAL": 1}
    assert [(row["mesh"], row["ranks"], row["runs"]) for row in found["cases"]] == [("m1", 2, 1)]


def test_a_watcher_shows_every_run_once_and_stays_until_the_end(planted_state, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sweep_state, "EVERY", 0.02)
    folder = planted_state()
    save(planted((1.0,), id="first"), tmp_path / "runs")
    steps = iter(
        [
            lambda: save(planted((1.0, 1.0), id="second"), tmp_path / "runs"),
            lambda: (tmp_path / "runs" / "third.json").write_text('{"half":'),  # passed over
            lambda: planted_state(end=DONE),
        ]
    )
    monkeypatch.setattr(time, "sleep", lambda _: next(steps)())
    assert main(["watch", folder]) == 0
    told = capsys.readouterr()
    assert told.out.count("| m1") == 1  # the table of those done before
    assert told.err.count("2 ranks: 800 equations") == 1
    assert "third" not in told.err + told.out
    assert told.out.splitlines()[-3] == "The campaign is done."


def test_a_watcher_whose_reader_has_gone_ends(planted_state, monkeypatch, capsys):
    looks = iter([False, True])
    monkeypatch.setattr("fembench.base.terminal.reader_left", lambda: next(looks))
    monkeypatch.setattr(sweep_state, "EVERY", 0.0)
    assert main(["watch", planted_state()]) == 0
    assert next(looks, "none") == "none"


# ---- a report of a campaign that is not done


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({}, "is still running:"),
        ({"ago": 9000, "pid": NOBODY, "end": "ended by SIGTERM"}, "was stopped: ended by SIGTERM;"),
        ({"pid": NOBODY}, r"is not done: no news since 20\S+ \S+;"),
        ({"ago": 40, "host": "elsewhere"}, r"is not done: no news since 20\S+ \S+;"),
    ],
)
def test_a_report_begins_with_how_many_runs_a_campaign_lacks_that_is_not_done(planted_state, changes, how):
    (said,) = unfinished(Path(planted_state(**changes)))
    assert re.fullmatch(f"The campaign {how} 3 of 20 runs done\\.", said)


def test_a_report_says_so_on_the_terminal_and_on_its_page(planted_state, tmp_path, capsys):
    folder = planted_state(end="interrupted")
    save(planted((1.0, 1.0)), tmp_path / "runs")
    assert main(["report", folder]) == 0
    said = "The campaign was stopped: interrupted; 3 of 20 runs done."
    assert capsys.readouterr().out.splitlines()[0] == said
    for name in ("index.html", "report.md"):
        assert said in (tmp_path / "report" / name).read_text(encoding="utf-8"), name
    assert said in fembench.page(folder).read_text(encoding="utf-8")


def test_a_report_says_nothing_of_a_campaign_that_is_done_or_not_known(planted_state, tmp_path):
    assert unfinished(tmp_path) == []
    assert unfinished(Path(planted_state(end=DONE))) == []
    (tmp_path / STATE).write_text("{")
    assert unfinished(tmp_path) == []


# ---- the file


def test_the_file_is_small_and_says_what_the_process_does(tmp_path):
    (tmp_path / "runs").mkdir()
    with telling(None), standing(tmp_path) as kept, working("sweep: 1/2: m1") as now:
        now.tell("set 3 of about 12")
        kept.tell(Counts(runs=2, verdicts={"VALID": 1}, left=60.0))
        state = read_state(tmp_path / STATE)
        assert (state.doing, state.stage, state.end) == ("sweep: 1/2: m1", "set 3 of about 12", "")
        assert state.counts.verdicts == {"VALID": 1}
        assert 59.0 < state.counts.left <= 60.0
        assert (tmp_path / STATE).stat().st_size < 600
    assert read_state(tmp_path / STATE).end == DONE
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [STATE.name]


def test_a_campaign_that_has_begun_nothing_says_that_it_starts(tmp_path):
    (tmp_path / "runs").mkdir()
    with standing(tmp_path):
        assert read_state(tmp_path / STATE).doing == "sweep: starting"


def test_the_file_is_replaced_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_state, "EVERY", 0.01)
    (tmp_path / "runs").mkdir()
    with standing(tmp_path), working("one", patience=60) as now:
        now.text = "other"
        end = time.monotonic() + 5
        while read_state(tmp_path / STATE).doing != "other" and time.monotonic() < end:
            time.sleep(0.005)
        assert read_state(tmp_path / STATE).doing == "other"


@pytest.mark.parametrize(
    ("error", "said"), [(KeyboardInterrupt(), "interrupted"), (RuntimeError("no\nspace"), "no space")]
)
def test_the_file_says_what_stopped_the_campaign(tmp_path, error, said):
    (tmp_path / "runs").mkdir()
    with pytest.raises(type(error)), standing(tmp_path):
        raise error
    assert read_state(tmp_path / STATE).end == said


def test_a_folder_that_cannot_be_written_stops_no_campaign(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with standing(tmp_path) as kept:
        kept.write()
    assert (tmp_path / "runs").read_text() == "a file"


# ---- a campaign that runs

CAMPAIGN = """name = "c"
repetitions = 4
[[cases]]
mesh = "m1"
sets = 100
"""


@pytest.fixture
def running(tmp_path):
    """(folder, process) of a campaign of four runs, when its first record is there."""
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    folder = tmp_path / "results"
    line = [sys.executable, "-m", "fembench", "sweep", "c.toml", "--results", str(folder), "--no-report"]
    started = subprocess.Popen(
        line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    end = time.monotonic() + 90
    while not list(folder.glob("runs/[!.]*.json")) and started.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    yield folder, started
    started.kill()
    started.communicate()


@pytest.fixture
def watcher(running):
    """A function: `fembench watch` of this campaign, as a process."""
    line = [sys.executable, "-m", "fembench", "watch", str(running[0])]
    with contextlib.ExitStack() as ends:

        def start():
            began = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            ends.callback(began.communicate)
            ends.callback(began.kill)
            return began

        yield start


def seen(folder):
    """(exit status, answer) of a look from another shell."""
    line = [sys.executable, "-m", "fembench", "watch", str(folder), "--json"]
    done = subprocess.run(line, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
def test_a_watcher_that_is_killed_disturbs_no_campaign_and_a_campaign_that_is_killed_ends_its_watcher(
    running, watcher, tmp_path
):
    folder, campaign = running
    stays, other = watcher(), watcher()
    assert other.stdout.readline().startswith("sweep: ")
    other.kill()
    other.wait()
    status, found = seen(folder)
    assert (status, found["running"], found["counts"]["runs"]) == (0, True, 4)
    assert found["doing"].startswith("sweep: ")
    assert stays.stdout.readline().startswith("sweep: ")
    os.kill(campaign.pid, signal.SIGKILL)
    campaign.wait()
    told, errors = stays.communicate(timeout=30)
    assert (stays.returncode, "Traceback" in errors) == (1, False), errors
    assert "Killed, or cut off: no news since" in told
    again = [sys.executable, "-m", "fembench", "sweep", "c.toml", "--results", str(folder), "--no-report"]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    assert len(record_paths(folder)) == 4
    status, found = seen(folder)
    assert (status, found["end"], sum(found["counts"]["verdicts"].values())) == (0, DONE, 4)
    assert found["counts"]["verdicts"].keys() == {load(path).verdict.status for path in record_paths(folder)}
