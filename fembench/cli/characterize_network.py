"""Options of `characterize` for the network measurement."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fembench.records.network import Method, NetworkSettings

MOST = 1 << 30  # bytes of a message
METHODS: dict[str, "Method"] = {"trains": "I", "pingpong": "II"}  # --method -> name in records (Mendes 2004)


def network_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group of options."""
    from fembench.cli.shared import whole

    network = parser.add_argument_group("network")
    network.add_argument("--network", action="store_true", help="also measure messages between the ranks")
    network.add_argument(
        "--add-to",
        default="",
        metavar="FILE",
        help="measure only the network, and add it to this profile of the same ranks (or to -o)",
    )
    network.add_argument(
        "--pairs",
        choices=("all", "classes"),
        default="",
        help="measure every ordered pair of hosts, or one pair within each site and one between each two "
        "sites (default: all, for up to 4 hosts)",
    )
    network.add_argument(
        "--sites", default="", metavar="SITES", help="sites, as in a=n1,n2;b=n3 (default: by domain name)"
    )
    network.add_argument(
        "--sizes",
        default="",
        metavar="BYTES,…",
        help="message sizes, as in 8,64K,4M (default: 8 to 4M, doubling; with --quick to 1M)",
    )
    network.add_argument(
        "--repetitions",
        type=whole(1),
        default=0,
        metavar="N",
        help="round trips per size (default: as many as fit into 4 s per pair, or 1.2 s with --quick)",
    )
    network.add_argument(
        "--method",
        choices=(*METHODS, "both"),
        default="both",
        help="trains: trains of messages, for L and g (Kielmann 2000); "
        "pingpong: ping-pongs, for Os, L and Or (Mendes 2004)",
    )
    network.add_argument(
        "--send",
        choices=("isend", "send", "both"),
        default="both",
        help="MPI call timed by --method pingpong; with both, the model uses MPI_Isend",
    )


def check_network(options: argparse.Namespace) -> None:
    """Raises InputError for options that do not fit together."""
    from fembench.base.errors import InputError

    network = options.network or options.add_to
    usual = {
        "pairs": "",
        "sites": "",
        "sizes": "",
        "repetitions": 0,
        "method": "both",
        "send": "both",
    }
    for name, value in usual.items():
        if (given := getattr(options, name)) != value and not network:
            raise InputError(f"--{name} {given} without a network; expected --network or --add-to FILE")
    network_settings(options)


def network_settings(options: argparse.Namespace) -> "NetworkSettings":
    """The settings of the network measurement. Raises InputError."""
    from fembench.base.errors import InputError
    from fembench.base.units import bytes_of
    from fembench.records.network import NetworkSettings

    try:
        sizes = sorted({bytes_of(word) for word in options.sizes.split(",")} if options.sizes else ())
    except ValueError as error:
        raise InputError(f"--sizes {options.sizes}: {error}") from error
    if sizes and (len(sizes) < 3 or not 1 <= sizes[0] <= sizes[-1] <= MOST):
        raise InputError(
            f"--sizes {options.sizes}: expected at least three different sizes, from 1 byte to 1G"
        )
    return NetworkSettings(
        sizes=tuple(sizes),
        repetitions=options.repetitions,
        methods=tuple(METHODS.values()) if options.method == "both" else (METHODS[options.method],),
        modes=("isend", "send") if options.send == "both" else (options.send,),
    )
