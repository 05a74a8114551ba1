"""A profile as text: hosts, the speed matrix, sizes and company, and what speaks against it."""

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_profile import planted_profile

from fembench.report.profiles import profile_text, sizes_table, speeds_table, warnings

replace = msgspec.structs.replace


def row(text, start):
    (line,) = [line for line in text.splitlines() if line.replace(" ", "").startswith(start)]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_matrix_has_a_row_a_rank_and_a_column_a_phase_with_intervals():
    text = speeds_table(planted_profile([1.0, 0.5], hosts=("a", "b"), noise=0.01, visits=20), (1.0, 0.5))
    cells = row(text, "|1|b|")
    assert len(cells) == 2 + 4 + 1
    value, part = cells[2].split(" ±")  # 1e7 cells per second at half speed
    assert float(value) == pytest.approx(5.0, rel=0.02)
    assert 0 < float(part.rstrip("%")) < 3
    assert cells[-1] == "0.500"


def test_sizes_and_company_are_side_by_side():
    cells = row(sizes_table(planted_profile([1.0, 1.0]), 0), "|productsym|")
    # 4e8 cells of 2.5 blocks per second alone, 1/sqrt(2) of it with two at once
    assert cells[1] == "M blocks/s"
    assert [float(cell) for cell in cells[2:]] == pytest.approx([707.1] * 3 + [1000.0], rel=1e-3)


def test_emulated_speeds_are_labelled_in_every_table():
    profile = planted_profile([1.0, 0.5])
    profile = replace(profile, environment=replace(profile.environment, synthetic="emulated speeds 1,0.5"))
    assert "SYNTHETIC: emulated speeds 1,0.5" in profile_text(profile)
    assert "SYNTHETIC" in speeds_table(profile)
    assert "SYNTHETIC" in sizes_table(profile, 0)
    assert "SYNTHETIC" not in profile_text(planted_profile([1.0, 0.5]))


def test_a_quiet_machine_has_no_warnings():
    assert warnings(planted_profile([1.0, 1.0])) == []


def test_what_disturbs_is_named():
    profile = planted_profile([1.0, 1.0])
    assert "rank 1 on node8 most: 30 %" in warnings(replace(profile, held_back=(0.1, 0.3)))[0]
    slow = {"throttled_percent": 60.0, "cpu_quota": 0.25, "quota_group": "fembench.lab/node8"}
    (line,) = warnings(on_hosts_with(profile, **slow))
    assert "withheld by the quota of 0.25 CPUs on control group fembench.lab/node8" in line
    crowded = replace(profile, environment=replace(profile.environment, oversubscribed=True))
    assert "OVERSUBSCRIBED" in warnings(crowded)[0]


def test_data_that_the_third_cache_might_hold_are_pointed_out():
    profile = planted_profile([1.0, 1.0])
    (line,) = warnings(on_hosts_with(profile, caches={"L3": 1 << 40}))
    assert "L3 cache" in line
    assert warnings(on_hosts_with(profile, caches={"L3": 1 << 20})) == []
