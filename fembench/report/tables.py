"""All tables of a campaign, and the selection shown on a terminal."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from fembench.records.contest import PeersRecord
from fembench.records.nodes import NodesRecord, nodes_of_campaign
from fembench.records.record import NO_TIME, Failure, Record
from fembench.records.store import load_all
from fembench.report import (
    equality,
    laws,
    origin,
    rank_places,
    runs,
    speedup_tables,
    times,
    unequal_tables,
    work,
)
from fembench.report.balance_tables import balance_tables
from fembench.report.factors import every_factor, factors_table
from fembench.report.headline import HeadlineRow, headline, headline_table
from fembench.report.host_times import host_table, host_times
from fembench.report.measures import CG, SOLVE
from fembench.report.node_tables import report_table
from fembench.report.peer_tables import peers_tables
from fembench.report.results import Result, results
from fembench.report.roofline import roofline_points, roofline_table
from fembench.report.speedup import all_speedups, speedups_by_hosts
from fembench.report.table import Table, text
from fembench.report.unavailable import unavailable
from fembench.report.unequal import unequal_results
from fembench.report.weak import weak_phases, weak_points, weak_table
from fembench.weights.host_speed import host_speeds

TERMINAL = (
    "headline",
    "overview",
    "reasons",
    "kinds",
    "runs_apart",
    "summary",
    "speedup_cg",
    "speedup_none",
    "weak",
    "speedup_factors",
    "speedup_unequal",
    "communication",
    "partitions",
    "balance",
    "balance_gain",
    "failures",
    "left_out",
    "peers",
    "peers_base",
    "peers_missing",
)


class Against(NamedTuple):
    """Another campaign."""

    name: str
    records: Sequence[Record]
    nodes: NodesRecord | None = None


def other_campaign(folder: Path) -> Against:
    """The campaign in a folder. Raises InputError."""
    return Against(folder.resolve().name, load_all(folder), nodes_of_campaign(folder))


def terminal(
    records: Sequence[Record],
    failures: Iterable[Failure] = (),
    peers: PeersRecord | None = None,
    base: int = 0,
    against: Against | None = None,
    nodes: NodesRecord | None = None,
) -> str:
    """The most important tables, as aligned text."""
    shown = [t for t in every_table(records, failures, peers, base, against, nodes) if t.name in TERMINAL]
    return "\n\n".join(f"{t.title}\n\n{text(t)}" for t in shown)


def every_table(
    records: Sequence[Record],
    failures: Iterable[Failure] = (),
    peers: PeersRecord | None = None,
    base: int = 0,
    against: Against | None = None,
    nodes: NodesRecord | None = None,
) -> list[Table]:
    """Every table that has rows.

    `failures`: of the runs without a record, also of those that there was no time for. `base`: ranks of the
    base of speedups, 0: the fewest. `against`: another campaign, whose headline is shown
    next to this one's. `nodes`: what `fembench nodes` found on the same hosts.
    """
    found = results(records)
    failed, left_out = list[Failure](), list[Failure]()
    for failure in failures:
        (left_out if failure.kind == NO_TIME else failed).append(failure)
    unequal = unequal_results(found)
    speedups = {name: all_speedups(found, name, base) for name in speedup_tables.BY_PHASE}
    alone = all_speedups(found, SOLVE) if base else speedups[SOLVE]
    hosts = {name: speedups_by_hosts(found, name) for name in speedup_tables.BY_PHASE}
    weak, speeds = weak_points(found, base), host_speeds(nodes, _records(found))
    made = [
        headline_table(headline(found, speedups[CG], weak, unequal, speeds, len(left_out)), *_other(against)),
        runs.overview(found),
        runs.reasons(found),
        runs.failures(failed),
        runs.left_out(left_out),
        origin.kinds(records),
        times.apart(found),
        times.summary(found),
        speedup_tables.speedups(speedups[CG], CG, peers),
        speedup_tables.no_speedup(found, base),
        speedup_tables.speedups(speedups[SOLVE], SOLVE),
        speedup_tables.speedups_by_phase(speedups),
        speedup_tables.speedups_over_hosts(hosts),
        weak_table(weak),
        weak_phases(weak),
        factors_table(every_factor(found, unequal, base)),
        unequal_tables.efficiency(unequal),
        unequal_tables.against_alone(unequal),
        unequal_tables.bounds(alone, unequal),
        laws.amdahl_table(laws.amdahl_laws(alone, unequal)),
        laws.gustafson_table(laws.gustafson_laws(alone)),
        times.communication(found),
        times.send_receive(found),
        times.rates(found),
        roofline_table(roofline_points(found)),
        report_table(nodes),
        host_table(host_times(found), speeds),
        times.phases(found),
        times.mean_phases(found),
        work.balance(found),
        work.parts(found),
        work.iterations(found),
        *balance_tables(records),
        equality.rank_speeds(found),
        unavailable(found, unequal),
        origin.hosts(records),
        rank_places.places(records),
        origin.meshes(records),
        origin.clocks(records),
        origin.software(records),
        runs.rules(records),
        *(peers_tables(peers) if peers else ()),
    ]
    return [t for t in made if t.rows]


def _other(against: Against | None) -> tuple[Sequence[HeadlineRow], str]:
    """Headline of another campaign, and its name."""
    if against is None:
        return (), ""
    found = results(against.records)
    speedups, unequal = all_speedups(found, CG), unequal_results(found)
    speeds = host_speeds(against.nodes, _records(found))
    return headline(found, speedups, weak_points(found), unequal, speeds), against.name


def _records(found: Sequence[Result]) -> list[Record]:
    return [record for result in found for record in result.pool.records]
