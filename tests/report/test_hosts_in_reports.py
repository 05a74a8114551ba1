"""Hosts in reports: phases by host, speedup by hosts, and where ranks ran."""

import msgspec
import numpy as np
import pytest
from report_sample import HOST, environment, make_record, nested

from fembench.records import phases as ph
from fembench.report import tables
from fembench.report.host_times import COLUMNS, host_speeds, host_times
from fembench.report.plots.heat_map import heat_map
from fembench.report.results import results
from fembench.report.table import to_json

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


def rows_of(records, name):
    return to_json(next(t for t in tables.every_table(records) if t.name == name))


def test_a_slow_host_comes_first_with_its_factor_in_every_computing_phase():
    rows = rows_of([on_hosts(5, 2, slow=3)], "host_times")
    assert rows[0]["host"] == "n003"
    for name in ("assembly", "product", "vectors", "computing"):
        assert rows[0][f"{name}_relative"] == pytest.approx(2.0)
        assert rows[1][f"{name}_relative"] == pytest.approx(1.0)
    assert rows[0]["wait_relative"] < 0.5
    assert {r["ranks_on_host"] for r in rows} == {2}


def test_the_speed_of_a_host_is_cells_over_computing_time_whatever_its_share():
    record = on_hosts(3, 1, slow=1)
    weighted = replace(record.partition, cells=(4000, 2000, 3126))
    names, speeds = host_speeds(results([replace(record, partition=weighted)])[0])
    busy = np.array(record.sets[-1].seconds)[:, list(ph.COMPUTING)].sum(axis=1)
    assert names == ("n000", "n001", "n002")
    assert speeds == pytest.approx(np.array([4000, 2000, 3126]) / busy)


@pytest.mark.parametrize("n", [2, 12, 500])
def test_a_heat_map_names_the_slow_host_among_few_and_among_many(n):
    plot = heat_map(host_times(results([on_hosts(n, slow=1)])))
    assert ">n001<" in plot.svg.replace(" ", "")
    assert "Computing takes longest on n001" in plot.caption
    assert len(plot.svg) < 400_000
    assert all(f">{name}<" in plot.svg for name in COLUMNS)


def test_one_host_has_no_heat_map():
    assert heat_map(host_times(results([make_record(ranks=4)]))) is None


def test_speedup_by_hosts_is_relative_to_the_fewest_hosts_with_as_many_ranks_each():
    """m3 on 2 x 2, 4 x 2 and 4 x 1 ranks: only the first two have the same ranks on each host."""
    records = [on_hosts(n, k) for n, k in ((2, 2), (4, 2), (4, 1), (1, 2))]
    rows = [r for r in rows_of(records, "speedup_hosts") if r["phase"] == "assembly"]
    found = {(r["hosts"], r["ranks_per_host"]): r for r in rows}
    assert found[2, 2]["speedup"] == pytest.approx(2.0)
    assert (found[4, 2]["base_hosts"], found[4, 2]["speedup"]) == (1, pytest.approx(4.0))
    assert found[4, 2]["efficiency"] == pytest.approx(1.0)
    (alone,) = [r for r in rows_of(records, "speedup_hosts") if (r["hosts"], r["ranks_per_host"]) == (4, 1)]
    assert alone["remarks"] == "not available: no run on fewer hosts with one rank on each"


def test_hosts_with_different_numbers_of_ranks_have_no_speedup_by_hosts():
    record = on_hosts(2, 2)
    uneven = replace(record, environment=replace(record.environment, rank_host=(0, 0, 0, 1)))
    (row,) = rows_of([uneven, on_hosts(1, 2)], "speedup_hosts")
    assert (row["speedup"], row["ranks_per_host"]) == (None, None)
    assert "different numbers of ranks" in row["remarks"]


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
