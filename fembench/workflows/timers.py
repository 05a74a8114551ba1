"""What one reading of each clock costs on this machine: measured, as text and as JSON."""

from typing import Any

import msgspec

from fembench.base.tables import table
from fembench.records.record import ClockCertificate
from fembench.timing.certificate import certify
from fembench.timing.experiment import CALLS, Experiment, run_experiment


def as_tree(experiment: Experiment, certificate: ClockCertificate) -> dict[str, Any]:
    """The experiment and its certificate, for JSON output."""
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
    parts = [head, _ours(experiment), *([note] if note else []), clock]
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


__all__ = ["as_text", "as_tree", "timed"]


def timed(calls: int = CALLS) -> tuple[Experiment, ClockCertificate, str]:
    """(each timer; the certificate of a run's clock; why MPI_Wtime is missing, if it is)."""
    try:
        from fembench.ranks import comm

        experiment, note = run_experiment(calls, comm.MPI.Wtime, comm.address("MPI_Wtime")), ""
    except (ImportError, RuntimeError) as error:  # mpi4py without an MPI library raises RuntimeError
        experiment = run_experiment(calls)
        note = f"MPI_Wtime not measured, no MPI here: {str(error).splitlines()[0]}"
    return experiment, certify(), note
