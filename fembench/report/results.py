"""The results of a campaign: pools of repeated runs, with times and short names.

A result is named by `mesh`, `method` (what is computed and how: storage,
preconditioner, …) and `setting` (ranks and how they share the mesh). Results of one
mesh and method form a series.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from fembench.base import units
from fembench.records.binding import OVERSUBSCRIBED, oversubscribed
from fembench.records.case import FIELDS, fields_of
from fembench.records.compare import Pool, host_names, pools, ranks_in_words, same_kind
from fembench.records.nodes import NodesRecord
from fembench.records.quiet import foreign_work
from fembench.records.record import Environment, Record
from fembench.records.times import Times, times_of
from fembench.report.measures import Time, times
from fembench.weights.host_speed import HostSpeeds, host_speeds

P = ParamSpec("P")
T = TypeVar("T")
LONG_DECIMAL = re.compile(r"\d*\.\d{4,}")
MOST_SHARES = 4  # shown in full
# fields that users vary on purpose: how a result is computed, and how its ranks share
# the mesh
METHOD = tuple(n for n in fields_of("question", "method", varied=True) if n not in ("mesh", "storage"))
SHARING = tuple(n for n in fields_of("placement", varied=True) if n not in ("ranks", "shares"))
ALWAYS = ("precond", "recurrence", "device")  # named even if all share it, unless the default
MAIN = ("mesh", "storage", *METHOD, "ranks", "shares", *SHARING)
# other fields: used only if two results would otherwise have the same name
METHOD_TOO = fields_of("question", "method", "effort", "synthetic", varied=False)
SHARING_TOO = fields_of("placement", "text", varied=False)
CASE = "mesh; method; ranks setting: ranks | {1}"  # the columns that name a result


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One pool, ready for tables and plots."""

    pool: Pool
    mesh: str
    method: str  # "csr", "sym · jacobi", "csr · kind B", "csr · SYNTHETIC"
    placement: str  # how the ranks share the mesh, if not by default: "7:1", "rcb", ""
    runs: tuple[Times, ...]  # one per record of the pool
    times: dict[str, Time]
    speeds: HostSpeeds  # of all hosts of the campaign
    disturbed: bool  # whether foreign work took CPU time in a run

    @property
    def ranks(self) -> int:
        return self.pool.case.placement.ranks

    @property
    def hosts(self) -> int:
        """Number of hosts that the ranks ran on."""
        return len(set(self.record.environment.rank_host))

    @property
    def setting(self) -> str:
        """'4', '2 · 7:1', '4 · rcb'."""
        return f"{self.ranks} · {self.placement}" if self.placement else str(self.ranks)

    @property
    def marked(self) -> str:
        """'4 · rcb · DISTURBED': the setting, and why nothing follows from its times."""
        return " · ".join([self.setting, *unfit(self)])

    @property
    def in_words(self) -> str:
        """'one rank', '4 ranks', '4 ranks (2:1:1:1)': with how they share the mesh, if not by default."""
        return ranks_in_words(self.ranks) + (f" ({self.placement})" if self.placement else "")

    @property
    def solved(self) -> bool:
        """Whether it iterated until the residual met the tolerance."""
        return self.record.solve.converged and not self.pool.case.stop.iterations

    @property
    def record(self) -> Record:
        """The record that represents the pool in everything but times."""
        return self.pool.first

    @property
    def series(self) -> tuple[str, str]:
        """The key of results that differ only in ranks and in how these share the mesh."""
        return self.mesh, self.method


def last_kept(made: Callable[P, T]) -> Callable[P, T]:
    """The function, which gives its last result again for the same objects in the same order.

    Sentences, tables and plots of a report are of the same records.
    """
    last: list[tuple[list[object], T]] = []

    @functools.wraps(made)
    def again(*given: P.args, **named: P.kwargs) -> T:
        parts = (*given, *named.values())
        of = [one for part in parts for one in (part if isinstance(part, Sequence) else [part])]
        if last and [*map(id, of)] == [*map(id, last[0][0])]:
            return last[0][1]
        found = made(*given, **named)
        last[:] = [(of, found)] if of else last  # of nothing, it is made quickly
        return found

    return again


@last_kept
def results(records: Sequence[Record], nodes: NodesRecord | None = None) -> list[Result]:
    """One result per pool of `records`, sorted by size of mesh, method, ranks and setting.

    `nodes`: what `fembench nodes` found on the same hosts.
    """
    if not records:
        return []
    found = pools(records)
    speeds = host_speeds(nodes, records)
    kinds = kinds_of(records)
    meshes = _mesh_labels(records)
    made = []
    for pool in found:
        siblings = [p for p in found if p.case.question.mesh == pool.case.question.mesh]
        runs = tuple(map(times_of, pool.records))
        made.append(
            Result(
                pool=pool,
                mesh=meshes[pool.case.question.mesh, pool.first.mesh.hash],
                method=_method(pool, siblings, kinds),
                placement=_placement(pool, siblings),
                runs=runs,
                times=times(runs, pool.first),
                speeds=speeds,
                disturbed=bool(foreign_work([record.environment for record in pool.records])),
            )
        )
    return sorted(made, key=lambda r: (r.record.mesh.n_equations, r.mesh, r.method, r.ranks, r.placement))


def crowded(result: Result) -> bool:
    """Whether its ranks share cores, as rule C4 says."""
    return oversubscribed(result.record.environment, result.pool.case.synthetic.dilate)


def environments(used: Iterable[Result]) -> list[Environment]:
    """Those of all their runs."""
    return [record.environment for r in used for record in r.pool.records]


def of_real_hosts(found: Sequence[Result]) -> list[Result]:
    """Those that are not SYNTHETIC; if all are, all."""
    return [r for r in found if not r.record.environment.synthetic] or list(found)


def unfit(*used: Result) -> list[str]:
    """Why no advice follows from the times of these results; [] if it may."""
    labels = {
        OVERSUBSCRIBED: any(map(crowded, used)),
        "DISTURBED": any(r.disturbed for r in used),
    }
    return [label for label, holds in labels.items() if holds]


def flaws(*used: Result) -> list[str]:
    """Labels of a number from these results: what a reader must know of it."""
    provisional = any(r.pool.status == "PROVISIONAL" for r in used)
    return [*(["PROVISIONAL"] if provisional else []), *unfit(*used)]


def case_of(result: Result) -> tuple[object, ...]:
    """Values of the columns CASE.

    A case that is INVALID, OVERSUBSCRIBED or DISTURBED says so wherever its numbers are shown.
    """
    status = result.pool.status
    method = " · ".join([result.method, *unfit(result)])
    if status == "INVALID" and not method.endswith(status):
        method = f"{method} · {status}"
    return result.mesh, method, (result.ranks, result.setting)


def by_mesh(found: Iterable[Result]) -> dict[str, list[Result]]:
    """mesh -> its results, in their order."""
    return {mesh: list(group) for mesh, group in itertools.groupby(found, key=lambda r: r.mesh)}


def by_series(found: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """(mesh, method) -> its results, in their order."""
    return {key: list(group) for key, group in itertools.groupby(found, key=lambda r: r.series)}


def methods(found: Iterable[Result]) -> list[str]:
    """Names of all methods, in their order."""
    return list(dict.fromkeys(r.method for r in found))


def kinds_of(records: Iterable[Record]) -> list[Record]:
    """One record of each kind; kinds differ in CPU, libraries, clock, …"""
    kinds: list[Record] = []
    for record in sorted(records, key=lambda r: (r.created, r.id)):
        if all(kind_difference(kind, record) for kind in kinds):
            kinds.append(record)
    return kinds


def kind_letter(record: Record, kinds: Sequence[Record]) -> str:
    """The letter of a record's kind: 'A', 'B', …"""
    index = next(i for i, kind in enumerate(kinds) if not kind_difference(kind, record))
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def kind_difference(a: Record, b: Record) -> str | None:
    """The first field in which two records differ, but for mesh, problem and hosts."""
    return same_kind(a, b, but=("host set", "mesh hash", "problem"))


def _mesh_labels(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    """(mesh of the case, hash) -> its name; with the hash if several have that name."""
    hashes: dict[str, set[str]] = {}
    for record in records:
        hashes.setdefault(record.case.question.mesh, set()).add(record.mesh.hash)
    return {
        (mesh, digest): mesh_name(mesh) + (f" #{digest[:6]}" if len(found) > 1 else "")
        for mesh, found in hashes.items()
        for digest in found
    }


def mesh_name(mesh: str) -> str:
    """The name of a mesh file without its folders."""
    return mesh.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or mesh


def _method(pool: Pool, siblings: Sequence[Pool], kinds: Sequence[Record]) -> str:
    words = [pool.case.method.storage, *_words(pool, siblings, METHOD)]
    words += _words(pool, _twins(pool, siblings), METHOD_TOO)
    if len(kinds) > 1:
        words.append(f"kind {kind_letter(pool.first, kinds)}")
    if pool.apart == "verdict":
        words.append(pool.status)
    if pool.apart == "problem":
        words.append("other problem")
    if pool.first.environment.synthetic:
        words.append("SYNTHETIC")
    return " · ".join(words)


def _placement(pool: Pool, siblings: Sequence[Pool]) -> str:
    words = [
        _shares(pool, siblings),
        *_words(pool, siblings, SHARING),
        *_words(pool, _twins(pool, siblings), SHARING_TOO),
    ]
    if pool.apart == "host set":
        words.append("on " + ", ".join(host_names(pool.first)))
    return " · ".join(w for w in words if w)


def _shares(pool: Pool, siblings: Sequence[Pool]) -> str:
    """The shares of a pool, as short as tells them apart from those of the other pools."""
    exact = pool.case.placement.shares
    others = {p.case.placement.shares for p in siblings} - {exact}
    forms = (short_shares, rounded_shares)
    return next((f(exact) for f in forms if all(f(one) != f(exact) for one in others)), exact)


def short_shares(text: str) -> str:
    """'0.683,0.317' for '0.682944866,0.317055134'; '2:1:…:1' for '2:1:3:2:1'."""
    parts = re.split("([,:])", rounded_shares(text))
    return "".join([*parts[:4], "…", *parts[-2:]]) if len(parts) > 2 * MOST_SHARES else "".join(parts)


def rounded_shares(text: str) -> str:
    """The same shares, long decimals with three significant digits."""
    return LONG_DECIMAL.sub(lambda found: units.digits(float(found[0])), text)


def _twins(pool: Pool, siblings: Sequence[Pool]) -> list[Pool]:
    """The siblings that only fields other than the main ones tell from `pool`."""
    mine = pool.case.flat()
    flat = [p.case.flat() for p in siblings]
    return [p for p, theirs in zip(siblings, flat) if all(theirs[f] == mine[f] for f in MAIN)]


def _words(pool: Pool, siblings: Sequence[Pool], fields: Iterable[str]) -> list[str]:
    """Values of the case fields that differ among the siblings or are ALWAYS named.

    Defaults are left out.
    """
    flat = [p.case.flat() for p in siblings]
    varying = (f for f in fields if f in ALWAYS or len({case[f] for case in flat}) > 1)
    said = pool.case.said()
    return [FIELDS[f].shown(said[f]) for f in varying if f in said]
