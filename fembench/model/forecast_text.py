"""Forecasts as text: one row per run; for a single run, also its phases and what limits it."""

from collections.abc import Sequence

from fembench.base.tables import table
from fembench.base.units import plural, seconds
from fembench.model.forecast import Forecast
from fembench.records.prediction import Prediction

IDEAL = 10.0  # computing over messages from which messages hardly matter


def forecast_text(found: Sequence[Forecast], iterations: int, synthetic: str, learned: int) -> str:
    """All tables. `iterations` of a solution, 0 if unknown; `learned`: number of runs used for correction."""
    first = found[0].work
    corrected = f", corrected by {plural(learned, 'run')}" if learned else ""
    lines = [f"SYNTHETIC: {synthetic}"] if synthetic else []
    storage = first.case.method.storage
    lines += [f"{first.case.question.mesh}: {first.n_equations} equations, storage {storage}{corrected}"]
    lines += ["", _runs(found, iterations)]
    if len(found) == 1:
        lines += ["", _phases(found[0]), "", *found[0].limits, *_ratio(found[0])]
    return "\n".join(lines)


def _ratio(one: Forecast) -> list[str]:
    """Computing over messages and waiting, and how well such a program suits a cluster (Herai 2005, 5.2)."""
    busy = one.outcome.busy.sum()
    other = one.outcome.finish.sum() - busy
    if not other > 0:
        return []
    suits = "ideal" if busy >= IDEAL * other else "usable" if busy > other else "more ranks gain little"
    return [f"computing over messages and waiting: {busy / other:.3g} ({suits})"]


def outcome_text(prediction: Prediction, record: str) -> str:
    """Errors of the prediction for the run with this id, in total and by phase."""
    seen = next(o for o in prediction.observed if o.record == record)
    said, took = seconds(prediction.predicted.iteration), seconds(seen.iteration)
    lines = [f"predicted {said} per iteration, measured {took}: error {seen.error:+.1%}"]
    phases = sorted(seen.phases.items(), key=lambda item: -abs(item[1]))
    return "\n".join([*lines, *(f"  {name:20s} {error:+.1%} of the iteration" for name, error in phases)])


def _runs(found: Sequence[Forecast], iterations: int) -> str:
    total = [plural(iterations, "iteration")] if iterations else []
    heads = ["ranks", "iteration", "t_min", "t_max", "assembly", *total]
    heads += ["speedup", "slowest rank / mean", "bound by"]
    alone = found[0].iteration if found[0].work.ranks == 1 else None
    rows = []
    for f in found:
        busy = f.outcome.busy.sum(axis=1)
        row: list[object] = [f.work.ranks, *map(seconds, (f.iteration, f.low, f.high, f.assembly))]
        row += [seconds(f.total(iterations)[1])] if iterations else []
        row += [
            alone / f.iteration if alone else None,
            float(busy.max() / busy.mean()),
            f.limits[0].split(":")[0],
        ]
        rows.append(row)
    return table(heads, rows, align="r" * (len(heads) - 1) + "l", digits=3)


def _phases(one: Forecast) -> str:
    whole = sum(one.phases.values())
    parts = sorted(one.phases.items(), key=lambda item: -item[1])
    return table(["phase", "time", "part"], [[n, seconds(t), f"{t / whole:.1%}"] for n, t in parts])
