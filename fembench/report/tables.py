"""All tables of a campaign, and the selection shown on a terminal."""

from collections.abc import Iterable, Sequence

from fembench.records.contest import PeersRecord
from fembench.records.record import Failure, Record
from fembench.report import (
    equality,
    laws,
    origin,
    runs,
    speedup_tables,
    times,
    unequal_tables,
    work,
)
from fembench.report.balance_tables import balance_tables
from fembench.report.measures import CG, SOLVE
from fembench.report.peer_tables import peers_tables
from fembench.report.results import results
from fembench.report.speedup import all_speedups
from fembench.report.table import Table, text
from fembench.report.unequal import unequal_results

TERMINAL = (
    "overview",
    "reasons",
    "kinds",
    "runs_apart",
    "summary",
    "speedup_cg",
    "speedup_none",
    "speedup_unequal",
    "communication",
    "partitions",
    "balance",
    "balance_gain",
    "failures",
    "peers",
    "peers_base",
    "peers_missing",
)


def terminal(
    records: Sequence[Record],
    failures: Iterable[Failure] = (),
    peers: PeersRecord | None = None,
    base: int = 0,
) -> str:
    """The most important tables, as aligned text."""
    shown = [t for t in every_table(records, failures, peers, base) if t.name in TERMINAL]
    return "\n\n".join(f"{t.title}\n\n{text(t)}" for t in shown)


def every_table(
    records: Sequence[Record],
    failures: Iterable[Failure] = (),
    peers: PeersRecord | None = None,
    base: int = 0,
) -> list[Table]:
    """Every table that has rows. `base`: ranks of the base of speedups, 0: the fewest."""
    found = results(records)
    unequal = unequal_results(found)
    speedups = {name: all_speedups(found, name, base) for name in speedup_tables.BY_PHASE}
    alone = all_speedups(found, SOLVE) if base else speedups[SOLVE]
    made = [
        runs.overview(found),
        runs.reasons(found),
        runs.failures(failures),
        origin.kinds(records),
        times.apart(found),
        times.summary(found),
        speedup_tables.speedups(speedups[CG], CG, peers),
        speedup_tables.no_speedup(found, base),
        speedup_tables.speedups(speedups[SOLVE], SOLVE),
        speedup_tables.speedups_by_phase(speedups),
        unequal_tables.efficiency(unequal),
        unequal_tables.against_alone(unequal),
        laws.amdahl_table(laws.amdahl_laws(alone, unequal)),
        laws.gustafson_table(laws.gustafson_laws(alone)),
        times.communication(found),
        times.send_receive(found),
        times.rates(found),
        times.phases(found),
        times.mean_phases(found),
        work.balance(found),
        work.parts(found),
        work.iterations(found),
        *balance_tables(records),
        equality.rank_speeds(found),
        origin.hosts(records),
        origin.meshes(records),
        origin.clocks(records),
        origin.software(records),
        runs.rules(records),
        *(peers_tables(peers) if peers else ()),
    ]
    return [t for t in made if t.rows]
