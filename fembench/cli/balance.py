"""Compare rebalancing policies, or show what one did.

With --virtual, every policy runs a scenario on a virtual clock: the result is exact, repeatable, and
independent of this machine's cores. Without it, the verb prints the decisions in the record of a rebalanced
run (`fembench run MESH --ranks 4 --balance amortised`).

Examples:
  fembench balance --virtual slow-host                         # a scenario that comes with fembench
  fembench balance --virtual my.toml --policies none,amortised --look-every 5
  fembench balance results/single/runs/l-sym-none-p4-0123abcd-r1.json

A scenario file:
  name = "a host slows by 3 and recovers"
  speeds = [1, 1, 1, 1]        # or ranks = 300
  blocks = 16
  iterations = 600
  noise = 0.01                 # relative error of the observed time of a block
  [[events]]                   # rank and speed, or blocks and weight; over = N: linearly over N iterations
  at = 150
  rank = 1
  speed = 0.333
  [[links]]                    # messages to and from these ranks; also message_bytes, per_byte
  ranks = [3]
  per_message = 0.1
"""

import argparse

SETTINGS = (  # options of a case that hold on the virtual clock as well
    "look_every",
    "first_look",
    "interval",
    "band",
    "widen_after",
    "hysteresis",
    "cooldown",
    "origin",
    "net",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import case_option

    parser.add_argument(
        "what", nargs="+", metavar="SCENARIO|RECORD", help="scenarios (name or file), or records"
    )
    parser.add_argument("--virtual", action="store_true", help="run scenarios on a virtual clock")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")

    virtual = parser.add_argument_group("scenarios")
    virtual.add_argument(
        "--policies", default="", metavar="NAME,…", help="only these policies (default: all)"
    )
    for name in SETTINGS:
        case_option(virtual, name)
    virtual.add_argument(
        "--drain", default="", metavar="RANK@N", help="take all work from a rank, from iteration N on"
    )
    virtual.add_argument("--looks", action="store_true", help="also print every look")


def run(options: argparse.Namespace) -> int:
    return _virtual(options) if options.virtual else _ledgers(options)


def _ledgers(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.base.errors import InputError
    from fembench.records.store import load
    from fembench.report.balance_tables import balance_tables
    from fembench.report.table import text

    records = [load(path) for path in options.what]
    for record, path in zip(records, options.what):
        if record.balance is None:
            raise InputError(
                f"{path}: a run without --balance; expected a rebalanced run, or --virtual for a scenario"
            )
    if options.json:
        print(msgspec.json.encode([r.balance for r in records]).decode())
        return 0
    print("\n\n".join(f"{t.title}\n\n{text(t)}" for t in balance_tables(records) if t.rows))
    return 0


def _virtual(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.balance.drain import parse_drain
    from fembench.balance.scenario import read_scenario
    from fembench.balance.virtual import simulate

    scenarios = [read_scenario(name) for name in options.what]
    settings = _settings(options)
    found = []
    for scenario in scenarios:
        drain = parse_drain(options.drain, scenario.n_ranks)
        runs = [simulate(scenario, one, drain=drain) for one in settings]
        found.append({"scenario": scenario.name, "runs": {r.policy: r.ledger for r in runs}})
        if not options.json:
            _show(scenario, runs, options.looks)
    if options.json:
        print(msgspec.json.encode(found).decode())
    return 0


def _settings(options: argparse.Namespace) -> list:
    from fembench.balance.control import Settings
    from fembench.balance.policies import POLICIES
    from fembench.base.errors import InputError
    from fembench.records.case import FIELDS, new_case

    names = [n for n in options.policies.split(",") if n] or list(POLICIES)
    known = [name for name in FIELDS["balance"].choices if name]
    unknown = [n for n in names if n not in known]
    if unknown:
        raise InputError(f"--policies {unknown[0]}: expected some of {', '.join(known)}")
    names = list(dict.fromkeys(["none", *names]))  # the baseline of the others
    values = {name: getattr(options, name) for name in SETTINGS}
    cases = [new_case(values | {"balance": name}, "options") for name in names]
    return [Settings.of(case.balancing) for case in cases]


def _show(scenario, runs: list, looks: bool) -> None:
    from fembench.balance.virtual import against_no_moves
    from fembench.base.tables import table
    from fembench.base.units import plural
    from fembench.report.balance_tables import moves_text, prediction_errors

    size = f"{plural(scenario.blocks, 'block')} on {plural(scenario.n_ranks, 'rank')}"
    print(f"{scenario.name}: {size}, VIRTUAL clock\n")
    rows = []
    for r in runs:
        billed = against_no_moves(r, runs[0])
        errors = sorted(prediction_errors(r.ledger))
        rows.append(
            [
                r.policy,
                r.seconds,
                f"{100 * (1 - r.seconds / runs[0].seconds):.1f} %",
                len(r.ledger.looks),
                r.n_moves,
                billed.cost,
                billed.paid_back if billed.moved else "",
                float(r.supersteps[-1]),
                f"{100 * errors[len(errors) // 2]:.1f} %" if errors else None,
            ]
        )
    heads = ["policy", "seconds", "gain", "looks", "moves", "cost, s", "paid back", "last iteration, s"]
    print(table([*heads, "prediction off"], rows) + "\n")
    for r in runs if looks else []:
        seen = [
            [k.iteration, k.alpha, max(k.rank_time), min(k.rank_time), k.balanced, moves_text(k), k.predicted]
            for k in r.ledger.looks
        ]
        head = ["iteration", "alpha", "longest, s", "shortest, s", "balanced", "moves", "predicted, s"]
        print(f"{r.policy}\n\n{table(head, seen)}\n")
