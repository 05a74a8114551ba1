"""Rings, forks and joins by HLogP against the printed numbers of thesis-001."""

import pytest
from thesis_001 import DATA, named_rows

from fembench.records.hlogp import Kielmann, MessageCost
from fembench_studies.programs.real_messages import error_percent, fork_delay, ring_makespan
from fembench_studies.thesis_001.grid_plan import printed

LINES = {  # time lines in the order of chapters 4 and 5: table -> its columns
    "4_11": ("uff_uff_us", "uff_puc_us"),
    "4_24": ("iia_uff_uff_us", "iia_uff_puc_us", "iib_uff_uff_us", "iib_uff_puc_us"),
    "4_37": ("uff_uff_us", "uff_puc_us"),
    "5_10": ("uff_uff_us", "uff_sinergia_us"),
}
SLIPS = {  # (table, column) -> the sum of its summands, where the printed end is another
    ("4_11", "uff_uff_us"): 13655926,
    ("4_37", "uff_uff_us"): 31570320,
    ("4_37", "uff_puc_us"): 38027913,
}
OF_THE_ESTIMATE = {"4_12", "4_25", "4_26", "5_11"}  # errors are printed relative to the estimate
RESULTS = (*sorted(OF_THE_ESTIMATE), "4_38")


def table(name):
    """Rows of a table, wherever it is."""
    carried = (DATA / f"seed001_{name}.csv").exists()
    return named_rows(name) if carried else printed(name)


@pytest.mark.row("001:3.10", "001:E4", "001:A1")
@pytest.mark.parametrize(("name", "column"), [(n, c) for n, columns in LINES.items() for c in columns])
def test_the_ring_ends_when_its_time_line_says(name, column):
    steps = {r["step"]: float(r[column]) for r in table(f"table_{name}")}
    values = [float(r[column]) for r in table(f"table_{name}") if r["step"][:3] not in ("sta", "end")]
    end = next(value for step, value in steps.items() if step.startswith("end of T0"))
    if name == "4_11":  # version I: Proc, L, g
        messages = [Kielmann(*values[k : k + 2]) for k in (1, 4, 7)]
        total = ring_makespan(values[::3], messages)
    else:  # Proc, Os, L, Or
        total = ring_makespan(values[::4], [MessageCost(*values[k : k + 3]) for k in (1, 5, 9)])
    assert total == SLIPS.get((name, column), end)
    assert (total != end) == ((name, column) in SLIPS)


@pytest.mark.row("001:A2")
@pytest.mark.parametrize(("name", "row"), [(name, row) for name in RESULTS for row in (0, 1)])
def test_errors_are_percent_of_what_was_measured(name, row):
    said = table(f"table_{name}")[row]
    measured, estimated = float(said["measured_us"]), float(said["estimated_us"])
    relative_to = (estimated, measured) if name in OF_THE_ESTIMATE else (measured, estimated)
    assert error_percent(*relative_to) == pytest.approx(float(said["error_printed_percent"]), abs=0.01)
    recomputed = said.get("error_of_measured_recomputed_percent", said["error_printed_percent"])
    assert error_percent(measured, estimated) == pytest.approx(float(recomputed), abs=0.01)


@pytest.mark.row("001:3.12", "001:A7")
@pytest.mark.parametrize("said", printed("fork_join"), ids=lambda r: r["case"])
def test_overheads_of_a_fork_and_a_join_add_up(said):
    each = [float(said["mean_overhead_us"])] * int(said["children"])
    delay = fork_delay(each, float(said["local_delay_us"]))
    assert delay == float(said["predicted_delay_us"])
    off = error_percent(float(said["measured_delay_us"]), delay)
    assert off == pytest.approx(float(said["error_percent"]), abs=0.005)
