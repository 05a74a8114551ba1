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


def updated(number, rule, *columns):
    """Mean error in per cent of H by a rule on these columns."""
    rows = printed(f"table_{number.replace('.', '_')}")
    found = [rule(*(float(r[name]) for name in columns)) / float(r["h_measured"]) for r in rows]
    return np.abs(np.array(found) - 1).mean() * 100


def test_the_run_queue_estimates_h_as_badly_as_in_table_4_27():
    error = updated("4.27", by_queue, "h_calibrated", "queue_standard", "queue_now")
    assert error == pytest.approx(14.4, abs=0.1)


def test_the_load_does_better_as_in_table_4_28():
    error = updated("4.28", by_load, "h_calibrated", "load_now")
    assert error == pytest.approx(7.4, abs=0.1)


@pytest.mark.row("001:A6")
def test_wall_time_over_processor_time_is_best_as_in_table_4_29():
    error = updated("4.29", by_clock, "h_calibrated", "wall_time_us", "cpu_time_us")
    assert error == pytest.approx(4.8, abs=0.1)


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
    n = 1.0
    assert max(H) * n / 4 == 10.5 * n
    assert 1 / np.sum(1 / np.array(H)) == pytest.approx(7.95, abs=0.005)
    assert gain_over_equal(H) == pytest.approx(1.320, abs=0.001)
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
