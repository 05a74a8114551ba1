"""Campaign files: TOML tables of lists, whose product is the list of cases.

name = "scaling"
repetitions = 3            # runs per case, interleaved with those of the others
timeout = 300              # seconds per run

[[cases]]                  # lists are multiplied out; a plain value is a list of one
mesh = ["m1", "m3"]
ranks = [1, 2, "cores"]    # "cores": all usable cores of this host, not hardware threads
storage = ["csr", "dense"]
shares = ["", "7:1"]       # shares that do not match the ranks are skipped, with a note
"""

import hashlib
import itertools
import math
import random
import re
from typing import Any

import msgspec

from fembench.base.errors import InputError, shown
from fembench.host.host import usable_cores
from fembench.partition.shares import parse_shares
from fembench.records.case import ABSOLUTE, FIELDS, Case, new_case
from fembench.records.case_fields import LARGEST
from fembench.records.renamed import renamed

NOW_RELATIVE = (
    "tolerance without tolerance_kind is now relative to the load; "
    "for newtons, as before, write tolerance_kind = 'absolute'"
)
MOST_RUNS = 100_000  # runs of a campaign; more are a typing error


class Campaign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A campaign as described by its file."""

    name: str
    cases: tuple[dict[str, Any], ...]
    repetitions: int = 1
    timeout: float = 600.0  # seconds per run; 0: no limit
    seed: int = 0  # of the order of the runs
    launcher: str = ""  # as --launcher, --launcher-options and --map-by
    launcher_options: str = ""
    map_by: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", self.name):
            raise ValueError(f"name = '{shown(self.name)}': expected letters, digits, '.', '_' and '-'")
        if not 1 <= self.repetitions <= LARGEST:
            raise ValueError(f"repetitions = {self.repetitions}: expected 1 to {LARGEST}")
        if not 0 <= self.timeout < math.inf:
            raise ValueError(f"timeout = {self.timeout}: expected a finite number of 0 or more")
        if not self.cases:
            raise ValueError("no [[cases]]: expected at least one")


class CampaignRun(msgspec.Struct, frozen=True):
    """One run of a campaign."""

    id: str
    case: Case
    repetition: int


def expand(campaign: Campaign, where: str) -> list[CampaignRun]:
    """Every run of the campaign, interleaved: each case runs once before any case runs again.

    One-rank runs come first in a repetition, since the others are compared with them; the rest follow in
    a seeded random order.
    """
    cases = list(dict.fromkeys(case for table in campaign.cases for case in _product(table, where)))
    if len(cases) * campaign.repetitions > MOST_RUNS:
        raise InputError(f"{where}: {len(cases) * campaign.repetitions} runs; expected {MOST_RUNS} at most")
    order = random.Random(campaign.seed)
    runs = []
    for repetition in range(1, campaign.repetitions + 1):
        shuffled = order.sample(cases, len(cases))
        runs += [
            CampaignRun(run_id(case, repetition), case, repetition)
            for case in sorted(shuffled, key=lambda c: c.placement.ranks > 1)
        ]
    return runs


def outdated(campaign: Campaign) -> list[str]:
    """A line for each setting whose meaning has changed since the last release, with what to write now."""
    found: dict[str, None] = {}
    for table in campaign.cases:
        values = [{key: value} for key, listed in table.items() for value in _listed(listed)]
        found |= dict.fromkeys(line for value in values for line in renamed(value)[1])
        if "tolerance" in table and "tolerance_kind" not in table and _relative(table):
            found[NOW_RELATIVE] = None
    return list(found)


def _relative(table: dict[str, Any]) -> bool:
    """Whether the tolerance of any of the problems has become relative."""
    problems = _listed(table.get("problem", FIELDS["problem"].default))
    return any(renamed({"problem": name})[0]["problem"] not in ABSOLUTE for name in problems)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _product(table: dict[str, Any], where: str) -> list[Case]:
    lists = {key: _listed(value) for key, value in table.items()}
    empty = [key for key, values in lists.items() if not values]
    if empty:
        raise InputError(f"{where}: [[cases]] {empty[0]} = []: expected at least one value")
    rows = math.prod(map(len, lists.values()))
    if rows > MOST_RUNS:
        raise InputError(f"{where}: [[cases]] of {rows} cases; expected {MOST_RUNS} at most")
    if "ranks" in lists:
        lists["ranks"] = [usable_cores() if r == "cores" else r for r in lists["ranks"]]
    several_ranks = len(lists.get("ranks", [])) > 1
    cases = []
    for values in itertools.product(*lists.values()):
        case = new_case(dict(zip(lists, values)), f"{where} [[cases]]")
        try:
            parse_shares(case.placement.shares, case.placement.ranks)
        except InputError:
            if several_ranks and case.placement.shares:  # one row of the product; others may match
                continue
            raise
        cases.append(case)
    if not cases:
        raise InputError(f"{where}: [[cases]] no shares match any of ranks = {lists.get('ranks')}")
    return cases


def run_id(case: Case, repetition: int) -> str:
    """A file name that describes the run and is unique to its case across campaigns."""
    mesh = re.sub(r"[^A-Za-z0-9]+", "-", case.question.mesh.split("/")[-1]).strip("-")[:120]
    digest = hashlib.sha256(msgspec.json.encode(case.flat(), order="sorted")).hexdigest()[:8]
    method = f"{case.method.storage}-{case.method.precond}"
    return f"{mesh}-{method}-p{case.placement.ranks}-{digest}-r{repetition}"
