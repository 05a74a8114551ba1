"""Hosts in reports: phases by host, speedup by hosts, and where ranks ran."""

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from planted_nodes import Planted, planted_nodes
from planted_records import nested
from report_sample import HOST, environment, make_record, rows_of

from fembench.records import phases as ph
from fembench.records.record import DeviceFacts
from fembench.report import tables
from fembench.report.results import results
from fembench.report.slow_hosts import host_times
from fembench.report.table import to_json
from fembench.weights.host_speed import host_speeds

replace = msgspec.structs.replace


def on_hosts(n, ranks_each=1, slow=None, factor=2.0, mesh="m3", **changes):
    """A record on n hosts of the same kind; the computing of host `slow` takes `factor` times as long."""
    hosts = tuple(replace(HOST, name=f"n{k:03d}") for k in range(n))
    ranks = n * ranks_each
    record = make_record(
        mesh, ranks, skew=0.0, noise=0.0, events=False, environment=environment(ranks, hosts=hosts), **changes
    )
    if slow is None:
        return record
    mine = [p for p in range(ranks) if record.environment.rank_host[p] == slow]
    return replace(
        record, sets=tuple(replace(s, seconds=_slowed(s.seconds, mine, factor)) for s in record.sets)
    )


def _slowed(seconds, ranks, factor):
    """Those ranks compute longer, and the others wait for them."""
    rows = np.array(seconds)
    before = rows[:, list(ph.COMPUTING[1:])].sum(axis=1)
    rows[np.ix_(ranks, ph.COMPUTING)] *= factor
    after = rows[:, list(ph.COMPUTING[1:])].sum(axis=1)
    others = [p for p in range(len(rows)) if p not in ranks]
    rows[others, ph.WAIT] += (after - before).max()
    rows[:, ph.CG] = rows[:, list(ph.CG_PARTS)].sum(axis=1)
    return nested(rows)


def three(n, slow, factor=2.0, **changes):
    """Runs in which host `slow` takes about `factor` times as long."""
    return [on_hosts(n, slow=slow, factor=factor + 0.01 * k, run=k, **changes) for k in range(3)]


def test_a_slow_host_comes_first_with_its_factor_in_every_computing_phase():
    rows = rows_of([on_hosts(5, 2, slow=3, factor=2 + 0.01 * k, run=k) for k in range(3)], "host_times")
    assert rows[0]["host"] == "n003"
    assert rows[0]["host_speed"] == pytest.approx(0.5, rel=0.01)
    for name in ("assembly", "product", "vectors", "computing"):
        assert rows[0][f"{name}_relative"] == pytest.approx(2.01)
        assert rows[1][f"{name}_relative"] == pytest.approx(1.0)
    assert rows[0]["wait_relative"] < 0.5
    assert {r["ranks_on_host"] for r in rows} == {2}


def test_the_speed_of_a_host_is_cells_over_computing_time_whatever_its_share():
    records = three(3, slow=1)
    uneven = [replace(r, partition=replace(r.partition, cells=(4000, 2000, 3126))) for r in records]
    speeds = host_speeds(None, uneven)
    busy = np.array(uneven[1].sets[-1].seconds)[:, list(ph.COMPUTING)].sum(axis=1)
    cells_per_second = np.array([4000, 2000, 3126]) / busy
    expected = cells_per_second / np.median(cells_per_second)
    assert [speeds.of(f"n{k:03d}").speed for k in range(3)] == pytest.approx(expected)


def at_odds():
    """(nodes of which n3 is slow, a single run in which n1 took twice as long as the others)."""
    named = {f"n{k:03d}": f"n{k + 1}" for k in range(3)}
    record = on_hosts(3, slow=0)
    hosts = tuple(replace(host, name=named[host.name]) for host in record.environment.hosts)
    record = replace(record, environment=replace(record.environment, hosts=hosts))
    return planted_nodes(3, {2: Planted(cores=0.3)}, noise=1e-3), record


def test_headline_and_tables_state_the_same_speed_of_a_host():
    nodes, record = at_odds()
    made = {t.name: to_json(t) for t in tables.every_table([record], nodes=nodes)}
    headline = {row["what"]: row for row in made["headline"]}
    speed = headline["slowest host"]["value"] / 100
    assert headline["slowest host"]["remarks"].startswith("n3: ")
    assert {row["node"]: row["speed"] for row in made["nodes"]}["n3"] == pytest.approx(speed)
    assert (made["host_times"][0]["host"], made["host_times"][0]["host_speed"]) == (
        "n3",
        pytest.approx(speed),
    )


def in_turns():
    """A run on three hosts of one machine with two cores."""
    record = on_hosts_with(on_hosts(3), machine=0, cores=2)
    return replace(record, environment=replace(record.environment, cores=((0,), (1,), (0,))))


def test_hosts_whose_ranks_take_turns_on_the_cores_of_one_machine_are_not_compared():
    assert host_times(results([in_turns()])) == []


def test_phases_by_host_that_are_left_out_because_ranks_take_turns_are_listed_with_that_reason():
    why = {row["what"]: row["why"] for row in rows_of([in_turns()], "unavailable")}
    assert why["phases by host"] == "3 ranks take turns on 2 cores in every run on several hosts"
    both = rows_of([in_turns(), on_hosts(3, mesh="m2")], "unavailable")
    assert "phases by host" not in {row["what"] for row in both}


def test_placements_are_listed_once_with_hosts_and_cpus():
    records = [on_hosts(2, 2), on_hosts(2, 2, mesh="m2"), make_record(ranks=2)]
    rows = rows_of(records, "rank_places")
    assert [(r["placement"], r["runs"], r["rank"], r["host"]) for r in rows] == [
        (1, 1, 0, "node8"), (1, 1, 1, "node8"),
        (2, 2, 0, "n000"), (2, 2, 1, "n000"), (2, 2, 2, "n001"), (2, 2, 3, "n001"),
    ]  # fmt: skip
    assert [r["cpus"] for r in rows] == ["0", "1", "0", "1", "2", "3"]
    assert {r["remarks"] for r in rows} == {""}


def test_ranks_that_may_use_the_same_cpus_say_so_unless_they_are_on_different_hosts():
    wide = replace(environment(3), affinity=((0, 1), (1, 2), (4,)))
    rows = rows_of([make_record(ranks=3, environment=wide)], "rank_places")
    assert [r["cpus"] for r in rows] == ["0-1", "1-2", "4"]
    assert [r["remarks"] for r in rows] == ["may share CPUs with 1 other rank"] * 2 + [""]
    apart = replace(on_hosts(2, 1).environment, affinity=((0,), (0,)))
    assert {r["remarks"] for r in rows_of([replace(on_hosts(2, 1), environment=apart)], "rank_places")} == {
        ""
    }


def test_devices_are_named_with_their_memory_and_ranks_in_what_a_terminal_shows():
    gpu, core = DeviceFacts("Some GPU", 80 << 30, "CUDA 13.0", "NVRTC 13.0 by CuPy 14.0"), DeviceFacts()
    one = environment(3, devices=(gpu, core, gpu))
    made = [make_record(ranks=3, run=k, environment=one) for k in range(2)]
    (row,) = rows_of(made, "devices")
    assert row == {
        "device": "Some GPU",
        "memory_bytes": 80 << 30,
        "host": "node8",
        "ranks": "0 2",
        "remarks": "CUDA 13.0, NVRTC 13.0 by CuPy 14.0",
    }
    assert "\n\nDevices\n\n" in tables.selected(tables.every_table(made))
    assert "devices" not in {t.name for t in tables.every_table([make_record(ranks=3)])}
