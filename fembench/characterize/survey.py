"""What `fembench characterize` and `fembench nodes` have in common.

All ranks measure their hosts, and rank 0 gets what they found, and what others took
meanwhile.
"""

from collections.abc import Callable
from typing import TypeVar

from fembench.bench.describe import describe
from fembench.characterize.jobs import CharacterizeJob, NodesJob
from fembench.host.host import host_facts, taken_meter
from fembench.host.others import others_meter
from fembench.launch.job import Tell
from fembench.ranks.comm import Comm, doze
from fembench.records.record import Environment, HostFacts

T = TypeVar("T")


def survey(
    comm: Comm,
    job: CharacterizeJob | NodesJob,
    measure: Callable[[HostFacts, Tell], T],
    tell: Tell,
    synthetic: str,
    dilate: float = 1.0,
) -> tuple[list[T], Environment] | None:
    """([rank] what it found, the environment) on rank 0, None elsewhere. Collective.

    `measure` gets this rank's host, and a `tell` that is silent on ranks other than 0.
    `synthetic` and `dilate` say how ranks are slowed on purpose.
    """
    facts, taken, others = host_facts(), taken_meter(), others_meter(comm)
    mine = measure(facts, tell if comm.rank == 0 else lambda text: None)
    doze(comm, 0.0)  # until all are done
    used, found = others(), comm.gather(mine)
    environment = describe(
        comm,
        facts,
        taken,
        used,
        launcher=job.launcher,
        command=job.command,
        synthetic=synthetic,
        dilate=dilate,
    )
    return None if found is None or environment is None else (found, environment)
