"""What slows hosts is said before a job begins: once, by every command that starts one."""

import itertools
from pathlib import Path

import msgspec
import pytest

import fembench
from fembench.base import progress
from fembench.base.errors import InputError
from fembench.launch import watch
from fembench.launch.job import STARTED, Started, StartedHost
from fembench.launch.serve import Met, started

N1, N2 = ("n1", "boot-1"), ("n2", "boot-2")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(watch, "_warned", set())
    monkeypatch.setattr(watch, "_jobs", itertools.count())
    monkeypatch.delenv("FEMBENCH_SYNTHETIC", raising=False)


def met(host, running=2, quota=0.0, load=2.0, cores=2):
    return Met(host, 1, cores, quota, load, running)


def warned(folder, *hosts):
    told = []
    (folder / STARTED).write_bytes(msgspec.json.encode(Started((), hosts)))
    with progress.telling(told.append):
        watch.warn(folder)
    return told


def test_a_warning_is_kept_for_a_call_that_tells_somebody(tmp_path, capfd):
    hosts = [StartedHost("n1", 1, 0.5, 0.0)]
    (tmp_path / STARTED).write_bytes(msgspec.json.encode(Started((), tuple(hosts))))
    with progress.telling(None):
        watch.warn(tmp_path)
    assert capfd.readouterr() == ("", "")
    assert len(warned(tmp_path, *hosts)) == 1


@pytest.mark.parametrize(
    ("running", "loads"),
    [
        ((2, 2, 1), [0.0, 0.0]),  # the load of a minute is that of this job's runs
        ((3, 2, 1), [0.0, 0.0]),  # a rank that looked while a daemon of the launcher ran
        ((3, 3, 1), [2.0, 0.0]),
        ((2, 2, 2), [0.0, 2.0]),
    ],
)
def test_a_load_counts_where_more_than_the_ranks_of_the_job_run_now(running, loads):
    found = started([met(host, n) for host, n in zip((N1, N1, N2), running)])
    assert [host.load_average for host in found.hosts] == loads
    assert [rank.host for rank in found.ranks] == ["n1", "n1", "n2"]


def test_hosts_of_one_machine_count_the_ranks_of_all_of_them():
    found = started([met(("a", "boot"), 2), met(("b", "boot"), 2)])
    assert [(host.name, host.load_average) for host in found.hosts] == [("a", 0.0), ("b", 0.0)]


def test_a_quota_and_a_load_are_said_once_each_and_healthy_hosts_not_at_all(tmp_path):
    slow, busy = StartedHost("n3", 1, 0.5, 0.0), StartedHost("n2", 2, 0.0, 1.5)
    said = warned(tmp_path, StartedHost("n1", 2, 0.0, 0.0), busy, slow)
    assert [line.split(": ")[1:3] for line in said] == [["CPU quota", "n3"], ["load", "n2"]]
    assert warned(tmp_path, busy, slow) == []
    assert len(warned(tmp_path, StartedHost("n4", 1, 0.5, 0.0))) == 1


def test_the_load_that_earlier_jobs_of_a_command_left_is_not_that_of_others(tmp_path):
    assert warned(tmp_path, StartedHost("n1", 2, 0.0, 0.0)) == []
    assert warned(tmp_path, StartedHost("n1", 2, 0.0, 1.5)) == []
    assert len(warned(tmp_path, StartedHost("n1", 1, 0.5, 1.5))) == 1


def test_the_hosts_of_a_lab_are_slowed_on_purpose(tmp_path, monkeypatch):
    monkeypatch.setenv("FEMBENCH_SYNTHETIC", "lab")
    assert warned(tmp_path, StartedHost("n3", 1, 0.5, 0.0)) == []


def test_a_job_that_begins_warns_and_one_that_only_looks_does_not(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "slowed", lambda hosts: iter([_found(hosts)]))
    assert list(fembench.doctor())
    told = []
    fembench.run("m1", ranks=1, iterations=1, sets=1, tell=told.append)
    assert [line for line in told if line.startswith("note")] == ["note: load: planted: slow: wait"]
    assert capfd.readouterr() == ("", "")


def test_every_job_warns_but_those_that_look_at_hosts():
    paths = Path(fembench.__file__).parent.rglob("*.py")
    assert {path.name for path in paths if "warn=False" in path.read_text()} == {"probe.py", "load_now.py"}


def _found(hosts):
    from fembench.host.finding import Finding

    assert len(hosts) == 1
    return Finding("load", "problem", "planted: slow", "wait")


def test_a_job_that_its_ranks_refuse_says_why_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "slowed", lambda hosts: iter([_found(hosts)]))
    told = []
    monkeypatch.setattr("fembench.launch.watch.ACCEPTED", 60.0)  # this machine may be slow
    with pytest.raises(InputError, match=r"missing\.msh"):
        fembench.run("missing.msh", ranks=1, iterations=1, sets=1, tell=told.append)
    assert told == []
