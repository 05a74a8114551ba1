"""Emulate a cluster of unequal hosts on this machine (root).

A lab gives each host a network namespace, a fraction of the CPU time and a link rate.
Every record from a lab is labelled SYNTHETIC. CPU time is divided into slices of one
millisecond: use meshes whose iterations last several milliseconds (m, l).

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

from fembench.base.config import json_text
from fembench.cli.options import declare_actions, real

ACTIONS = """
up: build the lab that a file describes
cluster CLUSTER.toml: the lab's file, as below
--json: print JSON instead of a table

run: run a command in the lab
--name LAB: name of the lab (default: the only one)
--spin: let waiting ranks spin instead of sleep, to measure speeds under CPU quotas
command COMMAND ...: command to run

speed: change the fraction of its CPUs' time that a host gets
host HOST: name of the host
speed FRACTION: new fraction, 0.001 to 1
--name LAB: name of the lab (default: the only one)
--json: print JSON instead of a table

status: list the labs
--json: print JSON instead of a table

down: end what runs in the lab, and remove it
name [LAB]: name of the lab (default: the only one)
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare_actions(parser, ACTIONS, speed=real(0.001, 1))


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import lab

    if options.action == "up":
        state = lab.up(options.cluster)
        print(json_text(state) if options.json else lab.as_table(state))
        if not options.json:
            ranks = sum(host.ranks for host in state.cluster.hosts)
            print(f"up: {state.cluster.label}; next: fembench lab run fembench run m3 --ranks {ranks}")
    elif options.action == "run":
        lab.enter(options.command, options.name, spin=options.spin)
    elif options.action == "speed":
        state = lab.set_speed(options.host, options.speed, options.name)
        print(json_text(state) if options.json else lab.as_table(state))
    elif options.action == "down":
        gone = lab.down(options.name)
        print(f"removed: {', '.join(gone)}" if gone else "no lab to remove")
    else:
        labs, broken = lab.status()
        print(json_text({"labs": labs, "broken": broken}) if options.json else lab.as_text(labs, broken))
    return 0
