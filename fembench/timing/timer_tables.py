"""The measured costs of clocks beside the published ones, as text and as JSON."""

from typing import Any

import msgspec

from fembench.base.tables import table
from fembench.records.record import ClockCertificate
from fembench.timing.experiment import (
    COUNTERPART,
    PUBLISHED_CYCLES,
    PUBLISHED_MACHINES,
    PUBLISHED_MEAN_MS,
    Experiment,
)

SOURCE = "Ferreira (2006), Tables 5.2 and 5.3"


def as_tree(experiment: Experiment, certificate: ClockCertificate) -> dict[str, Any]:
    """The experiment, its certificate and the published tables, for JSON output."""
    timers = [
        {
            **t._asdict(),
            **{f"{k}_ns": experiment.nanoseconds(getattr(t, k)) for k in ("best", "worst", "mean", "median")},
        }
        for t in experiment.timers
    ]
    return {
        "reference": experiment.reference,
        "ticks_per_second": experiment.ticks_per_second,
        "calls": experiment.calls,
        "timers": timers,
        "certificate": msgspec.to_builtins(certificate),
        "published": {
            "source": SOURCE,
            "machines": PUBLISHED_MACHINES,
            "cycles_best_worst_mean": PUBLISHED_CYCLES,
            "mean_ms": PUBLISHED_MEAN_MS,
        },
    }


def as_text(experiment: Experiment, certificate: ClockCertificate, note: str = "") -> str:
    """Tables for a terminal or a Markdown page."""
    unit = "ticks of the TSC" if experiment.reference == "tsc" else "nanoseconds of perf_counter_ns"
    head = (
        f"{experiment.calls} calls of each timer, in {unit} at {experiment.ticks_per_second / 1e6:.3f} MHz;"
        " the cost of the reference's own reading is in every row."
    )
    verdict = "certified" if certificate.certified else "not certified"
    clock = (
        f"clock of a run: {certificate.name} ({verdict}: {certificate.reason};"
        f" drift {certificate.drift:.1e}); quantum {certificate.quantum_ns:.3g} ns,"
        f" a reading {certificate.read_ns:.3g} ns, a recorded span {certificate.span_ns:.3g} ns"
    )
    parts = [head, _ours(experiment), *([note] if note else []), clock, _published(experiment)]
    return "\n\n".join(parts)


def _ours(experiment: Experiment) -> str:
    rows = []
    for timer in experiment.timers:
        ticks = (timer.best, timer.worst, timer.mean)
        rows.append(
            [timer.timer, timer.language, *map(_short, (*ticks, *map(experiment.nanoseconds, ticks)))]
        )
    heads = ["timer", "called from", "best", "worst", "mean", "best ns", "worst ns", "mean ns"]
    return table(heads, rows, align="llrrrrrr")


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _published(experiment: Experiment) -> str:
    """The published means beside ours, and the cost of one MPI_Wtime in rdtsc calls."""
    ours = {t.timer: t.mean for t in experiment.timers if t.language == "C"}
    rows = []
    for timer, machines in PUBLISHED_CYCLES.items():
        mean = ours.get(COUNTERPART[timer])
        rows.append(
            [
                timer,
                *(f"{m[2]:g} ({_short(ms * 1e6)} ns)" for m, ms in zip(machines, PUBLISHED_MEAN_MS[timer])),
            ]
            + ["–" if mean is None else f"{_short(mean)} ({_short(experiment.nanoseconds(mean))} ns)"]
        )
    rdtsc, wtime = PUBLISHED_CYCLES["rdtsc instruction"], PUBLISHED_CYCLES["MPI_Wtime()"]
    ratios = [f"{w[2] / r[2]:.0f}" for w, r in zip(wtime, rdtsc)]
    here = f"{ours['MPI_Wtime'] / ours['rdtsc']:.2g}" if {"MPI_Wtime", "rdtsc"} <= ours.keys() else "–"
    rows.append(["MPI_Wtime / rdtsc", *ratios, here])
    heads = ["mean of 100 calls from C, cycles", *PUBLISHED_MACHINES, "this machine"]
    return f"{SOURCE}:\n\n" + table(heads, rows, align="lrrrr")
