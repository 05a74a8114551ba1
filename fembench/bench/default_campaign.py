"""The campaigns of `fembench sweep` without a file, made for the hosts of the job.

One host: strong and weak scaling from one rank to all cores, and a small mesh to a
tolerance: two to three minutes. Several hosts: from one core over 1, 2, 4, … hosts to all; if
their measured speeds differ, also with shares by speed, and without the slow hosts.
Tables come in the order of their importance: if time is limited, the last go first.

The campaign `solution`: strong and weak scaling of whole solutions by multigrid, set-up
included, on meshes large enough for grids on all ranks and for grids on rank 0.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fembench.bench.campaign_file import Campaign
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.launch.hosts import folded
from fembench.mesh.presets import box_named

NAME, SOLUTION = "default", "solution"
Table = dict[str, Any]
EFFORT = {"sets": 10, "warmups": 2, "seconds": 2.5, "precision": 2.0}
FEWEST_SECONDS, MOST_SECONDS = 4.0, 30.0  # limits of max_seconds where the time is given
MEASURING = 0.5  # of the time of a run: at most this is spent in timed sets
ITERATIONS = {"m": 100, "l": 50, "xl": 25}  # fixed work; of m and l, references are shipped
USUAL, LEAST, MOST = 20_000, 1_000, 640_000  # equations per rank of strong scaling
MOST_SOLVED = 2 * MOST  # of a whole solution
WEAK = 50_000  # equations per rank
WEAK_SOLUTION = 200_000  # so that the first grid is spread over the ranks
SOLVED = {"precond": "multigrid", "tolerance": 1e-7, "tolerance_kind": "relative"}


def default_campaign(there: CampaignHosts, *, shares: str = "", minutes: float = 0.0) -> Campaign:
    """The campaign for these hosts. `shares`: by speed, if known. `minutes`: 0: no limit."""
    name, effort = NAME, EFFORT
    if minutes:
        name = f"{NAME}-{minutes:g}-minutes"
        effort = effort | {"max_seconds": _most_seconds(there, minutes)}
    return Campaign(name=name, timeout=900.0, cases=tuple(table | effort for table in _tables(there, shares)))


def solution_campaign(there: CampaignHosts) -> Campaign:
    """Strong and weak scaling of whole solutions, from one core to all."""
    n_equations = USUAL * there.job.slots
    rungs = ladder(len(there.job.hosts)) or ["half"]
    large = {"mesh": f"box:{n_equations}", "partitioner": "blocks"}
    strong = large if n_equations > _equations("l") else {"mesh": "l"}
    n_equations = max(n_equations, _equations("l"))
    words: list[int | str] = [1, *rungs, "all"]
    fitting = [word for word in words if n_equations <= MOST_SOLVED * _ranks(there, word)]
    weak = {"equations_per_rank": WEAK_SOLUTION, "partitioner": "blocks", "ranks": words}
    tables = (strong | {"ranks": fitting}, weak)
    return Campaign(name=SOLUTION, timeout=900.0, cases=tuple(table | SOLVED | EFFORT for table in tables))


def _tables(there: CampaignHosts, shares: str) -> list[Table]:
    return _one_host(there) if len(there.job.hosts) == 1 else _hosts(there, shares)


def _most_seconds(there: CampaignHosts, minutes: float) -> float:
    """Most seconds of timed sets per run, so that each case can run once at any speeds."""
    tables = _tables(there, "")
    runs = sum(math.prod(len(v) for v in table.values() if isinstance(v, list)) for table in tables)
    return min(MOST_SECONDS, max(FEWEST_SECONDS, round(MEASURING * 60 * minutes / runs, 1)))


def _one_host(there: CampaignHosts) -> list[Table]:
    meshes = [name for name in ITERATIONS if name != "xl" or _strong(there)["mesh"] == "xl"]
    weak = {"equations_per_rank": WEAK, "iterations": 100, "partitioner": "blocks"}
    found = [_fixed(name) | {"ranks": _fitting(there, name, [1, "all"])} for name in meshes]
    found += [weak | {"ranks": [1, "all"]}, _pictures(there, "all")]
    found += [{"mesh": "m3", "ranks": _fitting(there, "m3", [1, "all"])}]
    halves = [_fixed(name) | {"ranks": _fitting(there, name, ["half"])} for name in meshes]
    return [*found, *(table for table in halves if table["ranks"]), weak | {"ranks": ["half"]}]


def _hosts(there: CampaignHosts, shares: str) -> list[Table]:
    """Several hosts."""
    strong = _strong(there)
    rungs = ladder(len(there.job.hosts))
    mesh = strong["mesh"]
    found = [strong | {"ranks": _fitting(there, mesh, [1, "all"])}]
    found += _large(there) if _equations(mesh) < USUAL * there.job.slots else []
    if shares and _unequal(there):
        found += [strong | {"ranks": "all", "shares": shares}, strong | _without_slow(there)]
    weak = {"equations_per_rank": WEAK, "iterations": 100, "partitioner": "blocks"}
    found.append(weak | {"ranks": [1, "node", "all"]})
    fitting = _fitting(there, mesh, rungs)
    found += [strong | {"ranks": fitting}] if fitting else []
    found += [weak | {"ranks": rungs[1:]}] if rungs[1:] else []
    return [*found, _pictures(there, "node")]


def _without_slow(there: CampaignHosts) -> Table:
    """The fast hosts, named as in strong scaling if they come first."""
    fast = there.fast()
    if list(there.job.hosts[: len(fast)]) == fast:
        return {"ranks": _nodes(len(fast))}
    return {"ranks": "all", "hosts": folded(host.name for host in fast)}


def _pictures(there: CampaignHosts, word: str) -> Table:
    """A mesh solved to its tolerance, with pictures of the body and its parts."""
    return {"mesh": "s", "ranks": _fitting(there, "s", [1, word]), "fields": True}


def _fixed(name: str) -> Table:
    """A preset with its fixed work."""
    parts = {"partitioner": "blocks"} if name == "xl" else {}
    return {"mesh": name, "iterations": ITERATIONS[name], **parts}


def _fitting(there: CampaignHosts, mesh: str, words: Sequence[int | str]) -> list[int | str]:
    """The words whose ranks have enough equations of a mesh each."""
    return [word for word in words if word == 1 or _equations(mesh) >= LEAST * _ranks(there, word)]


def _large(there: CampaignHosts) -> list[Table]:
    """Strong scaling of a mesh for all ranks, from the fewest hosts that can hold it."""
    n_equations = USUAL * there.job.slots
    rungs = [word for word in ladder(len(there.job.hosts)) if n_equations <= MOST * _ranks(there, word)]
    box = {"mesh": f"box:{n_equations}", "partitioner": "blocks", "iterations": ITERATIONS["xl"]}
    return [box | {"ranks": [*rungs[:1], "all"]}] + ([box | {"ranks": rungs[1:]}] if rungs[1:] else [])


def _strong(there: CampaignHosts) -> Table:
    """The smallest preset with 20 000 equations for each rank, or the largest."""
    slots = there.job.slots
    return _fixed(next((name for name in ITERATIONS if _equations(name) >= USUAL * slots), "xl"))


def ladder(n_hosts: int) -> list[str]:
    """'node', '2 nodes', '4 nodes', …: fewer than all hosts."""
    return [_nodes(2**k) for k in range(n_hosts.bit_length()) if 2**k < n_hosts]


def _nodes(n: int) -> str:
    return "node" if n == 1 else f"{n} nodes"


def _ranks(there: CampaignHosts, word: int | str) -> int:
    """The ranks that a number or a word stands for."""
    slots = [host.slots for host in there.job.hosts]
    if isinstance(word, int) or word in ("half", "all"):
        return word if isinstance(word, int) else sum(slots) // (2 if word == "half" else 1)
    return sum(slots[: 1 if word == "node" else int(word.split()[0])])


def _equations(mesh: str) -> int:
    box = box_named(mesh)
    return box.n_equations if box else 0


def _unequal(there: CampaignHosts) -> bool:
    """Whether the speed of some host is known to be less than 90 % of the fastest."""
    return bool(there.measured and there.slow())


def as_toml(campaign: Campaign, comment: str) -> str:
    """A campaign file with all that is not at its default."""
    head = {
        field.name: value
        for field in msgspec.structs.fields(campaign)
        if field.name != "cases" and (value := getattr(campaign, field.name)) != field.default
    }
    lines = [f"# {line}" for line in comment.splitlines()] + _lines(head)
    for table in campaign.cases:
        lines += ["", "[[cases]]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, Any]) -> list[str]:
    """JSON's words for text, numbers and lists are TOML's, too."""
    return [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in values.items()]
