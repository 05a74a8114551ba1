"""All tables of a campaign, and the choice that a terminal shows."""

from collections.abc import Iterable, Sequence

from fembench.records.peers import PeersRecord
from fembench.records.record import Failure, Record
from fembench.report import measures, origin, runs, times, unequal_tables, work
from fembench.report.balance import balance_tables
from fembench.report.peers import peers_tables
from fembench.report.results import Result, results
from fembench.report.speedup import Speedup, speedup
from fembench.report.table import Table, text
from fembench.report.unequal import laws, unequal_results

TERMINAL = (
    "overview",
    "reasons",
    "kinds",
    "summary",
    "speedup_cg",
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
    records: Sequence[Record], failures: Iterable[Failure] = (), peers: PeersRecord | None = None
) -> str:
    """The tables that matter most, as aligned text."""
    shown = [t for t in every_table(records, failures, peers) if t.name in TERMINAL]
    return "\n\n".join(f"{t.title}\n\n{text(t)}" for t in shown)


def every_table(
    records: Sequence[Record], failures: Iterable[Failure] = (), peers: PeersRecord | None = None
) -> list[Table]:
    """Every table that has rows."""
    found = results(records)
    unequal = unequal_results(found)
    made = [
        runs.overview(found),
        runs.reasons(found),
        runs.failures(failures),
        origin.kinds(records),
        times.summary(found),
        times.speedups(all_speedups(found), "cg"),
        times.speedups(all_speedups(found, measures.SOLVE), measures.SOLVE),
        unequal_tables.efficiency(unequal),
        unequal_tables.against_alone(unequal),
        unequal_tables.laws(laws(all_speedups(found, measures.SOLVE), unequal)),
        times.communication(found),
        times.send_receive(found),
        times.rates(found),
        times.phases(found),
        times.thesis(found),
        work.balance(found),
        work.parts(found),
        work.iterations(found),
        *balance_tables(records),
        origin.hosts(records),
        origin.meshes(records),
        origin.clocks(records),
        origin.software(records),
        runs.rules(records),
        *(peers_tables(peers) if peers else ()),
    ]
    return [t for t in made if t.rows]


def all_speedups(found: Sequence[Result], quantity: str = "cg") -> list[Speedup]:
    """Every result on more than one rank against its base."""
    return [speedup(r, found, quantity) for r in found if r.ranks > 1]
