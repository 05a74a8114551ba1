"""Slips of the thesis' tables, from its printed numbers (seed 004, 7.3 and 8)."""

import pytest

from fembench.report.table import to_json
from fembench_studies.thesis_004.slips import slips


@pytest.mark.row("004:8")
def test_ten_slips_are_listed_with_what_was_expected():
    (table,) = slips().tables
    found = {(r["table"], r["tasks"], r["what"]): (r["printed"], r["expected"]) for r in to_json(table)}
    totals = {k: round(a - b, 2) for k, (a, b) in found.items() if k[2] == "total, ms"}
    assert totals == {
        ("5.7", 2, "total, ms"): 100.02,
        ("5.11", 2, "total, ms"): 9000.05,
        ("5.14", 2, "total, ms"): -3.20,
    }
    computing = {(k[0], k[1]): b for k, (_, b) in found.items() if k[2] == "speedup of computing"}
    assert computing == {("5.18", 3): 9, ("5.20", 5): 25, ("5.20", 6): 36, ("5.22", 6): 36}
    timers = [(r["where"], r["what"]) for r in to_json(table) if r["table"] == "5.3"]
    assert timers == [
        ("machine 1", "rdtsc_instruction, ms"),
        ("machine 3", "rdtsc_instruction, ms"),
        ("machine 3", "rdtscll, ms"),
    ]
    # machine 1 prints 0.00000882 ms for 12 cycles at 1700 MHz
    expected = next(r["expected"] for r in to_json(table) if r["where"] == "machine 1")
    assert abs(expected - 12 / 1700e3) < 1e-9
