"""fembench characterize --operations: samples of operations and messages, a history, a machine file."""

import pytest

from fembench.base.config import read_json
from fembench.base.errors import InputError
from fembench.host.others import UNKNOWN, OthersShare
from fembench_studies.pamela import operations_rank as operations
from fembench_studies.pamela.history import History
from fembench_studies.pamela.machine_model import load
from fembench_studies.pamela.operations_job import OperationsJob
from fembench_studies.pamela.operations_rank import disturbed


@pytest.mark.row("000:F8")
@pytest.mark.parametrize(
    ("percent", "uncertain", "busy"), [(0.0, 4.0, False), (13.0, 4.0, False), (15.0, 4.0, True)]
)
def test_hosts_are_idle_unless_others_certainly_use_a_tenth_of_one(percent, uncertain, busy):
    assert disturbed([OthersShare(0.0, 1.0), OthersShare(percent, uncertain)]) == busy


def test_hosts_that_do_not_report_the_use_by_others_cannot_be_called_idle():
    with pytest.raises(InputError, match="does not report"):
        disturbed([OthersShare(0.0, 1.0), UNKNOWN])


@pytest.mark.row("000:F7", "000:F11")
def test_every_run_adds_samples_and_the_oldest_are_dropped(tmp_path, output):
    file = tmp_path / "park.txt"
    words = ["characterize", "--operations", "--quick", "--ranks", "2", "-o", str(file)]
    assert "| sum_double" in output(*words, "--keep", "5", "--times", "2")
    history = read_json(tmp_path / "park.samples.json", History)
    assert {len(s.samples) for s in history.series} == {5}
    model = load(file)
    assert model.workers == (1,)
    assert 1e-11 < model.cost("sum_double", 1).low < model.cost("div_double", 1).high < 1e-6
    assert 0 < model.message(1, 0, 64).low < model.message(1, 0, 524288).high < 1


@pytest.mark.row("000:F9/10")
@pytest.mark.mpi
@pytest.mark.parametrize("idle", [False, True])
def test_samples_of_all_ranks_are_gathered_unless_the_hosts_were_disturbed(comm, monkeypatch, idle):
    monkeypatch.setattr(operations, "disturbed", lambda shares: True)
    monkeypatch.setattr(operations, "SECONDS", 1e-5)
    monkeypatch.setattr(operations, "PAUSE", 0.0)
    job = OperationsJob(ranks=comm.size, rounds=2, idle=idle, patience=1e-9 if idle else 60.0)
    found = operations.operations(comm, job, lambda text: None)
    assert (found is None) == (comm.rank > 0)
    if found is not None:
        assert found.discarded == int(idle)
        count = 0 if idle else 2
        assert [len(row) for row in found.operations["mpy_long"]] == [count] * comm.size
        assert [len(row) for row in found.messages[64]] == [0, *[count] * (comm.size - 1)]
        assert len(found.machines) == len(set(found.machines)) == comm.size


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--operations"], "expected -o FILE"),
        (["--idle"], "--idle without --operations"),
        (["--operations", "--network", "-o", "x"], "cannot be combined with --network"),
        (["--operations", "--dilate", "2", "-o", "x"], "cannot be combined with --dilate"),
    ],
)
def test_options_that_do_not_fit_together_are_named(words, message, refusal):
    assert message in refusal("characterize", *words)
