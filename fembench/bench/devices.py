"""The device of each rank: opened before the clock starts, described in the record."""

from msgspec import structs

from fembench.host.where import host_names
from fembench.methods.lookup import CPU, load
from fembench.ranks.comm import Comm, together
from fembench.records.case import Case
from fembench.records.record import ClockCertificate, DeviceFacts
from fembench.solve.operators import RankDevice

FINISHED = "phases of device ranks end when the device has finished their work; stamps are the host's"


def device_of(comm: Comm, case: Case) -> RankDevice | None:
    """This rank's device with compiled kernels; None: it computes on cores. Collective.

    Ranks of a host take its devices in turn. Raises InputError if one has none.
    """
    kinds = case.devices
    if set(kinds) == {CPU}:
        return None
    hosts, rank, kind = host_names(comm), comm.rank, kinds[comm.rank]
    before = list(zip(hosts[:rank], kinds[:rank])).count((hosts[rank], kind))
    return together(comm, lambda: None if kind == CPU else _opened(kind, before))


def _opened(kind: str, number: int) -> RankDevice:
    """The room of devices and its libraries are imported on these ranks only."""
    return load("fembench.device.find:open_device")(kind, number)


def devices_in_record(comm: Comm, device: RankDevice | None) -> tuple[DeviceFacts, ...]:
    """[rank] what it computes on; () if no rank has a device. Collective."""
    said = None if device is None else device.said
    found = comm.allgather(None if said is None else tuple(said))
    if not any(found):
        return ()
    return tuple(DeviceFacts(*facts) if facts else DeviceFacts() for facts in found)


def stamped(clock: ClockCertificate, devices: tuple[DeviceFacts, ...]) -> ClockCertificate:
    """The certificate, with what it says of the phases of device ranks."""
    return structs.replace(clock, devices=FINISHED) if devices else clock
