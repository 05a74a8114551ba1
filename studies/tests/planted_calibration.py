"""A made-up calibration of a program, which nobody measured."""

from planted_environment import planted_environment

from fembench_studies.programs.record import AppRecord


def planted_calibration(case, samples, messages):
    """Samples of a program's operations and messages."""
    return AppRecord(
        schema=1,
        id="calibrated",
        created="2026-01-02T03:04:05+00:00",
        case=case,
        environment=planted_environment(
            ("node8",) * case.ranks, "fembench app", synthetic="emulated" if case.emulate else ""
        ),
        predicted=None,
        seconds=(),
        busy=(),
        done=(),
        value=0.0,
        error=0.0,
        samples=samples,
        messages=messages,
    )
