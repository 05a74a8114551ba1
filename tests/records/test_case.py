"""Fields of a case: declared once, grouped, resolved, and read from flat options and campaigns."""

import traceback

import msgspec
import pytest

from fembench.base.errors import InputError
from fembench.records.case import FIELDS, Case, fields_of, new_case


def test_every_field_says_what_it_is_and_what_it_takes():
    for field in FIELDS.values():
        assert field.option.help, field.name
        free = field.type in (str, float) and not field.option.choices
        typed = free or len(field.choices) > 10
        assert bool(field.option.metavar) == typed, field.name  # few choices, flags and counts need none
        if len(field.choices) > 10:  # named in the help instead
            assert all(word in field.option.help for word in field.choices), field.name
        assert field.option.metavar != "X"


def test_every_field_has_a_role_and_its_value_a_name_in_reports():
    assert set(fields_of("question", "method", "placement", "effort", "synthetic", "text")) == set(FIELDS)
    values = {"precond": "jacobi", "iterations": 20, "seed": 3}
    shown = [FIELDS[name].shown(value) for name, value in values.items()]
    assert shown == ["jacobi", "20 iterations", "seed 3"]


def test_a_case_is_made_of_what_is_said_of_it():
    said = {"mesh": "box:2x2x2", "problem": "bar", "ranks": 2, "precond": "jacobi", "label": "x"}
    case = Case.of(**said)
    assert case.said() == said
    assert Case.of(**case.said()) == case == Case.of(**case.flat())
    assert case.with_(ranks=1).placement.ranks == 1
    with pytest.raises(TypeError, match="no field 'rank'"):
        Case.of(rank=2)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "absolute"),  # the default problem comes from a study with an absolute tolerance
        ({"problem": "bar"}, "relative"),
        ({"problem": "mine.toml", "mesh": "part.msh"}, "relative"),
        ({"tolerance_kind": "relative"}, "relative"),
        ({"problem": "bar", "tolerance_kind": "absolute"}, "absolute"),
    ],
)
def test_the_kind_of_tolerance_suits_the_problem_and_is_written_resolved(fields, kind):
    case = new_case(fields, "here")
    assert case.stop.tolerance_kind == kind
    assert msgspec.to_builtins(case)["stop"]["tolerance_kind"] == kind
    assert msgspec.convert(msgspec.to_builtins(case), Case) == case


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rank": 2}, "here: unknown key 'rank'; the nearest known key is 'ranks'"),
        ({"xqzzy": 2}, "here: unknown key 'xqzzy'; expected one of ageing, balance, "),
        ({"ranks": "2"}, "here: ranks = '2': expected a whole number of at least 1"),
        ({"ranks": 0}, "here: ranks = 0: expected at least 1"),
        ({"ranks": 10**400}, "0: expected at most 2147483647"),
        ({"trace_iterations": 2_000_000}, "here: trace_iterations = 2000000: expected at most 1000000"),
        ({"precision": float("nan")}, "here: precision = nan: expected a finite number"),
        ({"max_seconds": -1.0}, "here: max_seconds = -1.0: expected at least 0"),
        ({"seconds": 1e99}, "here: seconds = 1e\\+99: expected at most 2147483647"),
        ({"tolerance": 0}, "here: tolerance = 0.0: expected a number above 0"),
        ({"band": 1.0}, "here: band = 1.0: expected a number between 0 and 1"),
        ({"tolerance": 1.0, "tolerance_kind": "relative"}, "relative to the load: expected a number below 1"),
        ({"storage": "aij"}, "here: storage 'aij': solver own has"),
    ],
)
def test_a_field_that_is_wrong_is_named(fields, message):
    with pytest.raises(InputError, match=message):
        new_case(fields, "here")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"storage": "ebe"}, "storage 'ebe': expected sym, bsr, csr or dense"),
        ({"precond": "multigrid"}, "precond 'multigrid': expected none, jacobi, block-jacobi or chebyshev"),
        ({"precond": "auto"}, "precond 'auto': expected none, jacobi, "),
        ({"recurrence": "pipelined"}, "recurrence 'pipelined': expected standard"),
        ({"solver": "petsc", "storage": "baij"}, "solver petsc: expected solver own"),
        ({"device": "gpu"}, "device 'gpu': expected cpu"),
        ({"balance": "amortised"}, "balance: expected no balance"),
        ({"emulate": "1,0.5", "ranks": 2}, "emulated speeds: expected 1"),
    ],
)
def test_several_threads_are_refused_with_what_they_do_not_share(fields, message):
    assert new_case({**fields, "threads": 1}, "here").placement.threads == 1
    with pytest.raises(InputError, match=f"here: threads = 2 with {message}"):
        new_case({**fields, "threads": 2}, "here")


def test_a_recurrence_is_kept_under_the_name_that_older_records_have():
    made = new_case({"recurrence": "pipelined"}, "here")
    assert made == Case.of(recurrence="pipelined")
    stored = msgspec.json.decode(msgspec.json.encode(made))
    assert stored["method"]["variant"] == "pipelined"
    assert msgspec.convert(stored, Case) == made
    with pytest.raises(InputError, match="unknown key 'variant'"):
        new_case({"variant": "pipelined"}, "here")


@pytest.mark.parametrize(
    "fields", [{"variant": "pipelined"}, {"ranks": "two"}, {"threads": 2, "storage": "ebe"}]
)
def test_a_refusal_shows_no_other_error_behind_it(fields):
    with pytest.raises(InputError) as caught:
        new_case(fields, "here")
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1
