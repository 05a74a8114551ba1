"""Balanced runs as a user types them: records, drain, a rank that dies while blocks move."""

import time
from pathlib import Path

import pytest
from mpi_job import cli, measured

from fembench.records.store import load, load_failure, record_paths

pytestmark = pytest.mark.slow
FAULT = Path(__file__).parent / "fault"


BASE = ["run", "m1", "--ranks", "2", "--blocks-per-rank", "2", "--trace-iterations", "0"]
BASE += ["--warmups", "1", "--sets", "2"]


def run(tmp_path, *options, **variables):
    return cli(*BASE, *options, "--results", tmp_path, **variables)


def test_a_drained_run_ends_correctly_and_its_record_says_so(tmp_path):
    done = run(tmp_path, "--balance", "none", "--drain", "0@20", "--hot-spot", "40:0-1x3")
    assert measured(done), done.stderr
    record = load(record_paths(tmp_path)[0])
    assert record.verdict.status == "PROVISIONAL"
    assert "hot spot 40:0-1x3" in record.environment.synthetic
    assert len(record.balance.ledgers) == 3  # warm-up and two sets, each from the start
    for ledger in record.balance.ledgers:
        assert ledger.owner == (1, 1, 1, 1)
        assert [look.iteration for look in ledger.looks if look.moves] == [20]
        assert sum(look.bytes for look in ledger.looks) == sum(record.balance.block_bytes[:2])
    assert "Rebalancing: cost and gain" in done.stdout
    assert record.verification.copies_identical


@pytest.mark.row("002:F18")
def test_emulated_changes_are_labelled(tmp_path):
    emulated = ("--emulate", "1,1", "--emulate-change", "40:1,0.5", "--dilate", 2)
    done = run(tmp_path, "--balance", "observe", *emulated)
    assert measured(done), done.stderr
    record = load(record_paths(tmp_path)[0])
    assert "changing 40:1,0.5" in record.environment.synthetic
    assert not any(look.moves for ledger in record.balance.ledgers for look in ledger.looks)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--drain", "1@5"), "expected a policy"),
        (("--balance", "amortised", "--drain", "7@5"), "rank 7; expected ranks below 2"),
        (("--balance", "amortised", "--blocks-per-rank", 60), "expected 1 to 52"),
        (("--balance", "amortised", "--emulate-change", "5:1,1,1"), "3 speeds for 2 ranks"),
        (("--balance", "amortised", "--hot-spot", "5:4x2"), "expected blocks from 0 to 3"),
        (("--balance", "amortised", "--link-costs", "none.json"), "none.json"),
        (("--hot-spot", "5:1x2"), "expected a policy"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_2(tmp_path, refusal, options, word):
    assert word in refusal(*BASE, *map(str, options), "--results", str(tmp_path))


@pytest.mark.row("002:kill")
def test_a_rank_killed_while_blocks_move_ends_the_job_and_is_recorded(tmp_path):
    begin = time.monotonic()
    done = run(tmp_path, "--balance", "none", "--drain", "0@20", PYTHONPATH=str(FAULT))
    assert time.monotonic() - begin < 20  # start-up included
    assert done.returncode == 1
    assert "rank 1" in done.stderr
    assert "signal 9" in done.stderr
    (failed,) = (tmp_path / "runs").iterdir()  # nothing else: no record, no folder of the job
    failure = load_failure(failed)
    assert (failure.kind, failure.case.balancing.drain) == ("killed", "0@20")
