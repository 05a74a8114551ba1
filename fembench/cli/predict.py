"""Predict the time of a run before it starts.

Prints the time of a CG iteration with an interval meant to contain nine runs out of ten, its parts by
phase, and what limits it. The mesh is partitioned as in the run. Computing times follow from the speeds in a
machine profile, at the size of each rank and with the other ranks of its host running; message times from
the profile's network, or from --link. Runs already made on the machine (--learn) correct the prediction.
With --method analytic, the answer is a closed form: T = max(…) as an expression, an interval, and the load
on each resource.

Examples:
  fembench predict m3 --machine machine.json --ranks 1,2,4,8
  fembench predict m3 --machine machine.json --ranks 4 --shares balanced -o before.json
  fembench predict m --machine machine.json --ranks 2,4,8 --machines 'add:fast*2' --network x10
  fembench predict m --machine machine.json --link 2e-5,1e9 --ranks 1,2,4,8,16 --iterations 900 --deadline 2.5
  fembench predict m3 --machine machine.json --solver petsc --learn results/petsc --ranks 4
  fembench predict m3 --machine machine.json --ranks 4 --method analytic
"""

import argparse
from pathlib import Path

CASE = ("problem", "solver", "storage", "precond", "variant", "partitioner")  # options of a case


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import case_option, real, whole

    parser.add_argument("mesh", metavar="MESH", help="preset, box:…, or a mesh file, as in fembench run")
    parser.add_argument("--machine", required=True, metavar="FILE", help="machine profile from characterize")
    parser.add_argument(
        "--ranks", default="", metavar="N,…", help="numbers of ranks (default: that of the profile)"
    )
    parser.add_argument(
        "--shares",
        default="",
        metavar="SHARES",
        help="7:1, 2,1,1, balanced or equal (default: equal); 7:1 needs a single number of ranks",
    )
    parser.add_argument(
        "--method",
        choices=("simulation", "analytic"),
        default="simulation",
        help="simulate the execution graph, or bound it in closed form",
    )
    parser.add_argument(
        "--compose",
        choices=("phase", "global"),
        default="phase",
        help="analytic: bound each phase, or the whole run (Herai 2005)",
    )
    parser.add_argument(
        "--learn",
        action="append",
        default=[],
        metavar="RECORD",
        help="correct by this record, or folder of records, of runs on the machine; may be repeated",
    )
    parser.add_argument(
        "--iterations",
        type=whole(0),
        default=0,
        metavar="N",
        help="also predict a whole solution (default: the iterations of a learned run of the mesh)",
    )
    parser.add_argument(
        "--deadline",
        type=real(0),
        default=0.0,
        metavar="SECONDS",
        help="find the fewest ranks that meet it at the upper end of the interval",
    )
    parser.add_argument("--plot", metavar="FILE", help="plot the time by number of ranks (.svg, .png, .pdf)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the prediction; an existing one is never overwritten"
    )
    parser.add_argument(
        "--against", metavar="RECORD", help="add the error against this run to the prediction in -o"
    )
    parser.add_argument("--json", action="store_true", help="print the predictions as JSON instead of tables")

    case = parser.add_argument_group("case", "As in fembench run.")
    for name in CASE:
        case_option(case, name)
    _what_if(parser.add_argument_group("what if"))


def _what_if(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--link",
        default="",
        metavar="SECONDS,BYTES/S[,SECONDS]",
        help="latency, bandwidth and overhead of a network that replaces the profile's",
    )
    group.add_argument(
        "--network", default="x1", metavar="xFACTOR", help="a network that is faster by this factor"
    )
    group.add_argument(
        "--contention",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="send a host's messages one after another (default: as far as the profile measured it)",
    )
    group.add_argument(
        "--machines",
        action="append",
        default=[],
        metavar="EDIT",
        help="fastest, slowest: all hosts are like the one with the fastest or slowest rank; add:NAME*N: N "
        "more hosts like NAME; share:N: N ranks in place of each, on the same cores (--method analytic); may "
        "be repeated",
    )
    group.add_argument(
        "--now",
        choices=("queue", "load", "clock"),
        default="",
        help="predict for the present load of the hosts: slowness H from the run queue, the load average or "
        "the clock, which is the most accurate (Mendes 2004, eq. 4.1 to 4.3)",
    )
    group.add_argument("--hostfile", default="", metavar="FILE", help="with --now: ask only these hosts")


def run(options: argparse.Namespace) -> int:
    if options.against:
        return _score(options)
    from fembench.base.errors import InputError
    from fembench.base.progress import working
    from fembench.records.prediction import save_prediction
    from fembench.records.profile import provisional

    study, learned = _study(options)
    cases = _cases(options, len(study.profile.environment.rank_host))
    if options.output and len(cases) > 1:
        raise InputError(
            f"-o {options.output} with {len(cases)} numbers of ranks; expected one number per file"
        )
    with working(f"predict: {options.mesh}"):
        answers = _answers(options, study, cases, learned)
    _note(study, answers.works)
    if options.output:
        save_prediction(answers.predictions[0], options.output)
    if options.plot:
        from fembench.model.answers import intervals
        from fembench.report.plots.lines import write_times

        write_times(intervals(answers), Path(options.plot), options.mesh)
    if options.json:
        _print_json(answers.tree, answers.latest, options.deadline, provisional(study.profile))
    else:
        print("\n\n".join(filter(None, [provisional(study.profile), answers.text])))
    in_time = _in_time(answers, options.deadline) if options.deadline else ""
    if options.json:
        return 0
    if in_time:
        print(f"\n{in_time}")
    if options.output:
        print(
            f"prediction: {options.output}; after the run: fembench predict {options.mesh} "
            f"--machine {options.machine} -o {options.output} --against RECORD"
        )
    return 0


def _in_time(answers, deadline: float) -> str:
    """How many ranks meet the deadline. Raises InputError if none of these numbers does."""
    from fembench.base.units import plural
    from fembench.model.answers import fewest_ranks

    ranks = fewest_ranks(answers, deadline)
    verb = "suffices" if ranks == 1 else "suffice"
    return f"deadline {deadline:g} s: {plural(ranks, 'rank')} {verb}, at the upper end of the interval"


def _answers(options: argparse.Namespace, study, cases: list, learned: list):
    """The runs, predicted by the chosen method."""
    from fembench.base.errors import InputError
    from fembench.mesh.presets import resolve
    from fembench.model.answers import bounded_answers, simulated_answers

    mesh = resolve(options.mesh)
    if options.method == "analytic":
        return bounded_answers(study, cases, mesh, options.iterations, options.compose, learned)
    iterations = options.iterations or study.iterations.get(mesh.hash, 0)
    if options.deadline and not iterations:
        raise InputError("--deadline needs --iterations, or --learn with a run of this mesh that converged")
    return simulated_answers(study, cases, mesh, iterations)


def _note(study, works: list) -> None:
    """Report the limits of the profile."""
    from fembench.base.progress import progress

    network = study.profile.network
    if network is not None and not any(one.cold for one in network.classes):
        progress(
            "note: the profile does not say how long messages take after computing; priced as in a ping-pong"
        )
    for line in [line for work in works for line in study.beyond(work)]:
        progress(f"note: {line}")


def _study(options: argparse.Namespace):
    """(the profile with edits and learned rates, the runs used for learning); edits come after learning."""
    import dataclasses

    from fembench.base.progress import progress
    from fembench.methods.lookup import storage_of
    from fembench.model.configuration import not_invalid
    from fembench.model.predictor import open_study, taught
    from fembench.model.slots import parse_factor
    from fembench.records.hlogp import parse_link
    from fembench.records.store import load_each

    factor, storage = parse_factor(options.network), _storage(options)
    study = open_study(
        options.machine,
        link=parse_link(options.link, overhead=True) if options.link else None,
        storage=storage_of(storage).priced_as,
        contention=options.contention,
    )
    learned, note = not_invalid(load_each(options.learn))
    if note:
        progress(f"note: --learn: {note}")
    if options.learn:
        study = taught(study, learned)
    if options.now:
        study = dataclasses.replace(study, rates=_as_now(options, study))
    return dataclasses.replace(study, edits=tuple(options.machines), factor=factor), learned


def _as_now(options: argparse.Namespace, study):
    """The study's rates, each rank slowed according to its host's present load, relative to that in the
    profile."""
    import dataclasses

    from fembench.base.config import read_text
    from fembench.base.progress import progress
    from fembench.base.units import plural
    from fembench.characterize.load_now import loads_of
    from fembench.launch.hosts import hosts_of
    from fembench.model.heterogeneity import Slowdown, brought_up_to_date, calibrated_at, hosts_to_ask
    from fembench.model.rates import slowed

    law, profile, file = options.now, study.profile, options.hostfile
    names = [host.name for host in hosts_of(read_text(file), file)] if file else []
    slower: dict[int, Slowdown] = {}
    for samples in loads_of(hosts_to_ask(profile, names), Path("."), progress):
        found = brought_up_to_date(profile, law, samples)
        most = max(found.values())
        progress(
            f"{samples[0].host}: computing takes {most.factor:.2f} times as long now as in the profile, "
            f"by {law} ({most.low:.2f} to {most.high:.2f} in {plural(len(samples), 'sample')})"
        )
        slower |= found
    if missing := set(slower) - set(calibrated_at(profile, law, 1)):
        progress(
            f"the profile has no {law} of {plural(len(missing), 'rank')}; taken to be that of an idle host"
        )
    progress(
        "message costs are those of the profile: underestimated under load, which delays messages more "
        "than computing (Mendes 2004, Table 4.41: L 6 to 7 times longer, of small messages up to 150 times)"
    )
    rates = slowed(study.rates, {rank: one.factor for rank, one in slower.items()})
    return dataclasses.replace(rates, uncertain=max(one.uncertain for one in slower.values()))


def _storage(options: argparse.Namespace) -> str:
    from fembench.methods.storages import DEFAULT_STORAGE

    return options.storage or DEFAULT_STORAGE[options.solver]


def _cases(options: argparse.Namespace, ranks_of_profile: int) -> list:
    from fembench.base.errors import InputError
    from fembench.model.predictor import BALANCED
    from fembench.records.case import flat_case

    try:
        counts = [int(word) for word in options.ranks.split(",")] if options.ranks else [ranks_of_profile]
    except ValueError:
        raise InputError(f"--ranks '{options.ranks}': expected numbers such as 1,2,4") from None
    counts = list(dict.fromkeys(counts))
    shares = "" if options.shares == "equal" else options.shares
    if len(counts) > 1 and shares not in ("", BALANCED):
        raise InputError(
            f"--shares {shares} with --ranks {options.ranks}: expected equal or balanced shares, or one "
            "number of ranks"
        )
    fields = [name for name in ("mesh", *CASE) if name != "storage"]
    values = {name: getattr(options, name) for name in fields} | {"storage": _storage(options)}
    return [flat_case(values | {"ranks": n, "shares": shares}, "options") for n in counts]


def _print_json(tree: list, latest: list[float], deadline: float, provisional: str) -> None:
    """The runs; with a deadline, also whether the upper end of the interval of each is within it; with a
    disturbed profile, why they are `provisional`."""
    import json

    if provisional:
        tree = [run | {"provisional": provisional} for run in tree]
    if deadline:
        tree = [run | {"within_deadline": last <= deadline} for run, last in zip(tree, latest)]
    print(json.dumps(tree, indent=1))


def _score(options: argparse.Namespace) -> int:
    """Add a run to the prediction written before it."""
    from fembench.base.errors import InputError
    from fembench.model.drifted import changes, readings_of, state_text
    from fembench.model.forecast import outcome_text
    from fembench.model.predictor import observed
    from fembench.records.prediction import add_outcome, load_prediction
    from fembench.records.store import load

    if not options.output:
        raise InputError("--against needs -o FILE, the prediction to score")
    record = load(options.against)
    prediction = load_prediction(options.output)
    seen = observed(prediction, record)
    print(outcome_text(add_outcome(options.output, seen), record.id))
    print(state_text(changes(prediction.predicted.state, readings_of([record]))))
    return 1 if seen.stale else 0
