"""A rank that raises, dies or hangs ends its job, is named, and does not stop a campaign.

Meshes on which no phase is too short for a slow clock.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_job import cli

from fembench.records.store import load_failure, record_paths

FAULT = Path(__file__).parent / "fault"
pytestmark = pytest.mark.slow

CAMPAIGN = """
name = "broken"
timeout = {timeout}
[[cases]]
mesh = "m3"
ranks = [1, 3]
sets = 1
warmups = 0
"""


def sweep(tmp_path, fault, timeout=60):
    """A campaign of one good run (one rank) and one that the fault hits (three ranks)."""
    file = tmp_path / "broken.toml"
    file.write_text(CAMPAIGN.format(timeout=timeout))
    begin = time.monotonic()
    done = cli(
        "sweep",
        file,
        "--results",
        tmp_path / "out",
        "--no-report",
        PYTHONPATH=str(FAULT),
        FEMBENCH_TEST_FAULT=fault,
    )
    return done, time.monotonic() - begin


@pytest.mark.parametrize(
    ("fault", "kind", "word"),
    [("kill", "killed", "signal 9"), ("raise", "crashed", "raised ArithmeticError: planted in the loop")],
)
def test_a_rank_that_goes_is_named_and_the_campaign_goes_on(tmp_path, fault, kind, word):
    done, seconds = sweep(tmp_path, fault)
    assert done.returncode == 1
    assert "FAILED: rank 1 on " in done.stderr
    assert word in done.stderr
    assert seconds < 25  # both runs, with their start-up
    runs = tmp_path / "out" / "runs"
    assert len(record_paths(runs)) == 1
    (failed,) = runs.glob("*.failed.json")
    failure = load_failure(failed)
    assert (failure.kind, failure.case.placement.ranks) == (kind, 3)


def test_a_rank_that_hangs_is_ended_at_the_time_limit(tmp_path):
    done, seconds = sweep(tmp_path, "hang", timeout=8)
    assert "no result after 8 s" in done.stderr
    assert seconds < 35
    assert len(list((tmp_path / "out" / "runs").glob("*.failed.json"))) == 1


def test_a_failed_run_is_tried_again_and_a_good_one_is_not(tmp_path):
    sweep(tmp_path, "kill")
    (good,) = record_paths(tmp_path / "out")
    before = good.stat().st_mtime_ns
    done, _ = sweep(tmp_path, "")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 runs already have a record" in done.stderr
    assert good.stat().st_mtime_ns == before
    assert len(record_paths(tmp_path / "out")) == 2
    assert not list((tmp_path / "out" / "runs").glob("*.failed.json"))


def test_a_killed_campaign_ends_its_ranks_and_goes_on_where_it_stopped(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text('name = "long"\n[[cases]]\nmesh = ["m2", "m3", "s"]\nranks = [1, 2]\nsets = 2\n')
    out = tmp_path / "out"
    line = [sys.executable, "-m", "fembench", "sweep", str(file), "--results", str(out), "--no-report"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(record_paths(out)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = {path: path.read_bytes() for path in record_paths(out)}
    assert 2 <= len(kept) < 6
    deadline = time.monotonic() + 10
    while jobs_in(out) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not jobs_in(out)
    done = cli("sweep", file, "--results", out, "--no-report")
    assert done.returncode == 0, done.stderr
    assert len(record_paths(out)) == 6
    assert {path: path.read_bytes() for path in kept} == kept
    assert not list((out / "runs").glob(".*"))


def jobs_in(folder):
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and b"fembench.bench.rank" in words:
            found.append(entry)
    return found
