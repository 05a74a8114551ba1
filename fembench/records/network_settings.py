"""How messages are measured, and the words by which that is chosen."""

from typing import Literal, get_args

from fembench.records.record import Frozen

Mode = Literal["isend", "send"]  # the call that sends
Method = Literal["I", "II"]  # I: Kielmann's trains, II: ping-pongs (Mendes 2004)
METHODS: dict[str, tuple[Method, ...]] = {"trains": ("I",), "pingpong": ("II",), "both": ("I", "II")}
SENDS: dict[str, tuple[Mode, ...]] = {"isend": ("isend",), "send": ("send",), "both": ("isend", "send")}
Pairs = Literal["all", "classes"]  # every pair of hosts, or one per class (Mendes's II(a), II(b))
PAIRS = get_args(Pairs)


class NetworkSettings(Frozen, frozen=True):
    """How messages are measured."""

    sizes: tuple[int, ...] = ()  # bytes, ascending; (): the usual ones
    repetitions: int = 0  # round trips per size; 0: as many as fit into the default time
    methods: tuple[Method, ...] = METHODS["both"]
    modes: tuple[Mode, ...] = SENDS["both"]  # calls whose ping-pongs are timed
