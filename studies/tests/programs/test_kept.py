"""Existing records are reused only if they are of the same case."""

import msgspec
import pytest
from planted_calibration import planted_calibration

from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import AppCase

CASE = AppCase(program="pi", ranks=2, tasks=4, size=100, dealt=(4,))


def test_a_record_of_another_effort_is_measured_again_and_only_shown_where_nothing_is_measured(tmp_path):
    record = planted_calibration(CASE, {"point": ((1e-6,), (1e-6,))}, {})
    runs, shown = ProgramRuns(tmp_path), ProgramRuns(tmp_path, only_kept=True)
    assert shown.kept("pi", CASE, pytest.fail) is None
    assert runs.kept("pi", CASE, lambda: record) == record
    assert runs.kept("pi", msgspec.structs.replace(CASE, size=0), pytest.fail) == record
    for changes in ({"size": 200}, {"dilate": 2.0}, {"repetitions": 9}):
        case = msgspec.structs.replace(CASE, **changes)
        other = msgspec.structs.replace(record, case=case)
        assert shown.kept("pi", case, pytest.fail) == record
        assert runs.kept("pi", case, lambda other=other: other) == other
        assert runs.kept("pi", CASE, lambda: record) == record


def test_a_record_that_does_not_serve_is_made_again_once(tmp_path):
    record = planted_calibration(CASE, {"point": ((1e-6,), (1e-6,))}, {})
    made = []

    def make():
        made.append(msgspec.structs.replace(record, value=float(len(made))))
        return made[-1]

    def kept(serving):
        return ProgramRuns(tmp_path).kept("pi", CASE, make, lambda one: one.value in serving).value

    assert (kept([0.0]), kept([0.0]), len(made)) == (0.0, 0.0, 1)
    assert (kept([]), kept([1.0]), len(made)) == (1.0, 1.0, 2)
    assert (kept([5.0]), len(made)) == (2.0, 3)
