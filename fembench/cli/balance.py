"""Compare rebalancing policies, or show what one did.

With --virtual, every policy runs a scenario on a virtual clock: the result is
exact, repeatable, and independent of this machine's cores. Without it, the verb
prints the decisions in the record of a rebalanced run (`fembench run MESH
--ranks 4 --balance amortised`).

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

from fembench.cli.options import declare
from fembench.cli.shared import case_option
from fembench.records.case_fields import CaseBalancing

OF_RUNS = {"balance", "blocks_per_rank", "ageing", "link_costs", "drain"}  # SCENARIO files have their own
SETTINGS = [name for name in CaseBalancing.__struct_fields__ if name not in OF_RUNS]

OPTIONS = """
what SCENARIO|RECORD+: scenarios (name or file), or records
--virtual: run scenarios on a virtual clock
--json: print JSON instead of tables
"""
VIRTUAL = """
--policies NAME,…: only these policies (default: all)
"""
MORE = """
--drain RANK@N: take all work from a rank, from iteration N on
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS)
    virtual = parser.add_argument_group("scenarios")
    declare(virtual, VIRTUAL)
    for name in SETTINGS:
        case_option(virtual, name)
    declare(virtual, MORE)


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

    from fembench.workflows.balance import compared, text_of

    asked = options.policies
    policies = [name for name in asked.split(",") if name] or [asked][: len(asked)]
    settings = {name: getattr(options, name) for name in SETTINGS}
    found = []
    for scenario, runs in compared(options.what, policies, settings, options.drain):
        found.append({"scenario": scenario.name, "runs": {r.policy: r.ledger for r in runs}})
        if not options.json:
            print(text_of(scenario, runs))
    if options.json:
        print(msgspec.json.encode(found).decode())
    return 0
