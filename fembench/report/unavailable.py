"""What a report cannot show, and why: what is missing in the records, and how to measure it."""

from collections.abc import Iterable, Sequence

from fembench.records.record import Record
from fembench.records.turns import taking_turns
from fembench.report.results import Result
from fembench.report.table import Table, words
from fembench.report.unequal import Unequal
from fembench.report.weak import weak_series

_WEAK = "no two runs on different numbers of ranks have equal equations per rank (within 10 %)"
_STRONG = "no mesh was run on more than one number of ranks"
_HOSTS = "every run used one host"
_APART = "run with a core for every rank; fembench nodes measures the speed of hosts by itself"
_TRACE = "no run on several ranks has traced iterations"
_ROOF = "no run measured the bandwidth of its ranks"
_ALONE = "no run on one rank of each host"


def unavailable(found: Sequence[Result], unequal: Sequence[Unequal] = ()) -> Table:
    """One row per table or plot that these results do not give."""
    records = [record for r in found for record in r.pool.records]
    return Table(
        "unavailable",
        "Not available",
        "What this page would also show, if these results contained the measurements.",
        (words("what"), words("not available because", "why"), words("to get it", "remedy")),
        tuple(_rows(found, records, unequal)) if found else (),
    )


def _rows(
    found: Sequence[Result], records: Sequence[Record], unequal: Iterable[Unequal]
) -> Iterable[tuple[str, str, str]]:
    if not any(len({r.ranks for r in found if r.mesh == one.mesh}) > 1 for one in found):
        yield "strong scaling: speedup, efficiency", _STRONG, "run a mesh on several numbers of ranks"
    if not weak_series(found):
        yield "weak scaling", _WEAK, "let the mesh grow with the ranks"
    if all(len(set(r.environment.rank_host)) == 1 for r in records):
        yield "speedup by hosts, phases by host", _HOSTS, "run on several hosts"
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
    """'6 ranks take turns on 2 cores', if ranks do so in every run on several hosts: that of the last one."""
    turns = [taking_turns(r.environment) for r in records if len(set(r.environment.rank_host)) > 1]
    return turns[-1] if turns and all(turns) else ""
