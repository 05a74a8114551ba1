"""Which host computes which part of a mesh: the placement with the shortest predicted iteration."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fembench.base.errors import InputError, shown
from fembench.base.progress import progress, working
from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.model.configuration import not_invalid
from fembench.model.hosts_for_parts import given, measured
from fembench.model.iteration_time import CandidateHost
from fembench.model.placement import FORMATS, JUDGED, LAUNCH, Placement
from fembench.records.hlogp import parse_link
from fembench.records.profile import load_profile, provisional
from fembench.records.record import Record
from fembench.records.store import load
from fembench.synthetic.speeds import parse_speeds

_HOST = re.compile(
    r"(?P<name>[^\s:,]+):(?P<slots>[0-9]{1,6})(?::(?P<cores>[0-9]{1,6}))?(?::(?P<speed>[^:]+))?"
)
MANY = 16  # ranks from which it takes more than a second or two


@dataclass(frozen=True)
class Placed:
    """A placement, and the hosts that it chose from."""

    best: Placement
    hosts: Sequence[CandidateHost]
    computing: Sequence[float]  # [rank] seconds of an iteration
    warning: str  # why the profile is PROVISIONAL; "" if it is not

    @property
    def names(self) -> list[str]:
        """[rank] its host."""
        return [self.hosts[p].name for p in self.best.place]

    def file(self, form: str, path: str) -> tuple[str, str]:
        """(the file for a launcher, how to use it if it is at `path`)."""
        how = LAUNCH[form].format(path=path, ranks=len(self.best.place))
        return FORMATS[form](self.best.place, self.hosts), how

    @property
    def text(self) -> str:
        """The ranks with their hosts, and the placements that were compared."""
        ranks = [[r, name, seconds(self.computing[r])] for r, name in enumerate(self.names)]
        judged = sorted([*self.best.starts, (self.best.start, self.best.seconds)], key=lambda pair: -pair[1])
        return "\n".join(
            [
                table(["rank", "host", "computing per iteration"], ranks, align="rlr"),
                "",
                table(["placement", "predicted iteration"], [[n, seconds(t)] for n, t in judged], align="lr"),
            ]
        )


def placed(
    record: Path | str, *, machine: Path | str = "", hosts: str = "", link: str = "", inside: str = ""
) -> Placed:
    """The best placement of the parts of a run. Raises InputError.

    machine: file of a profile with a network; or hosts: NAME:SLOTS[:CORES[:SPEED]],… with the network `link`
    between and `inside` them, SECONDS,BYTES/S
    """
    run = not_invalid([load(record)])[0][0]
    warning = ""
    if machine:
        profile = load_profile(machine)
        ground, warning = measured(run, profile, str(machine)), provisional(profile)
    else:
        links = parse_link(link)[:2], parse_link(inside)[:2]
        ground = given(run, _speeds(run), hosts_of(hosts), *links)
    ranks = run.case.placement.ranks
    if ranks >= MANY:
        progress(f"place: simulates up to {JUDGED} placements of {ranks} ranks")
    with working("place: searching"):
        best = ground.best()
    computing = [price.computing for price in ground.prices(best.place)]
    return Placed(best, ground.hosts, computing, warning)


def hosts_of(text: str) -> list[CandidateHost]:
    """The hosts in NAME:SLOTS:CORES:SPEED,…. Raises InputError."""
    hosts: list[CandidateHost] = []
    for word in text.split(","):
        found = _HOST.fullmatch(word.strip())
        speed = _finite(found["speed"] or "1") if found else 0.0
        if not found or speed <= 0:
            raise InputError(
                f"hosts: cannot read '{shown(word)}'; expected NAME:SLOTS:CORES:SPEED, such as a:4:2:0.5"
            )
        if any(host.name == found["name"] for host in hosts):
            raise InputError(
                f"hosts: {found['name']} is given twice; expected one entry per host, with all its slots"
            )
        slots = int(found["slots"])
        hosts.append(CandidateHost(found["name"], slots, int(found["cores"] or slots), 1 / speed))
    return hosts


def _finite(text: str) -> float:
    """The number in a text; 0 if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 1e-9 <= value <= 1e9 else 0.0


def _speeds(record: Record) -> list[float]:
    """[rank] speed, relative to an unshared core of speed 1."""
    environment, placed = record.environment, record.environment.rank_host
    speeds = parse_speeds(record.case.synthetic.emulate, record.case.placement.ranks)
    if record.case.synthetic.emulate:  # each as if it had a core for itself
        return list(speeds)
    return [s / max(1.0, placed.count(k) / environment.hosts[k].cores) for s, k in zip(speeds, placed)]
