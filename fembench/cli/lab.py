"""Emulate a cluster of unequal hosts on this machine (root).

A lab gives each host a network namespace, a fraction of the CPU time and a link rate. Every record from a
lab is labelled SYNTHETIC. CPU time is divided into slices of one millisecond: use meshes whose iterations
last several milliseconds (m, l).

Examples:
  fembench lab up cluster.toml                    # build it
  fembench lab run fembench run m3 --ranks 2      # run a command in it
  fembench lab speed slow 0.1                     # slow a host down, even during a run
  fembench lab status
  fembench lab down                               # end what runs in it, and remove it

A lab's file:
  name = "pair"
  priority = true        # optional: the lab has priority over all other processes of this machine
  quota = true           # optional: slow hosts get a CPU quota, as containers do, in slices of 20 ms
  [[hosts]]
  name = "fast"
  cpus = [0]
  [[hosts]]
  name = "slow"
  cpus = [1]
  speed = 0.25           # fraction of its CPUs' time that it gets
  rate = "100mbit"       # of its link, in each direction
"""

import argparse
import json


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    up = actions.add_parser("up", help="build the lab that a file describes")
    up.add_argument("cluster", metavar="CLUSTER.toml", help="the lab's file, as below")
    up.add_argument("--json", action="store_true", help="print JSON instead of a table")
    run = actions.add_parser("run", help="run a command in the lab")
    run.add_argument("--name", help="name of the lab (default: the only one)", default="", metavar="LAB")
    run.add_argument(
        "--spin",
        action="store_true",
        help="let waiting ranks spin instead of sleep, to measure speeds under CPU quotas",
    )
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="command to run")
    speed = actions.add_parser("speed", help="change the fraction of its CPUs' time that a host gets")
    speed.add_argument("host", metavar="HOST", help="name of the host")
    speed.add_argument("speed", type=real(0.001, 1), metavar="FRACTION", help="new fraction, 0.001 to 1")
    speed.add_argument("--name", help="name of the lab (default: the only one)", default="", metavar="LAB")
    speed.add_argument("--json", action="store_true", help="print JSON instead of a table")
    status = actions.add_parser("status", help="list the labs")
    status.add_argument("--json", action="store_true", help="print JSON instead of a table")
    down = actions.add_parser("down", help="end what runs in the lab, and remove it")
    down.add_argument(
        "name", nargs="?", help="name of the lab (default: the only one)", default="", metavar="LAB"
    )


def run(options: argparse.Namespace) -> int:
    from fembench.synthetic import lab

    if options.action == "up":
        state = lab.up(options.cluster)
        _print(state, options.json)
        if not options.json:
            print(
                f"up: {state.cluster.label}; next: fembench lab run fembench run m3 --ranks {_ranks(state)}"
            )
    elif options.action == "run":
        command = options.command[1:] if options.command[:1] == ["--"] else options.command
        lab.enter(lab.state_of(options.name or lab.only_lab()), command, spin=options.spin)
    elif options.action == "speed":
        _print(lab.set_speed(options.name or lab.only_lab(), options.host, options.speed), options.json)
    elif options.action == "down":
        lab.require_root()
        gone = lab.down(options.name or lab.only_lab()) if options.name or lab.labs() else []
        print(f"removed: {', '.join(gone)}" if gone else "no lab to remove")
    else:
        _status(options.json)
    return 0


def _print(state, as_json: bool) -> None:
    """A lab as a table, or as JSON."""
    import msgspec

    print(msgspec.json.encode(state).decode() if as_json else as_table(state))


def _status(as_json: bool) -> None:
    import msgspec

    from fembench.base.errors import InputError
    from fembench.synthetic import lab

    states, broken = [], []
    for name in lab.labs():
        try:
            states.append(lab.state_of(name))
        except InputError as error:
            broken.append({"name": name, "problem": str(error)})
    if as_json:
        print(json.dumps({"labs": [msgspec.to_builtins(s) for s in states], "broken": broken}))
        return
    for state in states:
        print(f"{state.cluster.label}\n\n{as_table(state)}\n")
    for one in broken:
        print(f"{one['name']}: {one['problem']}")
    if not states and not broken:
        print("no lab is up")


def as_table(state) -> str:
    """One row per host."""
    from fembench.base.tables import table

    rows = [
        [
            h.name,
            ",".join(map(str, h.cpus)),
            h.speed,
            h.ranks,
            h.rate or "unlimited",
            state.cluster.address(i),
        ]
        for i, h in enumerate(state.cluster.hosts)
    ]
    return table(["host", "CPUs", "speed", "ranks", "link", "address"], rows, align="llrrll")


def _ranks(state) -> int:
    return sum(host.ranks for host in state.cluster.hosts)
