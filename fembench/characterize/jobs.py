"""The parameters of the jobs that measure hosts, apart from their code, which loads MPI."""

import os

import msgspec

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.methods.lookup import CPU, device_by_rank
from fembench.records.sites import NetworkSettings
from fembench.synthetic.speeds import NodeSpeed, parse_speeds

SECONDS, QUICK_SECONDS = 110.0, 20.0  # of measuring per host, without start and set-up
USUAL_TIMES = {  # in total: (quick, with a network)
    (False, False): "2 minutes",
    (False, True): "3 to 4 minutes",
    (True, False): "half a minute",
    (True, True): "1 to 2 minutes",
}
VISIT, QUICK_VISIT, LAB_VISIT = 0.05, 0.02, 0.2  # seconds; a lab grants CPU time in periods of 5 ms
ROUNDS, QUICK_ROUNDS = 30, 12
PATIENCE = 600.0  # seconds after which the job is ended


class CharacterizeJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of `fembench characterize`."""

    ranks: int
    quick: bool
    seconds: float  # maximum measuring time per host
    visit: float  # seconds per visit
    rounds: int  # maximum number
    device: str = CPU  # as in a case
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

    ranks: int = 0  # these three are of the profile
    emulate: str = ""
    dilate: float = 1.0
    quick: bool
    pairs: str  # all, classes, or '': depends on the number of hosts
    sites: str  # in the format of sites_of
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


def speeds_job(
    ranks: int,
    *,
    quick: bool = False,
    device: str = CPU,
    emulate: str = "",
    dilate: float = 1.0,
    command: str = "",
) -> CharacterizeJob:
    """The parameters of a measurement of speeds. Raises InputError."""
    parse_speeds(emulate, ranks)
    device_by_rank(device, ranks)
    if not 1 <= dilate < float("inf"):
        raise InputError(f"dilate = {dilate}: expected a finite number of at least 1")
    synthetic = os.environ.get("FEMBENCH_SYNTHETIC", "")
    return CharacterizeJob(
        ranks=ranks,
        quick=quick,
        seconds=QUICK_SECONDS if quick else SECONDS,
        visit=LAB_VISIT if synthetic else QUICK_VISIT if quick else VISIT,
        rounds=QUICK_ROUNDS if quick else ROUNDS,
        device=device,
        emulate=emulate,
        dilate=dilate,
        command=command,
        synthetic=synthetic,
    )


def usual_time(job: CharacterizeJob, network: bool) -> str:
    """'starting 2 ranks: usually takes half a minute, 20 s of it measuring speeds'"""
    usual = USUAL_TIMES[job.quick, network]
    speeds = f"{job.seconds:g} s of it measuring speeds"
    return f"starting {plural(job.ranks, 'rank')}: usually takes {usual}, {speeds}"


def needs_two(ranks: int) -> None:
    """Raises InputError for fewer than two ranks, which exchange no messages."""
    if ranks < 2:
        raise InputError(f"a network of {plural(ranks, 'rank')}; expected 2 ranks or more: messages need two")
