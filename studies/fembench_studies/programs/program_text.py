"""Records of small programs as text."""

from pathlib import Path

from fembench.base.tables import table
from fembench.base.units import plural, seconds
from fembench.model.closed_form import TimeRange
from fembench_studies.pamela.interval_score import score
from fembench_studies.pamela.program_models import machine_of
from fembench_studies.programs.record import AppRecord


def as_text(record: AppRecord) -> str:
    """Times of the runs and scores of their predictions, or the
    intervals of a calibration."""
    label = [f"SYNTHETIC: {record.environment.synthetic}"] if record.environment.synthetic else []
    return "\n\n".join([*label, *(_calibration(record) if record.samples else _runs(record))])


def _calibration(record: AppRecord) -> list[str]:
    model = machine_of(record)
    rows = [
        [name, p, seconds(i.low), seconds(i.high), f"{100 * i.half_width:.1f} %"]
        for name in record.samples
        for p, i in ((p, model.cost(name, p)) for p in range(record.case.ranks))
    ]
    return [table(["operation", "rank", "from", "to", "half width"], rows)]


def _runs(record: AppRecord) -> list[str]:
    found = record.seconds
    right = "right" if record.error <= 1 else "WRONG"
    heads, rows = ["", "nr", "seconds"], [["run", k, seconds(t)] for k, t in enumerate(found, 1)]
    name, ranks = Path(record.case.program).name, plural(record.case.ranks, "rank")
    lines = [f"{name} on {ranks}: {record.value:.10g} ({right})"]
    if (p := record.predicted) and not record.invalid:
        s = score(found, [TimeRange(p.low, p.high)] * len(found))
        rows = [[*row, f"{100 * e:+.2f} %"] for row, e in zip(rows, s.errors)]
        heads.append("outside by")
        lines.append(
            f"predicted {p.low:.4g} to {p.high:.4g} s ({p.method}; {p.compose}, {p.conditionals}): "
            f"mean error {100 * s.mean_error:.2f} %, {s.hits} of {len(found)} inside, "
            f"middle off by {100 * s.middle_error:.2f} %"
        )
    if record.invalid:
        lines.append(f"INVALID: {record.invalid}")
    return [table(heads, rows, align="l" + "r" * (len(heads) - 1)), "\n".join(lines)]
