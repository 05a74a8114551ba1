"""Several jobs in one folder: ids, locks, and what remains of jobs that were ended."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest
from mpi_job import cli

from fembench.base.errors import InputError
from fembench.base.files import NAME, locked
from fembench.launch.scratch import occupied, reserved, shared_folder, writable
from fembench.records.store import record_paths

TINY = ("box:2x2x2", "--sets", "1", "--warmups", "0")


def test_ids_taken_at_once_differ(tmp_path):
    (tmp_path / "case-r2.json").write_text("{}")
    (tmp_path / "case-r4.failed.json").write_text("{}")
    meeting = Barrier(8)

    def take(_):
        with reserved(tmp_path, "case") as id:
            meeting.wait(10)
            return id

    with ThreadPoolExecutor(8) as pool:
        taken = sorted(pool.map(take, range(8)), key=lambda id: int(id[6:]))
    assert taken == [f"case-r{n}" for n in (1, 3, 5, 6, 7, 8, 9, 10)]
    assert not list(tmp_path.glob(".*"))


def test_a_job_works_where_its_file_goes_unless_each_host_has_its_own_of_that_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    private = tmp_path / "private"
    assert shared_folder(Path("out/m.json"), [str(private)]) == Path("out")
    assert shared_folder(private / "m.json", [str(private)]) == Path(".")
    assert shared_folder(private / "m.json", [str(tmp_path)]) == private  # this folder is no better
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    assert shared_folder(private / "m.json", [str(private)]) == private
    with pytest.raises(InputError, match="cannot write /proc/no"):
        shared_folder(Path("/proc/no/m.json"))


@pytest.mark.parametrize(
    ("flag", "said"), [(0, "Permission denied"), (os.ST_RDONLY, "Read-only file system")]
)
def test_a_folder_that_cannot_be_written_is_refused_with_the_reason(tmp_path, monkeypatch, flag, said):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=flag))
    with pytest.raises(InputError, match=f"^cannot write .*: {said}$"):
        writable(tmp_path)


def test_leftovers_go_when_nobody_is_there_and_stay_beside_a_live_job(tmp_path):
    def leave():
        (tmp_path / ".job-x1_y2z3a").mkdir(exist_ok=True)
        for name in (".case-r1.reserved", ".case-r1.json.ab12.json", ".bashrc", "case-r1.json"):
            (tmp_path / name).write_text("{}")

    leave()
    with occupied(tmp_path, shared=True):
        assert sorted(p.name for p in tmp_path.iterdir()) == [".bashrc", NAME, "case-r1.json"]
        leave()
        with occupied(tmp_path, shared=True):
            assert (tmp_path / ".job-x1_y2z3a").is_dir()
            assert (tmp_path / ".case-r1.reserved").exists()


@pytest.mark.parametrize(
    "verb",
    [
        ("sweep", "campaign.toml", "--results", "out"),
        ("tune", "m1", "--ranks", "2", "--results", "out"),
        ("run", "m1", "--results", "out"),
        ("study", "app", "pi", "--results", "out"),
        ("peers", "m1", "--results", "out/runs"),
        ("characterize", "-o", "out/runs/machine.json"),
        ("study", "thesis-003", "--results", "out/runs"),
        ("study", "thesis-004", "--results", "out/runs"),
    ],
)
def test_a_folder_in_use_is_refused_in_one_line_that_says_who_is_there(tmp_path, monkeypatch, refusal, verb):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaign.toml").write_text('name = "c"\n[[cases]]\nmesh = "m1"\n')
    (tmp_path / "out" / "runs").mkdir(parents=True)
    with locked(tmp_path / "out" / "runs"):
        line = refusal(*verb)
    assert f"out/runs is in use by pid {os.getpid()} on host " in line
    assert " since 20" in line


@pytest.mark.slow
def test_two_runs_at_once_leave_two_records(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: cli("run", *TINY, "--results", tmp_path), range(2)))
    assert all(d.returncode in (0, 1) for d in done), [d.stderr for d in done]  # 1: too short to be valid
    assert [p.stem[-3:] for p in record_paths(tmp_path)] == ["-r1", "-r2"]
    assert not list((tmp_path / "runs").glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "place", "number"),
    [
        (("run", *TINY, "--seconds", "100"), "runs", signal.SIGTERM),
        (("tune", *TINY, "--ranks", "2", "--seconds", "100"), "runs", signal.SIGINT),
        (("characterize", "-o", "machine.json"), ".", signal.SIGINT),
        (("nodes", "--rounds", "500"), ".", signal.SIGTERM),
    ],
)
def test_a_job_that_is_asked_to_end_leaves_nothing(tmp_path, verb, place, number):
    told = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    results = [] if verb[0] == "characterize" else ["--results", "."]
    line = [sys.executable, "-m", "fembench", *verb, *results]
    process = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    folder, deadline = tmp_path / place, time.monotonic() + 60
    while not list(folder.glob(".job-*/job.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, number)  # as a terminal does it
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number
    assert said.splitlines()[-1].startswith(f"fembench: {told}")
    assert not list(folder.glob(".*"))
