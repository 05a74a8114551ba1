"""The claims of a study, judged: what was found beside the limit, with
an interval over repetitions.

A claim limits an error, or asks for a quantity of at least some size. The median repetition is judged. Its
interval is that of the median (order statistics for six or more repetitions, Student's for three to five).
INVALID, like a run that others disturbed: an error that is known less precisely than its limit, and a
quantity whose interval contains the limit. A study with a claim that is missed, or INVALID, ends with exit
status 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fembench.report.table import Table
from fembench.stats.student import typical_interval
from fembench_studies.layout import columns

KEPT, MISSED = "yes", "NO"
OTHERS, NOISY = "others used ", "too noisy"  # in reasons why a measurement cannot judge a claim


@dataclass(frozen=True)
class StudyClaim:
    """One claim."""

    what: str
    limit: float  # largest |found|, or smallest found
    found: float  # of the median repetition; an error is signed if it has a sign
    low: float = math.nan  # its interval; nan: fewer than three repetitions, or none
    high: float = math.nan
    reason: str = ""  # why the measurement cannot judge the claim
    least: bool = False  # the limit is the smallest found
    unit: str = "%"

    @property
    def verdict(self) -> str:
        """yes, NO, or INVALID with the reason."""
        if self.reason:
            return f"INVALID: {self.reason}"
        if math.isnan(self.found):
            return "INVALID: not measured"
        if self.least:
            if self.low < self.limit <= self.high:
                return f"INVALID: too noisy, between {self.low:.3g} and {self.high:.3g}"
            return KEPT if self.found >= self.limit else MISSED
        far = max(self.found - self.low, self.high - self.found)
        if far > self.limit and self.low <= self.limit and self.high >= -self.limit:
            return f"INVALID: too noisy, the error is known to ± {far:.1f} {self.unit}".rstrip()
        return KEPT if abs(self.found) <= self.limit else MISSED


def ratio_claim(
    what: str, limit: float, predicted: float, measured: Sequence[float], reason: str = ""
) -> StudyClaim:
    """The claim that a predicted time is within `limit` per cent of the
    measured ones (repetitions)."""
    middle, ends = float(np.median(measured)), typical_interval(measured)
    low, high = (ends.low, ends.high) if ends else (math.nan, math.nan)
    found, least, most = (100 * (predicted / t - 1) for t in (middle, high, low))
    return StudyClaim(what, limit, found, least, most, reason)


def error_claim(what: str, limit: float, errors: Sequence[float], reason: str = "") -> StudyClaim:
    """The claim that an error without a sign, in per cent, is at most
    `limit`; one error per repetition."""
    return StudyClaim(what, limit, *_typical(errors), reason)


def least_claim(
    what: str, limit: float, found: Sequence[float], reason: str = "", unit: str = "%"
) -> StudyClaim:
    """The claim that a quantity is at least `limit`; one value per repetition."""
    return StudyClaim(what, limit, *_typical(found), reason, least=True, unit=unit)


def most_claim(
    what: str, limit: float, found: Sequence[float], reason: str = "", unit: str = "%"
) -> StudyClaim:
    """The claim that a quantity above 0 is at most `limit`; one value per repetition."""
    claim = StudyClaim(what, limit, *_typical(found), reason, unit=unit)
    if not reason and claim.low <= limit < claim.high:
        return replace(claim, reason=f"too noisy, between {claim.low:.3g} and {claim.high:.3g}")
    return claim


def _typical(found: Sequence[float]) -> tuple[float, float, float]:
    """The median repetition, and its interval."""
    ends = typical_interval(found) if all(map(math.isfinite, found)) else None
    middle = float(np.median(found)) if len(found) else math.nan
    return (middle, ends.low, ends.high) if ends else (middle, math.nan, math.nan)


def all_kept(claims: Sequence[StudyClaim]) -> bool:
    """Whether every claim is kept."""
    return all(claim.verdict == KEPT for claim in claims)


def _most_invalid(claims: Sequence[StudyClaim]) -> str:
    """Why most claims are INVALID, if one cause is to blame, and what to do; "" otherwise."""
    for cause in (OTHERS, NOISY):
        found = [c.verdict for c in claims if c.verdict.startswith("INVALID") and cause in c.verdict]
        if 2 * len(found) > len(claims):
            worst = max(found, key=_used).partition(cause)[2] if cause == OTHERS else ""
            said = f"others used up to {worst}" if worst else NOISY
            return f"{len(found)} of {len(claims)} are INVALID: {said}; repeat on an idle machine"
    return ""


def _used(verdict: str) -> float:
    """Percent that others used, of a verdict that says so."""
    return float(verdict.partition(OTHERS)[2].partition(" ")[0])


def _short(verdict: str) -> str:
    """'INVALID: others used 45 %', without what the title says."""
    kept, others, rest = verdict.partition(OTHERS)
    return f"{kept}{others}{rest.partition(' %')[0]} %" if others else verdict


def claims_table(claims: Sequence[StudyClaim], synthetic: bool) -> Table:
    """One row per claim: the limit beside what was found."""
    heads = columns(
        "claim words; most value at most; least value at least; found; from; to; unit words; kept words"
    )
    note = (
        "Found: the median repetition, and its interval. An error is in per cent of the measured time. "
        "INVALID: the measurement cannot judge the claim. The exit status is 1 unless all claims are kept."
    )
    most = _most_invalid(claims)
    rows = tuple(
        (
            c.what,
            *((math.nan, c.limit) if c.least else (c.limit, math.nan)),
            *(c.found, c.low, c.high, c.unit, _short(c.verdict) if most else c.verdict),
        )
        for c in claims
    )
    title = f"Claims: {most}" if most else "Claims"
    return Table("claims", title, f"SYNTHETIC: {note}" if synthetic else note, heads, rows)
