"""Existing records are reused only if they are of the same case."""

import msgspec
from planted_calibration import planted_calibration

from fembench_studies.programs.kept import kept_record
from fembench_studies.programs.record import AppCase, save_app

CASE = AppCase(program="pi", ranks=2, tasks=4, size=100, dealt=(4,))


def test_a_record_of_another_effort_is_measured_again_and_only_shown_where_nothing_is_measured(tmp_path):
    path = tmp_path / "pi.json"
    assert kept_record(path, CASE) is None
    record = planted_calibration(CASE, {"point": ((1e-6,), (1e-6,))}, {})
    save_app(record, path)
    assert kept_record(path, CASE) == record
    for changes in ({"size": 200}, {"dilate": 2.0}, {"repetitions": 9}):
        other = msgspec.structs.replace(CASE, **changes)
        assert kept_record(path, other) is None
        assert kept_record(path, other, whatever=True) == record
