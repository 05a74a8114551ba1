"""Campaign files: TOML tables of lists, whose product is the list of cases.

name = "scaling"
repetitions = 3            # runs per case, interleaved with those of the others
timeout = 300              # seconds per run

[[cases]]                  # lists are multiplied out; a plain value is a list of one
mesh = ["m1", "m3"]
ranks = [1, "node", "all"] # words for ranks, hosts and meshes: fembench/bench/campaign_words.py
storage = ["csr", "dense"]
shares = ["", "7:1"]       # shares that do not match the ranks are skipped

`precond = "auto"` becomes the preconditioner that is expected to reach the solution first.
Expected are set-up and iterations, whose cost the methods declare. Rates are stated, as
for runs without records (duration.py).
"""

import hashlib
import itertools
import math
import random
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.bench.campaign_hosts import CampaignHosts, campaign_hosts, check_memory
from fembench.bench.campaign_words import HOST_KEYS, PlacedCase, placed_case, sized, spread
from fembench.bench.duration import bytes_moved, equations_of, iterations_of, stated_rate
from fembench.launch.allocation import HostsError
from fembench.methods.lookup import AUTO, preconds
from fembench.methods.recipe import recipe
from fembench.partition.shares import parse_shares
from fembench.records.case import FIELDS, TEXT, Case, fields_of, refused_value
from fembench.records.option import LARGEST
from fembench.records.record import Record

MESSAGE = 1e-5  # seconds of a neighbour sum or of an all-reduce
STANDS_FOR = "precond auto: "  # begins the reason in a label
CERTAIN = "multigrid"  # for meshes of unknown size: its iterations hardly depend on it


def settled(case: Case, records: Sequence[Record] = ()) -> Case:
    """The case with what `auto` stands for, and why in its label; others unchanged."""
    if case.method.precond != AUTO:
        return case
    name, why = _chosen(case, equations_of(case, records))
    label = f"{case.output.label}; " if case.output.label else ""
    return case.with_(precond=name, label=f"{label}{STANDS_FOR}{name}, {why}")


def reasons(cases: Iterable[Case]) -> list[str]:
    """What `auto` stands for and why, one line for each settled case that had it."""
    found = []
    for case in cases:
        _, mark, why = case.output.label.rpartition(STANDS_FOR)
        ranks = plural(case.placement.ranks, "rank")
        found += [f"{case.question.mesh} on {ranks}: {mark}{why}"] if mark else []
    return list(dict.fromkeys(found))


def _chosen(case: Case, n: int | None) -> tuple[str, str]:
    """(name, why)."""
    if case.stop.iterations:
        return "none", "since fixed iterations reach no solution"
    able = [case.with_(precond=p.name) for p in preconds("own") if _fits(case, p.name)]
    if n is None:
        sure = next((c for c in able if c.method.precond == CERTAIN), case.with_(precond="none"))
        return sure.method.precond, "since the mesh is read only by the run, and its size decides the others"
    times = sorted((solution_seconds(one, n), one.method.precond) for one in able)
    (first, name), *others = times
    beside = f", {others[0][1]} {others[0][0]:.2g} s" if others else ""
    return name, f"expected to solve {n} equations in {first:.2g} s{beside}"


def _fits(case: Case, name: str) -> bool:
    """Whether the other fields of the case allow it."""
    try:
        case.with_(precond=name)
    except ValueError:
        return False
    return True


def solution_seconds(case: Case, n: int) -> float:
    """Seconds of set-up and iterations, for n equations."""
    one, ranks = recipe(case.method), case.placement.ranks
    below, grids = one.precond.grids, len(one.grids(n, n)[0])
    messages = one.exchanges * (1 + grids) + len(one.reductions) + 2 * bool(below) + (one.gathered > 0)
    iteration = bytes_moved(case, n) / stated_rate(case, n) + (MESSAGE * messages if ranks > 1 else 0.0)
    start, more = one.precond.set_up
    return start + (more + iterations_of(case, n)) * iteration


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


def expand(campaign: Campaign, where: str, there: CampaignHosts | None = None) -> list[CampaignRun]:
    """Every run of the campaign, interleaved: each case runs once before any runs again.

    One-rank runs come first in a repetition, since the others are compared with them;
    the rest follow in a seeded random order. `there`: what words for ranks and hosts
    are resolved against; None: this job. Cases that turn out to be the same run once.
    """
    return interleaved(campaign, cases_of(campaign, where, there), where)


def interleaved(campaign: Campaign, cases: Sequence[Case], where: str) -> list[CampaignRun]:
    """The runs of these cases, as `expand` orders them. Raises InputError."""
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


def cases_of(campaign: Campaign, where: str, there: CampaignHosts | None = None) -> list[Case]:
    """Every case of the campaign, each once, in the order of its tables."""
    there = there or campaign_hosts()
    found = dict[tuple[Case, object], Case]()
    for k, table in enumerate(campaign.cases, 1):
        which = f" ({k} of {len(campaign.cases)})" if len(campaign.cases) > 1 else ""
        for case, hosts in _product(table, f"{where} [[cases]]{which}", there):
            found.setdefault((case.with_(hosts="", per_node=0), hosts), case)
    return list(found.values())


def by_importance(cases: Sequence[Case]) -> list[CampaignRun]:
    """The first run of each case, in order, but after its base on one rank."""
    alone = {_without_ranks(case): case for case in reversed(cases) if case.placement.ranks == 1}
    pairs = ((alone.get(_without_ranks(case), case), case) for case in cases)
    order = dict.fromkeys(case for pair in pairs for case in pair)
    return [CampaignRun(run_id(case, 1), case, 1) for case in order]


def _without_ranks(case: Case) -> tuple[object, ...]:
    """What a case has in common with its base."""
    apart = fields_of("placement", "text")
    return tuple(value for name, value in case.flat().items() if name not in apart)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _product(table: dict[str, Any], where: str, there: CampaignHosts) -> list[PlacedCase]:
    """The cases of a table, without rows that do not fit if others have their values."""
    lists = _lists(table, where, there)
    several_ranks = len(lists.get("ranks", [])) > 1
    cases, no_room = [], dict[tuple[str, Any], HostsError]()
    fitting = set[tuple[str, Any]]()  # (key, value) that fit the hosts in some row
    for values in itertools.product(*lists.values()):
        row = dict(zip(lists, values))
        placing = [(key, row[key]) for key in ("ranks", *HOST_KEYS) if key in row]
        try:
            found = placed_case(row, there, where)
        except HostsError as error:
            no_room = dict.fromkeys(placing, error) | no_room
            continue
        fitting.update(placing)
        placement = found.case.placement
        try:
            parse_shares(placement.shares, placement.ranks)
        except InputError:
            if several_ranks and placement.shares:  # one row of the product; others may match
                continue
            raise
        placed = sized(found, row, there, where)
        cases.append(placed._replace(case=settled(placed.case)))
        try:
            check_memory(cases[-1].case, there)
        except InputError as error:
            raise InputError(f"{where} {error}") from None
    if misfit := next((one for one in no_room if one not in fitting), None):
        raise InputError(f"{where} {no_room[misfit]}")
    if not cases:
        raise InputError(f"{where} no shares match any of ranks = {lists.get('ranks')}")
    return cases


def _lists(table: dict[str, Any], where: str, there: CampaignHosts) -> dict[str, list[Any]]:
    """{key: values} of a table, host words as lists of hosts."""
    lists = {key: _listed(value) for key, value in table.items()}
    empty = [key for key, values in lists.items() if not values]
    if empty:
        raise InputError(f"{where} {empty[0]} = []: expected at least one value")
    for key, values in lists.items():  # each entry of a list would be a case
        other = [value for value in values if not isinstance(value, str)]
        if other and key not in HOST_KEYS and key in FIELDS and FIELDS[key].takes == TEXT:
            raise refused_value(where, key, other if len(other) > 1 else other[0])
    try:
        lists = spread(lists, there, where)
    except HostsError as error:
        raise InputError(f"{where} {error}") from None
    rows = math.prod(map(len, lists.values()))
    if rows > MOST_RUNS:
        raise InputError(f"{where} of {rows} cases; expected {MOST_RUNS} at most")
    return lists


def run_id(case: Case, repetition: int) -> str:
    """A file name that describes the run and is unique to its case across campaigns."""
    mesh = re.sub(r"[^A-Za-z0-9]+", "-", case.question.mesh.rstrip("/").split("/")[-1]).strip("-")[:120]
    stored = {FIELDS[name].stored: value for name, value in case.flat().items()}
    digest = hashlib.sha256(msgspec.json.encode(stored, order="sorted")).hexdigest()[:8]
    method = f"{case.method.storage}-{case.method.precond}"
    return f"{mesh}-{method}-p{case.placement.ranks}-{digest}-r{repetition}"
