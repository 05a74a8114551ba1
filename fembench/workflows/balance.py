"""Rebalancing policies compared on a virtual clock."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fembench.balance.control import Settings, parse_drain
from fembench.balance.virtual import Scenario, VirtualRun, against_no_moves, read_scenario, simulate
from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import plural
from fembench.methods.policies import POLICIES
from fembench.records.case import FIELDS, new_case
from fembench.report.balance_tables import prediction_errors


def compared(
    scenarios: Sequence[Path | str], policies: Sequence[str], settings: Mapping[str, Any], drain: str = ""
) -> Iterator[tuple[Scenario, list[VirtualRun]]]:
    """Each scenario with its runs: without moves, then by each policy.

    scenarios: names or files; policies: (): all; settings: fields of a case; drain:
    'RANK@N', takes all work
    from a rank

    Raises InputError.
    """
    read = [read_scenario(str(name)) for name in scenarios]
    names = list(policies) or list(POLICIES)
    known = [name for name in FIELDS["balance"].choices if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"--policies {unknown[0]}: expected some of {', '.join(known)}")
    cases = [new_case({**settings, "balance": name}, "options") for name in dict.fromkeys(["none", *names])]
    each = [Settings.of(case.balancing) for case in cases]
    for scenario in read:
        leaving = parse_drain(drain, scenario.n_ranks)
        yield scenario, [simulate(scenario, one, drain=leaving) for one in each]


def text_of(scenario: Scenario, runs: Sequence[VirtualRun]) -> str:
    """The table of the policies."""
    size = f"{plural(scenario.blocks, 'block')} on {plural(scenario.n_ranks, 'rank')}"
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
    parts = [f"{scenario.name}: {size}, VIRTUAL clock", table([*heads, "prediction off"], rows)]
    return "\n\n".join(parts) + "\n"
