"""A run beside other work opens with who took the CPU time."""

import json

import msgspec
import pytest
from planted_records import planted

from fembench.cli.main import main
from fembench.launch.case_job import JobOutcome

LOUD = {"others_percent": 75.0, "others_resolution": 0.2}


@pytest.fixture
def launched(monkeypatch):
    """A function that makes every job end with a planted record whose hosts have these facts."""

    def plant(**facts):
        record = planted([1.0])
        hosts = tuple(msgspec.structs.replace(h, **facts) for h in record.environment.hosts)
        environment = msgspec.structs.replace(record.environment, hosts=hosts)
        record = msgspec.structs.replace(record, environment=environment)
        ended = JobOutcome(record=record, kind="", message="", exit_status=0, output="")
        monkeypatch.setattr("fembench.launch.case_job.launch", lambda case, **options: ended)

    return plant


@pytest.mark.parametrize(
    ("facts", "disturbed"),
    [(LOUD, True), ({}, False), ({"throttled_percent": 60.0, "cpu_quota": 0.5}, False)],
)
def test_a_run_opens_with_the_cause_if_foreign_work_took_cpu_time(
    tmp_path, capsys, launched, facts, disturbed
):
    launched(**facts)
    words = ["run", "m1", "--ranks", "1", "--results", str(tmp_path)]
    assert main(words) == 0
    opening = capsys.readouterr().out.splitlines()[0]
    said = "DISTURBED: others used up to 75 % of the CPU time on node8: times may be far off"
    assert opening.startswith(said) is disturbed
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["id"] == "planted"
    assert (said in told.err) is disturbed
