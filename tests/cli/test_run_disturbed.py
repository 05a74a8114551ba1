"""A run or a campaign beside other work opens with who took the CPU time."""

import dataclasses
import json

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_records import planted

from fembench.cli.main import main
from fembench.launch.run_job import JobEnd

LOUD = {"others_percent": 75.0, "others_resolution": 0.2}


def ended_on(**facts):
    """The end of a job with a planted record whose hosts have these facts."""
    return JobEnd(on_hosts_with(planted([1.0]), **facts), "", "", 0, "")


@pytest.mark.parametrize(
    ("facts", "disturbed"),
    [(LOUD, True), ({}, False), ({"throttled_percent": 60.0, "cpu_quota": 0.5}, False)],
)
def test_a_run_opens_with_the_cause_if_foreign_work_took_cpu_time(
    tmp_path, capsys, output, monkeypatch, facts, disturbed
):
    ended = ended_on(**facts)
    monkeypatch.setattr("fembench.workflows.run.launch", lambda case, **options: ended)
    words = ["run", "m1", "--ranks", "1", "--results", str(tmp_path)]
    opening, *_, end = output(*words).splitlines()
    assert end.endswith(f"; next: fembench report {tmp_path}")
    said = "DISTURBED: others used up to 75 % of the CPU time on node8: times may be far off"
    assert [opening.startswith(begin) for begin in ("DISTURBED", said)] == [disturbed] * 2
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["id"] == "planted"
    assert [text in told.err for text in ("DISTURBED", said)] == [disturbed] * 2


@pytest.mark.parametrize("facts", [LOUD, {}])
def test_a_campaign_opens_with_the_cause_if_foreign_work_took_cpu_time(tmp_path, capsys, monkeypatch, facts):
    def launch(case, *, id, **options):
        ended = ended_on(**facts)
        record = msgspec.structs.replace(ended.result, id=id, case=case)
        return dataclasses.replace(ended, result=record)

    monkeypatch.setattr("fembench.bench.campaign.launch", launch)
    (tmp_path / "c.toml").write_text('name = "c"\n[[cases]]\nmesh = "m1"\nranks = 1\n')
    assert main(["sweep", str(tmp_path / "c.toml"), "--results", str(tmp_path / "out"), "--no-report"]) == 0
    said = "DISTURBED: others used up to 75 % of the CPU time on node8: times may be far off"
    told = capsys.readouterr()
    opening, then, *_ = told.out.splitlines()
    repeat = "To repeat recorded runs, give another folder (--results FOLDER)."
    assert (opening.startswith(said), then == repeat) == (bool(facts),) * 2
    assert (", DISTURBED m1 · " in told.err) is bool(facts)
