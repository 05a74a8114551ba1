"""Whether the matrix of a case fits into the memory of its hosts, before anything is built."""

from fembench.base.errors import InputError
from fembench.base.units import size
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.duration import equations_of
from fembench.launch.allocation import HostsError, layout
from fembench.methods.memory import matrix_bytes
from fembench.partition.shares import parse_shares
from fembench.records.case import Case


def check_memory(case: Case, there: CampaignHosts) -> None:
    """Raises InputError if the matrix of a box is larger than the memory of a host that takes part of it.

    Not judged: meshes from files, and hosts whose memory is not known.
    """
    n = equations_of(case)
    if n is None:
        return
    try:
        placed = layout(case.placement, there.job)
    except HostsError:  # too few slots: reported when the case is started
        return
    shares = parse_shares(case.placement.shares, case.placement.ranks)
    ranks = [host.name for host in placed for _ in range(host.slots)]
    needs = dict.fromkeys(ranks, 0.0)
    for name, share in zip(ranks, shares):
        needs[name] += matrix_bytes(case.method, n * share)
    for name, needed in needs.items():
        has = 0.0 if name in there.assumed else there.memory.get(name, 0.0)
        if 0 < has < needed:
            raise InputError(
                f"mesh '{case.question.mesh}': the matrix (storage {case.method.storage}) takes about "
                f"{size(needed)} on {name}, which has {size(has)}; expected a smaller mesh, more hosts "
                "or another storage"
            )
