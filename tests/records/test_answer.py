"""The rules on the answer: a wrong one is INVALID, a right one is not, however many iterations it took."""

import re

import pytest
from good_record import broken, good_record, replace, status

from fembench.records.answer import fingerprint_difference
from fembench.records.validity import judge


@pytest.fixture
def record():
    return good_record()


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("A1", {"true_residual": 1.0}),
        ("A1", {"true_residual": float("nan")}),
        ("A2", {"symmetry": 1e-12}),
        ("A3", {"positive": -0.1}),
        ("A3", {"rigid_body": 1e-10}),
        ("A4", {"energy": 3.3895e-05}),
        ("A5", {"copies_identical": False}),
        ("A5", {"fingerprint": (0.0,) * 16}),
    ],
)
def test_a_wrong_answer_is_invalid(record, rule, change):
    verification = replace(record.verification, **change)
    assert rule in broken(record, verification=verification)
    assert status(record, verification=verification) == "INVALID"


@pytest.mark.parametrize(
    "options",
    [
        {"precond": "two-level"},
        {"precond": "gamg", "solver": "petsc", "storage": "baij"},
        {"petsc_options": "-pc_type bjacobi", "solver": "petsc", "storage": "aij"},
    ],
)
def test_a_preconditioner_of_parts_may_need_other_iterations_but_not_another_solution(record, options):
    reference = replace(record.reference, iterations=record.solve.iterations + 40)
    case = record.case.with_(**options)
    assert broken(record, case=case, reference=reference) == set()
    wrong = replace(record.verification, fingerprint=(0.0,) * 16, energy=1.0)
    assert broken(record, case=case, reference=reference, verification=wrong) == {"A4", "A5"}


def test_fixed_work_is_held_against_the_last_residual_of_its_recurrence(record):
    case = record.case.with_(iterations=record.sets[0].iterations)
    off = 0.1 * record.verification.rhs_norm
    found = replace(record.verification, true_residual=off)
    for residuals, ok in (((1e-9 * off, off), True), ((off, 1e-9 * off), False)):
        solve = replace(record.solve, residuals=residuals)
        assert ("A1" not in broken(record, case=case, solve=solve, verification=found)) is ok


def test_a_solution_with_another_storage_on_the_same_parts_stands_for_rule_a4_alone(record):
    """It cannot show that the result does not depend on the partition."""
    same = replace(record.reference, same_parts=True, iterations=record.solve.iterations)
    assert status(record, reference=same) == "VALID"
    rules = judge(replace(record, reference=same)).rules
    assert [rule.value.split(" ")[0] for rule in rules if rule.id == "A5"] == ["shared"]
    assert len([rule for rule in rules if rule.id == "A4"]) == 3
    wrong = replace(record.verification, fingerprint=(0.0,) * 16)
    assert broken(record, reference=same, verification=wrong) == {"A4"}


@pytest.mark.parametrize("same_parts", [True, False])
@pytest.mark.parametrize("off", [-40, 15, 40])
def test_another_number_of_iterations_is_shown_and_decides_nothing(record, same_parts, off):
    done = record.solve.iterations
    reference = replace(record.reference, iterations=done + off, same_parts=same_parts)
    verdict = judge(replace(record, reference=reference))
    assert verdict.status == "VALID"
    (shown,) = (rule.value for rule in verdict.rules if rule.value.startswith("iterations"))
    assert re.findall(r"\d+", shown) == [str(done), str(done + off)]
    wrong = replace(record.verification, fingerprint=tuple(1.001 * x for x in reference.fingerprint))
    assert status(record, reference=reference, verification=wrong) == "INVALID"


def test_fixed_work_that_diverged_is_invalid_although_it_agrees_with_its_recurrence(record):
    case, load = record.case.with_(iterations=record.sets[0].iterations), record.verification.rhs_norm
    for growth, ok in ((28.0, True), (1.7e5, False)):  # a slender cantilever; two unconnected bodies
        solve = replace(record.solve, residuals=(load, growth * load))
        found = replace(record.verification, true_residual=growth * load)
        spoilt = replace(record, case=case, solve=solve, verification=found, reference=None)
        assert (judge(spoilt).status == "INVALID") is not ok
        assert any("is every part of the mesh restrained?" in why for why in judge(spoilt).reasons) is not ok


@pytest.mark.parametrize("load", [0.0, 1e-9])
def test_a_solution_of_zero_is_invalid_whether_the_load_underflows_or_lies_below_the_tolerance(record, load):
    nothing = {"solution_norm": 0.0, "energy": 0.0, "fingerprint": (0.0,) * 16}
    zero = replace(record.verification, rhs_norm=load, true_residual=load, **nothing)
    alike = replace(record.reference, **nothing)
    solve = replace(record.solve, target=1e-6, converged=True, iterations=0, residuals=(load,))
    assert broken(record, verification=zero, reference=alike, solve=solve) == {"A1"}
    assert "|u| = 0" in judge(replace(record, verification=zero)).reason


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {},
            "needs a one-rank record of the same mesh, problem and work, in the results folder or from --ref",
        ),
        (
            {"iterations": 100},
            "rounding decides the result after so many iterations: ask for fewer or more -",
        ),
        ({"iterations": 100, "solver": "petsc", "storage": "aij", "precond": "gamg"}, "needs a one-rank rec"),
    ],
)
def test_a_run_without_a_reference_is_told_what_would_serve_as_one(record, ranks, fields, told):
    case = record.case.with_(ranks=ranks, **fields)
    (rule,) = (r for r in judge(replace(record, case=case, reference=None)).rules if r.id == "A4")
    assert rule.ok is None
    assert rule.note.startswith(told)


@pytest.mark.parametrize(("iterations", "remedy"), [(0, "a lower --tolerance"), (26, "fewer or more --iter")])
def test_a_result_that_differs_from_its_reference_is_told_what_to_try(record, iterations, remedy):
    case = record.case.with_(iterations=iterations)
    wrong = replace(record.verification, fingerprint=(0.0,) * 16, energy=1.0)
    found = judge(replace(record, case=case, verification=wrong)).reasons
    told = [reason for reason in found if "(A4) not met" in reason or "(A5) not met" in reason]
    assert [f"; try {remedy}" in reason for reason in told] == [True, True]
    assert "; try" not in "".join(rule.note for rule in judge(replace(record, case=case)).rules)


def test_the_distance_of_fingerprints_is_relative_and_needs_equal_lengths():
    assert fingerprint_difference((1.0, 2.0), (1.0, 2.0), 5.0) == 0.0
    assert fingerprint_difference((3.0, -3.0), (0.0, 0.0), 3.0) == pytest.approx(1.0)
    assert fingerprint_difference((1e308, 1.0), (-1e308, 1.0), 1e3) > 1e300
    assert fingerprint_difference((1.0,), (1.0, 2.0), 1.0) != fingerprint_difference((1.0,), (1.0,), 1.0)
