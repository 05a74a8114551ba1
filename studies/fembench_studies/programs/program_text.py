"""Records of small programs as text."""

from pathlib import Path

from fembench.base.tables import table
from fembench.base.units import plural, seconds
from fembench.model.interval import TimeRange
from fembench_studies.pamela.interval_score import score
from fembench_studies.pamela.program_models import keeping, machine_of
from fembench_studies.programs.record import AppRecord


def as_text(record: AppRecord) -> str:
    """Times of the runs and scores of their predictions, or the intervals of a calibration."""
    label = [f"SYNTHETIC: {record.environment.synthetic}"] if record.environment.synthetic else []
    return "\n\n".join([*label, *(_calibration(record) if record.samples else _runs(record))])


def _calibration(record: AppRecord) -> list[str]:
    model = machine_of(record)
    rows = [
        [name, p, seconds(i.low), seconds(i.high), f"{100 * i.half_width:.1f} %"]
        for name in record.samples
        for p, i in ((p, model.cost(name, p)) for p in range(record.case.ranks))
    ]
    return [
        table(["operation", "rank", "from", "to", "half width"], rows),
        table(["messages with rank 0", "bytes", "from", "to"], _messages(record), align="lrrr"),
    ]


def _messages(record: AppRecord) -> list[list[object]]:
    """Times of messages, and times for which a farm's messages occupy its workers; ranges over all ranks."""
    rows: list[list[object]] = []
    kinds = {"under way": record.messages, "taking a task": record.taking, "answering": record.answering}
    for kind, samples in kinds.items():
        found = keeping(samples, record.case.ranks).sends if samples else {}
        for n_bytes in map(int, samples):
            each = [by_size[n_bytes] for by_size in found.values()]
            if each:
                rows.append(
                    [kind, n_bytes, seconds(min(i.low for i in each)), seconds(max(i.high for i in each))]
                )
    return rows


def _runs(record: AppRecord) -> list[str]:
    found = record.seconds
    right = "right" if record.error <= 1 else "WRONG"
    heads, rows = ["", "nr", "seconds"], [["run", k, seconds(t)] for k, t in enumerate(found, 1)]
    name, ranks = Path(record.case.program).name, plural(record.case.ranks, "rank")
    lines = [f"{name} on {ranks}: {record.value:.10g} ({right})"]
    if p := record.predicted:
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
