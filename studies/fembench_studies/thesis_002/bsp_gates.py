"""What the study claims of its runs: observing is cheap, the default does no harm, predictions come true."""

from collections.abc import Iterator, Sequence

from fembench.report.balance_tables import prediction_errors
from fembench_studies.bsp.bsp_job import CellTimes, ProgramTimes
from fembench_studies.claims import StudyClaim, error_claim, most_claim
from fembench_studies.programs.record import used_by_others
from fembench_studies.thesis_002.bsp_plan import BspScenario
from fembench_studies.thesis_002.bsp_tables import Found, usual

OVERHEAD, HARM = 1.05, 1.05  # times over that without balancing
PREDICTED = 10.0  # per cent: median error of the predicted superstep


def claims(found: Found) -> list[StudyClaim]:
    """The claims of each scenario, with intervals over its repetitions, which are interleaved."""
    return [claim for scenario, times in found.items() for claim in _of(scenario, times)]


def _of(scenario: BspScenario, times: ProgramTimes) -> Iterator[StudyClaim]:
    cells = {c.cell.policy: c for c in times.cells if usual(c)}
    reason, name = (
        used_by_others(*times.others, "the busiest machine"),
        f"table {scenario.table}, {scenario.name}",
    )
    for policy, limit in (("observe", OVERHEAD), ("amortised", HARM)):
        ratios = _ratios(cells[policy], cells["none"])
        yield most_claim(f"{name}: time with '{policy}' over that without", limit, ratios, reason, unit="")
    errors = [100 * e for e in prediction_errors(cells["amortised"].ledger)]
    if errors:
        yield error_claim(f"{name}: predicted superstep after a look", PREDICTED, errors, reason)


def _ratios(cell: CellTimes, without: CellTimes) -> Sequence[float]:
    return [a / b for a, b in zip(cell.seconds, without.seconds)]
