"""Which host computes which part of a mesh: the placement with the shortest iteration."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fembench.base.progress import progress, working
from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.model.configuration import not_invalid
from fembench.model.hosts_for_parts import measured
from fembench.model.launcher_files import LAUNCHER_FILES
from fembench.model.placement import JUDGED, CandidateHost, Placement
from fembench.records.profile import load_profile, provisional
from fembench.records.store import load

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
        file = LAUNCHER_FILES[form]
        how = file.use.format(path=path, ranks=len(self.best.place))
        return file.text(self.best.place, self.hosts), how

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


def placed(record: Path | str, *, machine: Path | str) -> Placed:
    """The best placement of a run's parts on the hosts of a profile with a network.

    Raises InputError.
    """
    run = not_invalid([load(record)])[0][0]
    profile = load_profile(machine)
    ground = measured(run, profile, str(machine))
    ranks = run.case.placement.ranks
    if ranks >= MANY:
        progress(f"place: simulates up to {JUDGED} placements of {ranks} ranks")
    with working("place: searching"):
        best = ground.best()
    computing = [price.computing for price in ground.prices(best.place)]
    return Placed(best, ground.hosts, computing, provisional(profile))
