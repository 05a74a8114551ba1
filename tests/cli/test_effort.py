"""How much a run measures by default, for a look, and where it is told."""

import pytest
from msgspec.structs import replace
from planted_records import planted

from fembench.cli.main import main
from fembench.launch.run_job import JobEnd
from fembench.records.case import Case, new_case
from fembench.records.validity import PRECISION, SETS, WARMUPS
from fembench.workflows import run as workflow


@pytest.fixture
def effort(tmp_path, monkeypatch):
    """(warm-ups, sets, seconds, precision) of the case that a command or a call starts."""
    asked = []

    def launch(case, **options):
        asked.append(case)
        return JobEnd(replace(planted([1.0] * case.placement.ranks), id="x", case=case), "", "", 0, "")

    monkeypatch.setattr("fembench.workflows.run.launch", launch)
    monkeypatch.setattr("fembench.workflows.tune.launch", launch)

    def found(*words, **fields):
        asked.clear()
        if words:
            assert main([*words, "--ranks", "2", "--results", str(tmp_path)]) == 0
        else:
            workflow.run("m1", ranks=2, results=tmp_path, **fields)
        one = asked[0].effort
        return one.warmups, one.sets, one.seconds, one.precision

    return found


def test_a_case_can_be_valid_by_default():
    by_default = Case().effort
    assert (by_default.warmups, by_default.sets, by_default.precision) == (WARMUPS, SETS, PRECISION)


@pytest.mark.parametrize(
    ("words", "fields", "expected"),
    [
        ("", {}, (2, 10, 0.0, 2.0)),
        ("--quick", {"quick": True}, (1, 3, 0.0, 0.0)),
        ("--quick --sets 10", {"quick": True, "sets": 10}, (1, 10, 0.0, 0.0)),
        ("--sets 10", {"sets": 10}, (2, 10, 0.0, 0.0)),
        ("--sets 5 --precision 1", {"sets": 5, "precision": 1.0}, (2, 5, 0.0, 1.0)),
        ("--precision 0", {"precision": 0.0}, (2, 10, 0.0, 0.0)),
        ("--seconds 3 --warmups 0", {"seconds": 3.0, "warmups": 0}, (0, 10, 3.0, 2.0)),
    ],
)
def test_a_run_takes_what_rule_d1_asks_for_unless_told_otherwise(effort, words, fields, expected):
    assert effort("run", "m1", *words.split()) == expected
    assert effort(**fields) == expected
    asked = {name: value for name, value in fields.items() if name != "quick"}
    if "quick" not in fields:
        one = new_case(asked, "c.toml").effort
        assert (one.warmups, one.sets, one.seconds, one.precision) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", (2, 10, 2.0, 0.0)),
        ("--sets 12", (2, 12, 0.0, 0.0)),
        ("--sets 12 --seconds 1", (2, 12, 1.0, 0.0)),
        ("--precision 1", (2, 10, 2.0, 1.0)),
        ("--seconds 0.5 --warmups 3", (3, 10, 0.5, 0.0)),
    ],
)
def test_tuning_does_fixed_work_for_two_seconds_unless_told_otherwise(effort, words, expected):
    words = ["tune", "m1", *words.split(), "--rounds", "1", "--pairs", "1"]
    assert effort(*words) == expected


def test_a_case_that_ran_is_repeated_exactly_with_another_number_of_sets(effort):
    case = Case.of(mesh="m1", ranks=2)
    assert case.effort.precision == 2.0
    found = workflow.case_asked(case, {"sets": 3}).effort
    assert (found.sets, found.precision) == (3, 0.0)
    assert workflow.case_asked(case, {}) == case


def test_a_quick_run_says_that_it_is_a_look(tmp_path, output, monkeypatch):
    made = planted([1.0, 1.0], sets=3, id="look")
    monkeypatch.setattr("fembench.workflows.run.launch", lambda case, **_: JobEnd(made, "", "", 0, ""))
    first = output("run", "m1", "--ranks", "2", "--quick", "--results", str(tmp_path)).splitlines()[0]
    assert first.startswith("A quick look, PROVISIONAL: 1 warm-up instead of 2 and 3 sets instead of 10; ")


def test_what_is_said_of_a_case_makes_the_same_case():
    ways = [{"sets": 5}, {"sets": 10}, {"precision": 0.0}]
    ways += [{"sets": n, "precision": p} for n in (5, 10) for p in (1.0, 2.0)]
    for fields in ways:
        case = Case.of(**fields)
        assert Case.of(**case.said()) == case
    assert Case.of(sets=5).said() == {"sets": 5}
