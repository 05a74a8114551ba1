"""Simulate an execution graph: who is busy, who waits for whom, and what it would take elsewhere.

Prints busy, wait, overhead and finish of each rank, its messages, the phases with their part of the critical
path, and what to change first. The network is the machine profile's, one that is given, or, of a graph from
a record, what that run showed. Examples:
  fembench simulate graph.json
  fembench simulate graph.json --machine machine.json
  fembench simulate graph.json --link 50e-6,125e6 --speeds 1,1,0.5,1 --chrome timeline.json
  fembench simulate graph.json --link 50e-6,125e6 --smpi replay --goal graph.goal
"""

import argparse

IN_NETWORK = (
    "network: message costs are those seen in the run, which include waiting and interruptions; "
    "--machine PROFILE has measured ones"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real, whole

    parser.add_argument("graph", metavar="GRAPH", help="execution graph of fembench trace")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--machine", metavar="FILE", help="profile with a network, or a file of thesis-001's modeller"
    )
    where.add_argument(
        "--link", default="", metavar="S,B/S[,O]", help="latency, bandwidth, overhead of all pairs"
    )
    parser.add_argument(
        "--speeds", default="", metavar="S,S,...", help="of each rank against the recorded ones"
    )
    parser.add_argument(
        "--network", type=real(0, above=True), default=1.0, metavar="F", help="a network F times as fast"
    )
    parser.add_argument(
        "--contention",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="a host's messages leave one after the other (default: as far as --machine measured it)",
    )
    parser.add_argument(
        "--no-overlap",
        action="store_true",
        help="messages beyond the switch travel only while both ranks wait",
    )
    parser.add_argument(
        "--switch", type=whole(0), default=0, metavar="BYTES", help="--link: from which they wait"
    )
    parser.add_argument("--every-turn", action="store_true", help="simulate every turn of every loop")
    parser.add_argument("--chrome", metavar="FILE", help="timeline for ui.perfetto.dev")
    parser.add_argument("--smpi", metavar="FOLDER", help="time-independent trace and platform for SimGrid")
    parser.add_argument("--goal", metavar="FILE", help="schedule for LogGOPSim")
    parser.add_argument("--base", metavar="GRAPH", help="the same on one rank: speed-up, efficiency, R, U, Q")
    parser.add_argument("--against", metavar="RECORD", help="errors against the CG times of a run")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    from fembench.base.units import seconds
    from fembench.model.engine import simulate
    from fembench.model.events import simulate_events
    from fembench.model.exports import write_chrome, write_goal, write_smpi
    from fembench.model.graph import load_graph
    from fembench.model.measures import bottlenecks, loop_table, phase_table, rank_table
    from fembench.model.path import timeline
    from fembench.model.planner import make_plan

    graph = load_graph(options.graph)
    machine = _machine(options, graph)
    plan = make_plan(graph, machine)
    result = simulate_events(plan) if machine.contention else simulate(plan, period=not options.every_turn)
    if options.chrome:
        write_chrome(list(timeline(result)), plan.phases, machine, options.chrome)
    if options.goal:
        write_goal(graph, machine, options.goal)
    replay = write_smpi(graph, machine, options.smpi) if options.smpi else ""
    if options.json:
        _print_json(plan, result)
        return 0
    each = f", {seconds(result.makespan / graph.iterations)} an iteration" if graph.iterations else ""
    print(f"{graph.source}: {seconds(result.makespan)}{each}\n")
    if graph.note:
        print(f"{graph.note}\n")
    print(rank_table(plan, result), phase_table(plan, result), loop_table(graph), sep="\n\n")
    if options.base:
        print(f"\n{_parallel(options.base, machine, result)}")
    if options.against:
        print(f"\n{_errors(options.against, graph, result)}")
    print("", *bottlenecks(plan, result, [machine.names[h] for h in machine.host]), sep="\n")
    if not (options.machine or options.link):
        print(IN_NETWORK)
    skipped = sum(run.repeats * run.period for run in result.runs)
    if skipped:
        print(f"{result.simulated} turns of loops were simulated, {skipped} like them were not")
    if replay:
        print(f"replay: {replay}")
    return 0


def _machine(options: argparse.Namespace, graph):
    """Where the graph runs."""
    import dataclasses

    from fembench.base.errors import InputError
    from fembench.model.machine import even_machine, faster_network
    from fembench.model.slots import parse_link

    try:
        speeds = tuple(float(word) for word in options.speeds.split(",")) if options.speeds else ()
    except ValueError:
        raise InputError(f"speeds '{options.speeds}'; expected numbers such as 1,1,0.5") from None
    if options.machine:
        machine = _of_file(options, graph, speeds)
    else:
        if not options.link and graph.message is None:
            raise InputError("what do messages cost? expected --machine FILE or --link SECONDS,BYTES/S")
        link = parse_link(options.link) if options.link else None
        latency, per_byte = (link.latency, 1 / link.bandwidth) if link else graph.message
        machine = even_machine(
            graph.ranks,
            latency=latency,
            per_byte=per_byte,
            overhead=link.overhead if link else 0.0,
            speeds=speeds,
            switch=options.switch or None,
            contention=bool(options.contention),
        )
        names = graph.hosts or machine.names
        machine = dataclasses.replace(machine, names=names) if len(names) == graph.ranks else machine
    if options.no_overlap:
        machine = dataclasses.replace(machine, overlap=False)
    return machine if options.network == 1 else faster_network(machine, options.network)


def _of_file(options: argparse.Namespace, graph, speeds: tuple[float, ...]):
    """The machine of a profile, or of a file of thesis-001's modeller. Where the graph was not made there,
    ranks that wait slow others on their core."""
    import dataclasses

    from fembench.base.config import read_text
    from fembench.model.forecast import with_collectives
    from fembench.model.machine import checked_speeds
    from fembench.model.modeller_files import read_model
    from fembench.model.modeller_machine import machine_of_model
    from fembench.model.slots import chosen, machine_of, slots_of, waiting_slows
    from fembench.records.profile import load_profile

    if not read_text(options.machine).lstrip().startswith("{"):
        machine = machine_of_model(read_model(options.machine), graph.ranks)
        return dataclasses.replace(machine, speeds=checked_speeds(speeds, graph.ranks)) if speeds else machine
    profile = load_profile(options.machine)
    slots = chosen(slots_of(profile, "sym"), graph.ranks)
    machine = with_collectives(machine_of(profile, slots, None, options.contention), profile)
    there = graph.hosts == tuple(machine.names[h] for h in machine.host)
    slower = [1.0] * graph.ranks if there else waiting_slows(profile, slots)
    found = zip(checked_speeds(speeds, graph.ranks), slower)
    return dataclasses.replace(machine, speeds=tuple(speed / slow for speed, slow in found))


def _parallel(path: str, machine, result) -> str:
    """Measures against the graph of one rank, on this machine's first rank at speed 1."""
    from fembench.base.errors import InputError
    from fembench.model.engine import simulate
    from fembench.model.graph import load_graph
    from fembench.model.machine import even_machine
    from fembench.model.measures import operations, parallel
    from fembench.model.planner import make_plan

    base = load_graph(path)
    if base.ranks != 1:
        raise InputError(f"{path}: a graph of {base.ranks} ranks; expected one")
    alone = simulate(make_plan(base, even_machine(1, latency=0.0, per_byte=0.0, overhead=0.0)))
    found = parallel(
        alone.makespan,
        operations(alone, (1.0,)),
        result.makespan,
        operations(result, machine.speeds),
        machine.ranks,
    )
    return "\n".join(f"{name} {value:.3g}" for name, value in found._asdict().items())


def _errors(path: str, graph, result) -> str:
    """How far processes end from where they ended in a run: CG began when the last had assembled."""
    import numpy as np

    from fembench.base.errors import InputError
    from fembench.model.configuration import not_invalid
    from fembench.model.correct import middle_set
    from fembench.model.measures import makespan_error, mean_error, process_error
    from fembench.records.phases import ASSEMBLY, CG
    from fembench.records.store import load

    record = not_invalid([load(path)])[0][0]
    if record.case.ranks != graph.ranks or not graph.iterations:
        raise InputError(f"{path}: a run of {record.case.ranks} ranks; expected one of the graph's")
    phases = middle_set(record)
    took = phases[:, ASSEMBLY].max() + graph.iterations * phases[:, CG]
    pair = took.tolist(), np.asarray(result.finish).tolist()
    return (
        f"against {record.id}: makespan {makespan_error(*pair):+.1f} %, mean {mean_error(*pair):+.1f} %, "
        f"|error| of a process {process_error(*pair):.1f} %"
    )


def _print_json(plan, result) -> None:
    import json

    from fembench.model.path import by_phase, critical_path

    print(
        json.dumps(
            {
                "makespan": result.makespan,
                "phases": list(plan.phases),
                **{name: getattr(result, name).tolist() for name in ("finish", "busy", "wait", "overhead")},
                "messages": result.messages.tolist(),
                "bytes": result.n_bytes.tolist(),
                "critical_path": by_phase(critical_path(plan, result)),
                "turns_simulated": result.simulated,
            },
            indent=1,
        )
    )
