"""Made-up machines: profiles of ranks with planted speeds and a network that is known exactly."""

from planted_profile import planted_profile

from fembench.records.network import CurvePiece, Network, PairClass
from fembench.records.sites import by_site


def line(at_zero, a_byte=0.0, first=0):
    return (CurvePiece(first=first, coefficients=(at_zero, a_byte)),)


def flat_class(name, o=1e-6, latency=50e-6, a_byte=8e-9, switch=None):
    """Overheads that do not grow with the message; latency and bandwidth."""
    return PairClass(
        name=name,
        send=line(o),
        latency=line(latency, a_byte),
        receive=line(o),
        gap=line(0.0, a_byte),
        switch=switch,
    )


def planted_network(hosts=1, *, near=None, far=None, **changes):
    """One site: `near` within a host, `far` between hosts."""
    classes = by_site(("here",) * hosts)
    found = [near or flat_class("same host", 3e-7, 5e-7, 1e-10), far or flat_class("here")]
    values = {
        "send_mode": "isend",
        "pairs": "classes",
        "sites": ("here",) * hosts,
        "classes": tuple(found[: len(classes.names)]),
        "pair_class": classes.pair_class,
    }
    return Network(**{**values, **changes})


def planted_machine(speeds, hosts=None, *, network=None, **options):
    """A profile with a network."""
    names = tuple(dict.fromkeys(hosts or ("node8",)))
    return planted_profile(speeds, hosts=hosts, network=network or planted_network(len(names)), **options)
