"""The claims of a study, judged: what was found beside the limit, with an interval over repetitions.

A claim limits an error. The error of the median repetition is judged. Its interval is that of the median
(order statistics for six or more repetitions, Student's for three to five). If the interval is wider than the
limit on either side of the error, the measurement is too noisy to judge: INVALID, like a run that others
disturbed. A study with a claim that is missed, or INVALID, ends with exit status 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fembench.report.table import Table, words
from fembench.stats.student import typical_interval
from fembench.studies.layout import value

KEPT, MISSED = "yes", "NO"


@dataclass(frozen=True)
class StudyClaim:
    """One claim. Errors are in per cent."""

    what: str
    limit: float  # largest |error|
    found: float  # of the median repetition; signed if it has a sign
    low: float = math.nan  # its interval; nan: fewer than three repetitions, or none
    high: float = math.nan
    reason: str = ""  # why the measurement cannot judge the claim

    @property
    def verdict(self) -> str:
        """yes, NO, or INVALID with the reason."""
        if self.reason:
            return f"INVALID: {self.reason}"
        if math.isnan(self.found):
            return "INVALID: not measured"
        far = max(self.found - self.low, self.high - self.found)
        if far > self.limit:
            return f"INVALID: too noisy, the error is known to ± {far:.1f} %"
        return KEPT if abs(self.found) <= self.limit else MISSED


def ratio_claim(
    what: str, limit: float, predicted: float, measured: Sequence[float], reason: str = ""
) -> StudyClaim:
    """The claim that a predicted time is within `limit` per cent of the measured ones (repetitions)."""
    middle, ends = float(np.median(measured)), typical_interval(measured)
    low, high = (ends.low, ends.high) if ends else (math.nan, math.nan)
    found, least, most = (100 * (predicted / t - 1) for t in (middle, high, low))
    return StudyClaim(what, limit, found, least, most, reason)


def error_claim(what: str, limit: float, errors: Sequence[float], reason: str = "") -> StudyClaim:
    """The claim that an error without a sign, in per cent, is at most `limit`; one error per repetition."""
    ends = typical_interval(errors)
    low, high = (ends.low, ends.high) if ends else (math.nan, math.nan)
    return StudyClaim(what, limit, float(np.median(errors)), low, high, reason)


def all_kept(claims: Sequence[StudyClaim]) -> bool:
    """Whether every claim is kept."""
    return all(claim.verdict == KEPT for claim in claims)


def claims_table(claims: Sequence[StudyClaim], synthetic: bool) -> Table:
    """One row per claim: the limit beside what was found."""
    columns = (
        words("claim"),
        value("limit_percent", "at most %"),
        value("found_percent", "found %"),
        value("from_percent", "from %"),
        value("to_percent", "to %"),
        words("kept"),
    )
    note = (
        "The error of the median repetition, in per cent of the measured time, and its interval. "
        "INVALID: the measurement cannot judge the claim. The exit status is 1 unless all claims are kept."
    )
    rows = tuple((c.what, c.limit, c.found, c.low, c.high, c.verdict) for c in claims)
    return Table("claims", "Claims", f"SYNTHETIC: {note}" if synthetic else note, columns, rows)
