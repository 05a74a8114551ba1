"""A rank that raises, dies or hangs ends its job, is named, and does not stop a campaign.

Meshes on which no phase is too short for a slow clock.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_job import cli, measured

from fembench.records.store import load_failure, record_paths

FAULT = Path(__file__).parent / "fault"
pytestmark = pytest.mark.slow

ONE_RANK = '[[cases]]\nmesh = "m3"\nsets = 1\nwarmups = 0\n'


def three_ranks(fault):
    """A case whose label names a fault, for `fault/sitecustomize.py`."""
    return f'{ONE_RANK}ranks = 3\nlabel = "{fault}"\n'


def sweep(folder, *cases, timeout=60, **variables):
    """A campaign of these cases; one that hangs meets the time limit of `cli`."""
    file = folder / "broken.toml"
    file.write_text(f'name = "broken"\ntimeout = {timeout}\n' + "".join(cases))
    return cli("sweep", file, "--results", folder / "out", "--no-report", **variables)


FAULTY = {"PYTHONPATH": str(FAULT)}
CASES = (ONE_RANK, three_ranks("kill"), three_ranks("raise"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """(folder, process) of a campaign of one good run and two that a fault hits."""
    folder = tmp_path_factory.mktemp("broken")
    return folder, sweep(folder, *CASES, **FAULTY)


@pytest.mark.parametrize(
    ("fault", "kind", "word"),
    [("kill", "killed", "signal 9"), ("raise", "crashed", "raised ArithmeticError: planted in the loop")],
)
def test_a_rank_that_goes_is_named_and_the_campaign_goes_on(broken, fault, kind, word):
    folder, done = broken
    assert done.returncode == 1, done.stderr
    assert len(record_paths(folder / "out")) == 1
    failures = [load_failure(path) for path in (folder / "out" / "runs").glob("*.failed.json")]
    assert len(failures) == 2  # whichever came first, the other was run
    (failure,) = (f for f in failures if f.case.output.label == fault)
    assert (failure.kind, failure.case.placement.ranks) == (kind, 3), failure.message
    lines = [line for line in done.stderr.splitlines() if "FAILED: rank 1 on " in line and word in line]
    assert len(lines) == 1, (done.stderr, [(each.message, each.output) for each in failures])
    assert failure.message in lines[0]


def test_a_rank_that_dies_before_mpi_is_initialised_is_named(tmp_path):
    done = sweep(tmp_path, three_ranks("early"), **FAULTY)
    assert "FAILED: rank 1 on " in done.stderr  # and not that it took too long


def test_a_rank_that_hangs_is_ended_at_the_time_limit(tmp_path):
    done = sweep(tmp_path, three_ranks("hang"), timeout=4, **FAULTY)
    assert "no result after 4 s" in done.stderr
    assert len(list((tmp_path / "out" / "runs").glob("*.failed.json"))) == 1


def test_a_failed_run_is_tried_again_and_a_good_one_is_not(broken, tmp_path):
    shutil.copytree(broken[0] / "out", tmp_path / "out")
    (good,) = record_paths(tmp_path / "out")
    before = good.stat().st_mtime_ns
    done = sweep(tmp_path, *CASES)
    assert measured(done), done.stderr
    assert "1 of 3 runs already have a record" in done.stderr
    assert good.stat().st_mtime_ns == before
    assert len(record_paths(tmp_path / "out")) == 3
    assert not list((tmp_path / "out" / "runs").glob("*.failed.json"))


def test_a_killed_campaign_ends_its_ranks_and_goes_on_where_it_stopped(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text('name = "long"\n[[cases]]\nmesh = "m2"\nranks = [1, 2, 3]\nsets = 2\n')
    out = tmp_path / "out"
    line = [sys.executable, "-m", "fembench", "sweep", str(file), "--results", str(out), "--no-report"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (record_paths(out) and jobs_in(out)) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = {path: path.read_bytes() for path in record_paths(out)}
    assert 1 <= len(kept) < 3
    deadline = time.monotonic() + 30
    while jobs_in(out) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not jobs_in(out)
    done = cli("sweep", file, "--results", out, "--no-report")
    assert measured(done), done.stderr
    assert len(record_paths(out)) == 3
    assert {path: path.read_bytes() for path in kept} == kept
    assert [path.name for path in (out / "runs").glob(".*")] == [".progress.json"]  # for `watch`


def jobs_in(folder):
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and b"fembench.bench.case_run" in words:
            found.append(entry)
    return found
