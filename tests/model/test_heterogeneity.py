"""H: from kernels, brought up to date, and what it is good for."""

import numpy as np
import pytest
from planted_machine import planted_profile
from thesis_001 import named_rows, printed

from fembench.model.heterogeneity import (
    by_clock,
    by_load,
    by_queue,
    from_kernels,
    from_product,
    gain_over_equal,
    shares_of,
    shares_text,
)

H = (26, 26, 40, 42)


@pytest.mark.row("001:A6")
@pytest.mark.parametrize(
    ("table", "rule", "columns", "percent"),
    [
        ("table_4_27", by_queue, ("queue_standard", "queue_now"), 14.4),
        ("table_4_28", by_load, ("load_now",), 7.4),
        ("table_4_29", by_clock, ("wall_time_us", "cpu_time_us"), 4.8),
    ],
)
def test_the_three_laws_estimate_h_with_the_published_mean_errors(table, rule, columns, percent):
    """From the run queue, the load, and wall time over processor time, which is best."""
    rows = printed(table)
    found = [
        rule(*(float(row[name]) for name in ("h_calibrated", *columns))) / float(row["h_measured"])
        for row in rows
    ]
    assert 100 * np.abs(np.array(found) - 1).mean() == pytest.approx(percent, abs=0.1)


@pytest.mark.row("001:E1", "001:E5")
@pytest.mark.parametrize(
    ("idle", "loaded", "modeller", "percent"),
    [("4_2", "4_3", 0, 4.6), ("4_13", "4_14", -1, 4.1)],  # the second queue counts the modeller itself
)
def test_processes_that_only_compute_multiply_h_by_their_number(idle, loaded, modeller, percent):
    h = {r["host"]: float(r["h_factor"]) for r in named_rows(f"table_{idle}")}
    rows = {r["host"]: r for r in named_rows(f"table_{loaded}")}
    busy = [host for host, r in rows.items() if int(r["consumer_processes"])]
    assert busy == ["sn00", "sn01", "sn02", "sn04"]
    for host in busy:
        queue = float(rows[host]["queue_length"])
        estimated = by_queue(h[host], 1.0, queue + modeller)
        assert 100 * abs(estimated / float(rows[host]["h_factor"]) - 1) <= percent, host
    for host in ("sn16", "sn17"):  # left idle
        assert by_queue(h[host], 1, float(rows[host]["queue_length"])) == float(rows[host]["h_factor"])


def test_weights_from_h_finish_a_quarter_sooner_than_equal_shares():
    assert gain_over_equal(H) == pytest.approx(10.5 / 7.95, abs=0.001)  # max(H) / 4 over 1 / sum(1 / H)
    assert shares_of(H) * H == pytest.approx([7.953] * 4, abs=1e-3)


@pytest.mark.row("001:3.3")
def test_kernels_enter_with_equal_weight_whatever_their_length():
    assert from_kernels([[1.0, 100.0], [4.0, 100.0]]) == pytest.approx([1.0, 2.0])


def test_h_of_a_profile_is_that_of_its_product():
    assert from_product(planted_profile([1.0, 0.5, 0.25], hosts=("a", "b", "c"))) == pytest.approx([1, 2, 4])


def test_shares_and_what_equal_ones_cost_are_one_line():
    assert "; computing with equal shares would take 1.32 times as long" in shares_text(H)
    assert shares_text((*H, *H, *H)).count(" : ") == 8  # eight of twelve, and that there are more
    assert shares_text((1.0, 3.0)).startswith("shares of the work at these speeds: 0.750 : 0.250; computing")
