"""What a field of a case declares for options, files and reports."""

import dataclasses
import math
from typing import Literal

from msgspec import Struct

from fembench.base.plugins import Kind

Role = Literal[
    "question",  # what is computed: other values give another result
    "method",  # how it is computed
    "placement",  # how ranks share the work: no effect on one rank
    "effort",  # how long and in what detail it is measured
    "synthetic",  # emulated hosts
    "text",  # changes no number
]
LARGEST = 2**31 - 1  # largest number of a case


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """What the declaration of a field contains in addition to its type and default."""

    help: str
    _: dataclasses.KW_ONLY
    metavar: str = ""  # "": N for whole numbers; short lists of choices need none
    least: float = 0  # smallest number
    most: float = LARGEST  # largest number
    within: tuple[float, float] | None = None  # open interval that contains the number, but for the default
    role: Role | None = None  # None: that of the group
    varied: bool = False  # users vary it on purpose; reports use it in names of results
    short: str = ""  # format of a value in the name of a result; "": field and value
    setup_only: bool = False  # it affects the set-up of a run, but not its iterations
    choices: tuple[str, ...] = ()  # allowed texts; (): any
    more: Kind | None = None  # installed packages bring more of them

    def expected(self, value: object, default: object) -> str:
        """What a number has to be, if the field does not take this one; "" if it does."""
        if not isinstance(value, int | float) or isinstance(value, bool) or value == default:
            return ""
        if isinstance(value, float) and not math.isfinite(value):
            return "a finite number"
        if not self.least <= value <= self.most:
            return f"at least {self.least:g}" if value < self.least else f"at most {self.most}"
        low, high = self.within or (-math.inf, math.inf)
        return "" if low < value < high else f"a number {between(low, high)}"


def between(low: float, high: float) -> str:
    """An open interval in words, without the largest number."""
    return f"between {low:g} and {high:g}" if high < LARGEST else f"above {low:g}"


class Group(Struct, frozen=True):
    """Fields that belong together."""

    title: str  # heading of their options
    role: Role
