"""The parameters of the jobs that measure hosts, apart from the code of their ranks, which loads MPI."""

import msgspec

from fembench.records.network import NetworkSettings
from fembench.records.profile import LEVELS, Level
from fembench.synthetic.speeds import NodeSpeed


class CharacterizeJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of `fembench characterize`."""

    ranks: int
    quick: bool
    seconds: float  # maximum measuring time per host
    visit: float  # seconds per visit
    levels: tuple[Level, ...] = LEVELS
    rounds: int  # maximum number
    emulate: str
    dilate: float
    command: str  # what the user typed
    launcher: str = ""  # run_job says it
    synthetic: str  # how heterogeneity is emulated around the job (rule E8)

    @property
    def emulated(self) -> bool:
        return bool(self.emulate) or self.dilate != 1


class NetworkJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of `fembench characterize --network`."""

    ranks: int
    quick: bool
    pairs: str  # all, classes, or '': depends on the number of hosts
    sites: str  # in the format of sites_of
    emulate: str
    dilate: float
    settings: NetworkSettings = NetworkSettings()


class NodesJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of one launch of `fembench nodes`."""

    ranks: int
    rounds: int
    command: str  # what the user typed
    launcher: str = ""  # run_job says it
    synthetic: str  # how nodes are emulated (rule E8)
    names: tuple[str, ...] = ()  # of emulated nodes, which have as many ranks each
    speeds: tuple[NodeSpeed, ...] = ()  # theirs
