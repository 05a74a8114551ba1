"""What a folder of results contains, all its tables, and the selection shown on a terminal.

What a report cannot show, and why: what is missing in the records, and how to measure it.

Needs neither jinja2 nor matplotlib.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fembench.base.config import read_text
from fembench.records import store
from fembench.records.binding import taking_turns
from fembench.records.contest import FILE as PEERS_FILE
from fembench.records.contest import PeersRecord, load_peers
from fembench.records.nodes import NodesRecord, nodes_of_campaign
from fembench.records.quiet import disturbance
from fembench.records.record import NO_TIME, Failure, Record
from fembench.report import equality, laws, origin, runs, speedup, times, work
from fembench.report.balance_tables import balance_tables
from fembench.report.conclusions import conclusions
from fembench.report.factors import every_factor, factors_table
from fembench.report.fields import fields_path
from fembench.report.headline import headline, headline_table
from fembench.report.measures import CG, SOLVE
from fembench.report.node_tables import nodes_table
from fembench.report.peer_tables import peers_tables
from fembench.report.results import Result, results
from fembench.report.roofline import roofline_points, roofline_table
from fembench.report.slow_hosts import host_table, host_times
from fembench.report.speedup import all_speedups
from fembench.report.table import Rows, Table, declared, text
from fembench.report.unequal import Unequal, against_alone, bounds, efficiency, unequal_results
from fembench.report.weak import strong, weak_phases, weak_points, weak_series, weak_table
from fembench.weights.host_speed import HostSpeeds

FIRST = ("headline", "reasons", "kinds")  # of those shown on a terminal
SCALING = ("speedup_cg", "weak", "speedup_unequal")  # the next ones, if runs can be compared,
TIMES = ("summary", "communication")  # and else
LAST = (
    "layouts",
    "devices",
    "solutions",
    "energy",
    "balance",
    "balance_gain",
    "failures",
    "left_out",
    "peers",
    "peers_missing",
)
TERMINAL = (  # with --all
    "headline",
    "overview",
    "reasons",
    "kinds",
    "runs_apart",
    "summary",
    "speedup_cg",
    "weak",
    "speedup_factors",
    "speedup_unequal",
    "communication",
    "solutions",
    "energy",
    "levels",
    "layouts",
    "threads",
    "devices",
    "partitions",
    "balance",
    "balance_gain",
    "failures",
    "left_out",
    "peers",
    "peers_base",
    "peers_missing",
)


def selected(found: Sequence[Table], everything: bool = False) -> str:
    """The tables that support the conclusions, as aligned text; or `everything` for a terminal."""
    compared = any(t.name == "speedup_cg" and np.isfinite(t["speedup"]).any() for t in found)
    shown = TERMINAL if everything else (*FIRST, *(SCALING if compared else TIMES), *LAST)
    return "\n\n".join(f"{t.title}\n\n{text(t)}" for t in found if t.name in shown)


def every_table(
    records: Sequence[Record],
    failures: Iterable[Failure] = (),
    peers: PeersRecord | None = None,
    base: int = 0,
    nodes: NodesRecord | None = None,
) -> list[Table]:
    """Every table that has rows.

    `failures`: of runs without a record. `base`: ranks of the base of speedups, 0: the
    fewest. `nodes`: of the same hosts.
    """
    found = results(records, nodes)
    failed, left_out = list[Failure](), list[Failure]()
    for failure in failures:
        (left_out if failure.kind == NO_TIME else failed).append(failure)
    unequal = unequal_results(found)
    speedups = {name: all_speedups(found, name, base) for name in speedup.BY_PHASE}
    alone = all_speedups(found, SOLVE) if base else speedups[SOLVE]
    weak = weak_points(found, base)
    speeds = found[0].speeds if found else HostSpeeds()
    made = [
        headline_table(headline(found, speedups, weak, unequal, speeds, len(left_out))),
        runs.overview(found),
        runs.reasons(found),
        runs.failures(failed),
        runs.left_out(left_out),
        origin.kinds(records),
        times.apart(found),
        times.summary(found),
        speedup.speedups(speedups[CG] if peers else strong(speedups[CG], weak), CG, peers),
        speedup.speedups_by_phase(speedups),
        weak_table(weak),
        weak_phases(weak),
        factors_table(every_factor(found, unequal, base)),
        efficiency(unequal),
        against_alone(unequal),
        bounds(alone, unequal),
        laws.laws_table(laws.amdahl_laws(alone, unequal), laws.gustafson_laws(alone)),
        times.communication(found),
        times.send_receive(found),
        times.levels(found),
        times.noted(times.solutions(found), [r for r in found if r.solved]),
        times.energies(found),
        times.rates(found),
        roofline_table(roofline_points(found)),
        nodes_table(nodes),
        host_table(host_times(found), speeds),
        times.noted(times.phases(found), found),
        times.mean_phases(found),
        *work.tables(found),
        *balance_tables(records),
        equality.rank_speeds(found),
        unavailable(found, unequal),
        *origin.every(records),
        runs.rules(records),
        *(peers_tables(peers) if peers else ()),
    ]
    return [t for t in made if t.rows]


_WEAK = "no two runs on different numbers of ranks have equal equations per rank (within 10 %)"
_STRONG = "no mesh was run on more than one number of ranks"
_HOSTS = "every run used one host"
_APART = "run with a core for every rank; fembench nodes measures the speed of hosts by itself"
_TRACE = "no run on several ranks has traced iterations"
_ROOF = "no run measured the bandwidth of its ranks"
_ALONE = "no run on one rank of each host"


@declared(
    "unavailable",
    "Not available",
    "What this page would also show, if these results contained the measurements.",
    "what; why: not available because; remedy: to get it",
)
def unavailable(found: Sequence[Result], unequal: Sequence[Unequal] = ()) -> Rows:
    """One row per table or plot that these results do not give."""
    records = [record for r in found for record in r.pool.records]
    if not found:
        return
    if not any(len({r.ranks for r in found if r.mesh == one.mesh}) > 1 for one in found):
        yield "strong scaling: speedup, efficiency", _STRONG, "run a mesh on several numbers of ranks"
    if not weak_series(found):
        yield "weak scaling", _WEAK, "let the mesh grow with the ranks"
    if all(len(set(r.environment.rank_host)) == 1 for r in records):
        yield "phases by host", _HOSTS, "run on several hosts"
    elif turns := _only_in_turns(records):
        yield "phases by host", f"{turns} in every run on several hosts", _APART
    parallel = [r for r in records if r.case.placement.ranks > 1]
    if parallel and not any(e.iteration >= 0 for r in parallel for e in r.events):
        yield "serialization and transfer", _TRACE, "run with --trace-iterations 3"
    if not any(r.solve.bandwidth for r in records):
        yield "roofline", _ROOF, "run again with this version of fembench"
    for name in dict.fromkeys(name for u in unequal for name in u.hosts if name not in u.alone):
        yield f"speedup over {name} alone", _ALONE, f"run the same case on one rank of {name}"


def _only_in_turns(records: Iterable[Record]) -> str:
    """'6 ranks take turns on 2 cores', of the last run, if so in all on several hosts."""
    turns = [taking_turns(r.environment) for r in records if len(set(r.environment.rank_host)) > 1]
    return turns[-1] if turns and all(turns) else ""


@dataclasses.dataclass(frozen=True, slots=True)
class CampaignResults:
    """The contents of a folder of results."""

    name: str
    records: list[Record]
    failures: list[Failure]  # also of runs that there was no time for
    fields: dict[str, Path]  # record id -> file
    description: str  # campaign.toml, or ""
    peers: PeersRecord | None = None  # a comparison with other programs
    nodes: NodesRecord | None = None  # which hosts are slow

    @property
    def failed(self) -> int:
        """The number of runs that failed."""
        return sum(failure.kind != NO_TIME for failure in self.failures)


def tables_of(campaign: CampaignResults, base: int = 0) -> list[Table]:
    """Every table of the campaign that has rows.

    base: ranks of the run to which speedups refer; 0: the fewest
    """
    return every_table(campaign.records, campaign.failures, campaign.peers, base, campaign.nodes)


def conclusions_of(campaign: CampaignResults) -> list[str]:
    """What its runs show, in sentences; first, what disturbed a comparison with other programs."""
    disturbed = disturbance([campaign.peers.environment], "times of peers") if campaign.peers else ""
    said = conclusions(results(campaign.records, campaign.nodes), campaign.failed)
    return [f"{disturbed}.", *said] if disturbed else said


def read_campaign(folder: Path, peers_file: Path | None = None) -> CampaignResults:
    """The contents of a folder. Raises InputError without record, failure, comparison."""
    failures = list(store.failures(folder)) if folder.is_dir() else []
    inside = folder / PEERS_FILE
    found_peers = peers_file or (inside if inside.is_file() else None)
    peers = load_peers(found_peers) if found_peers else None
    lenient = failures or (peers and not peers_file)
    records = store.distinct(map(store.load, store.run_paths(folder))) if lenient else store.load_all(folder)
    found = {r.id: fields_path(folder, r.id) for r in records}
    description = folder / "campaign.toml"
    return CampaignResults(
        name=folder.resolve().name,
        records=records,
        failures=failures,
        fields={name: path for name, path in found.items() if path.is_file()},
        description=read_text(description) if description.is_file() else "",
        peers=peers,
        nodes=nodes_of_campaign(folder),
    )
