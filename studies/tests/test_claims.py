"""The claims of a study: kept, missed, or not judged because the measurement is too noisy."""

import math

import pytest

from fembench_studies.claims import (
    StudyClaim,
    all_kept,
    claims_table,
    error_claim,
    least_claim,
    most_claim,
    ratio_claim,
)

STEADY = (1.0, 1.01, 0.99, 1.005, 0.995)


@pytest.mark.parametrize(
    ("predicted", "verdict"), [(1.04, "yes"), (0.96, "yes"), (1.06, "NO"), (0.94, "NO"), (3.27, "NO")]
)
def test_a_claim_is_kept_if_the_median_repetition_is_within_the_limit(predicted, verdict):
    claim = ratio_claim("ring", 5.0, predicted, STEADY)
    assert claim.found == pytest.approx(100 * (predicted - 1))
    assert claim.low < claim.found < claim.high
    assert claim.verdict == verdict
    assert all_kept([claim]) == (verdict == "yes")


def test_repetitions_that_scatter_more_than_the_limit_judge_nothing():
    noisy = ratio_claim("ring", 5.0, 1.0, (1.0, 1.3, 0.8, 1.1, 0.9))
    assert noisy.verdict.startswith("INVALID: too noisy, the error is known to ± ")
    assert not all_kept([noisy])


@pytest.mark.parametrize(("low", "high"), [(9.0, 40.0), (-40.0, -9.0)])
def test_an_error_beyond_the_limit_however_it_scatters_is_missed(low, high):
    assert StudyClaim("ring", 5.0, (low + high) / 2, low, high).verdict == "NO"


def test_a_disturbed_or_missing_measurement_is_invalid_with_its_reason():
    assert ratio_claim("ring", 5.0, 1.0, STEADY, "others used 9 %").verdict == "INVALID: others used 9 %"
    assert StudyClaim("ring", 5.0, math.nan).verdict == "INVALID: not measured"


def disturbed_claims(*percents):
    """Claims judged by runs of which others used so much."""
    where = "of the ranks' processor time on vm (at most 2 %)"
    return [
        ratio_claim("ring", 5.0, 1.0, STEADY, f"others used {p} % {where}" if p else "") for p in percents
    ]


def test_the_title_says_once_why_most_claims_are_invalid_and_what_to_do():
    made = claims_table(disturbed_claims(33, 77, 9, 0), synthetic=False)
    assert made.title == (
        "Claims: 3 of 4 are INVALID: others used up to 77 % of the ranks' processor time on vm "
        "(at most 2 %); repeat on an idle machine"
    )
    assert list(made["kept"]) == [*(f"INVALID: others used {p} %" for p in (33, 77, 9)), "yes"]
    noisy = claims_table([least_claim("gain", 1.0, STEADY, unit="")] * 2, synthetic=False)
    assert noisy.title == "Claims: 2 of 2 are INVALID: too noisy; repeat on an idle machine"
    assert noisy["kept"][0].startswith("INVALID: too noisy, between ")


def test_claims_keep_their_whole_reasons_if_few_are_invalid():
    made = claims_table(disturbed_claims(33, 0), synthetic=False)
    assert made.title == "Claims"
    assert made["kept"][0].endswith("on vm (at most 2 %)")


def test_errors_without_a_sign_are_judged_by_their_median():
    assert error_claim("each", 15.0, (10.0, 11.0, 12.0, 11.5, 10.5)).verdict == "yes"
    assert error_claim("each", 15.0, (20.0, 21.0, 22.0, 21.5, 20.5)).verdict == "NO"


def test_the_limit_is_printed_beside_what_was_found():
    made = claims_table([ratio_claim("ring", 5.0, 1.1, STEADY)], synthetic=True)
    assert [row["claim"] if isinstance(row, dict) else row[0] for row in made.rows] == ["ring"]
    assert (made["most"], made["unit"]) == ([5.0], ["%"])
    assert made["found"] == pytest.approx([10.0])
    assert made["from"] < made["found"] < made["to"]
    assert made["kept"] == ["NO"]
    assert made.note.startswith("SYNTHETIC")


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0.7, "yes"), (1.2, "NO"), (1.0, "INVALID: too noisy, between")]
)
def test_a_quantity_is_asked_to_be_at_least_as_large(limit, verdict):
    claim = least_claim("gain", limit, STEADY, unit="")
    assert claim.verdict.startswith(verdict)
    table = claims_table([claim], synthetic=False)
    assert (table["least"], math.isnan(table["most"][0])) == ([limit], True)


@pytest.mark.parametrize(
    ("limit", "verdict"), [(1.2, "yes"), (0.7, "NO"), (1.0, "INVALID: too noisy, between")]
)
def test_a_ratio_is_asked_to_be_at_most_as_large(limit, verdict):
    assert most_claim("time", limit, STEADY, unit="").verdict.startswith(verdict)


def test_a_single_measurement_is_judged_without_an_interval():
    assert least_claim("gain", 0.7, [0.8]).verdict == "yes"
    assert most_claim("time", 1.1, []).verdict == "INVALID: not measured"
