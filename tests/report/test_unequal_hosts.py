"""Unequal hosts by hand: rank p computes 24 cells at speed s_p, all wait for the last."""

import numpy as np
import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_records import nested
from report_sample import HOST, environment, make_record, rows_of

from fembench.records import phases as ph
from fembench.report import tables
from fembench.report.laws import amdahl_laws, gustafson_laws
from fembench.report.plots import findings
from fembench.report.plots.bars import unequal_hosts
from fembench.report.results import results
from fembench.report.speedup import all_speedups
from fembench.report.table import text, to_json
from fembench.report.unequal import unequal_results

CELLS = 24
NODE00 = replace(HOST, name="node00", cpu_model="Old CPU")


def planted(speeds, parts, *, send=0.0, flops=1.0, **changes):
    """A record whose rank p has `parts[p]` of the cells and computes speeds[p] cells per second."""
    cells = CELLS * np.asarray(parts) / sum(parts)
    busy = cells / np.asarray(speeds)
    rows = np.zeros((len(speeds), len(ph.NAMES)))
    rows[:, ph.ASSEMBLY], rows[:, ph.SPMV_INTERIOR] = 0.25 * busy, 0.75 * busy
    rows[:, ph.WAIT], rows[:, ph.SEND] = busy.max() - busy, send
    rows[:, ph.CG] = rows[:, list(ph.CG_PARTS)].sum(axis=1)
    record = make_record(ranks=len(speeds), events=False, **changes)
    sets = tuple(replace(s, seconds=nested(rows)) for s in record.sets)
    partition = replace(record.partition, cells=tuple(int(c) for c in cells))
    solve = replace(record.solve, flops=(flops,) * len(speeds))
    return replace(record, sets=sets, partition=partition, solve=solve)


def emulated(speeds, shares, **options):
    words = ",".join(f"{s:g}" for s in speeds)
    said = environment(len(speeds), synthetic=f"emulated speeds {words}")
    text = "" if len(set(shares)) == 1 else ":".join(f"{s:g}" for s in shares)
    return planted(speeds, shares, emulate=words, shares=text, environment=said, **options)


@pytest.fixture
def campaign():
    """Each host alone (24 and 48 s), both with equal shares (24 s) and with 2:1 (16 s)."""
    alone = [emulated((1.0,), (1,), flops=2.0), emulated((0.5,), (1,), flops=2.0)]
    return [*alone, emulated((1.0, 0.5), (1, 1)), emulated((1.0, 0.5), (2, 1))]


def held(records):
    return {u.result.pool.case.placement.shares: u for u in unequal_results(results(records))}


@pytest.mark.row("004:4c")
def test_every_run_is_compared_with_each_host_alone(campaign):
    found = held(campaign)
    assert found[""].against == {"node8 at speed 1": (1.0, 0.5), "node8 at speed 0.5": (2.0, 1.0)}
    assert found["2:1"].against == {"node8 at speed 1": (1.5, 0.75), "node8 at speed 0.5": (3.0, 1.5)}


@pytest.mark.row("004:4d")
def test_efficiency_is_against_the_summed_speed_of_the_run_with_equal_shares(campaign):
    found = held(campaign)
    assert (found[""].e_het, found["2:1"].e_het) == pytest.approx((2 / 3, 1.0))
    assert found["2:1"].equivalent == pytest.approx(1.5)
    assert found["2:1"].source == campaign[2].id


@pytest.mark.row("004:4h")
def test_bounds_fall_with_waiting_messages_and_extra_work():
    alone = emulated((1.0,), (1,), flops=1.5)
    run = emulated((1.0, 0.5), (1, 1), send=6.0)  # computes 12 and 24 s, a quarter of the flops not needed
    (u,) = held([alone, run]).values()
    # work 0.75 x 24; waiting 12 + 6 s, of rank 0 (9 + 12 + 6) and rank 1 (18 + 6); extra 3 and 6
    assert u.bounds == pytest.approx((24 / 18, 24 / 27, 24 / 30))
    assert u.bounds.extra <= u.against["node8 at speed 1"][0] * (1 + 1e-12)


@pytest.mark.row("004:4h")
def test_equal_ranks_have_the_same_bounds():
    alone = planted((1.0,), (1,), flops=1.5)
    run = planted((1.0, 1.0), (2, 1), send=2.0, shares="2:1")  # computes 16 and 8 s, a quarter not needed
    (row,) = rows_of([alone, run], "speedup_bounds")
    found = [row[f"bound_{name}"] for name in ("work", "waiting", "extra")]
    # work 0.75 x 16 and 0.75 x 8; rank 0: 12 + 0 + 2, rank 1: 6 + 8 + 2; extra 4 and 2
    assert found == pytest.approx([24 / 12, 24 / 16, 24 / 18])
    assert row["speedup"] == pytest.approx(24 / 18)
    unequal = [emulated((1.0,), (1,)), emulated((1.0, 0.5), (1, 1))]
    assert "speedup_bounds" not in {t.name for t in tables.every_table(unequal) if t.rows}


def test_a_run_on_two_hosts_is_compared_with_each_of_them():
    hosts = (HOST, NODE00)
    records = [
        planted((1.0,), (1,), environment=environment(1)),
        planted((0.25,), (1,), environment=environment(1, hosts=(NODE00,))),
        planted((1.0, 0.25), (4, 1), shares="4:1", environment=environment(2, hosts=hosts)),
    ]
    (u,) = unequal_results(results(records))
    assert list(u.alone) == ["node8", "node00"]
    assert u.against["node00"][0] == pytest.approx(4 * u.against["node8"][0])
    assert np.isnan(u.e_het)  # no run with other shares tells the speeds


def test_a_run_slower_than_the_fast_host_alone_says_so(campaign):
    slower = emulated((1.0, 0.5), (1, 2))  # 32 s
    assert "slower than node8 at speed 1 alone" in held([*campaign, slower])["1:2"].notes
    assert not any("slower" in note for note in held(campaign)["2:1"].notes)


def test_super_linear_against_the_fastest_is_flagged_with_bytes_and_cache(campaign):
    fast = emulated((3.0, 1.5), (2, 1))
    run = replace(fast, case=fast.case.with_(emulate="1,0.5"), environment=campaign[2].environment)
    (note,) = [n for n in held([*campaign[:3], run])["2:1"].notes if "super-linear" in n]
    assert "cache" in note
    assert "KiB" in note


def test_a_host_that_was_not_measured_alone_is_named(campaign):
    u = held(campaign[1:])["2:1"]
    assert "not measured alone: node8 at speed 1" in u.notes
    assert list(u.against) == ["node8 at speed 0.5"]


def test_equal_ranks_and_crowded_ones_are_not_in_it():
    assert unequal_results(results([make_record(), make_record(ranks=2)])) == []
    crowded = environment(2, synthetic="x", oversubscribed=True)
    assert unequal_results(results([make_record(ranks=2, environment=crowded)])) == []


def amdahls(records):
    found = results(records)
    return amdahl_laws(all_speedups(found, "assembly + cg"), unequal_results(found))


def test_laws_take_unequal_ranks_as_what_they_amount_to():
    """One host of speed 1 and one or two of speed 0.5. 2:1 takes 16 s, 2:1:1 12 s: nothing is sequential."""
    hosts = (HOST, NODE00, replace(NODE00, name="node01"))
    records = [planted((1.0,), (1,), environment=environment(1))]
    for n in (2, 3):
        where = environment(n, hosts=hosts[:n])
        for shares in ((1,) * n, (2,) + (1,) * (n - 1)):
            text = "" if len(set(shares)) == 1 else ":".join(map(str, shares))
            records.append(planted((1.0, 0.5, 0.5)[:n], shares, shares=text, environment=where))
    (law,) = amdahls(records)
    assert law.processors == pytest.approx((1.5, 2.0))
    assert law.speedups == pytest.approx((1.5, 2.0))  # the best of all runs
    assert law.fit.fraction == pytest.approx(0.0, abs=1e-9)


def test_no_law_is_fitted_to_two_different_p(campaign):
    assert amdahls(campaign) == []
    assert amdahls([planted((24 / t / p,) * p, (1,) * p) for p, t in ((1, 1.0), (2, 0.55))]) == []


def at_ranks(times):
    """One record of equal ranks for each P: seconds."""
    return [planted((24 / t / p,) * p, (1,) * p, environment=environment(p)) for p, t in times.items()]


def test_laws_of_equal_ranks_by_hand():
    # f = 0.1: S(2) = 1 / (0.1 + 0.45), S(4) = 1 / (0.1 + 0.225)
    (law,) = amdahls(at_ranks({1: 1.0, 2: 0.55, 4: 0.325}))
    assert law.fit.fraction == pytest.approx(0.1)
    assert law.fit.worst == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ({1: 1.0, 2: 2.0, 4: 3.0}, "slower on more ranks"),
        ({1: 1.0, 2: 0.4, 4: 0.1}, "super-linear"),
    ],
)
def test_what_is_no_sequential_fraction_is_not_printed_as_one(times, why):
    (row,) = rows_of(at_ranks(times), "speedup_laws")
    assert (row["amdahl_f"], row["amdahl_limit"], row["off_fraction"]) == (None, None, None)
    assert row["remarks"] == why


def test_gustafsons_law_is_fitted_to_meshes_that_grow_with_the_ranks():
    """24 cells per rank; S = g + (1 - g) P with g = 0.2: 1.8 on two ranks, 3.4 on four."""
    records = []
    for p, s in ((2, 1.8), (4, 3.4)):
        for ranks, seconds in ((1, float(p)), (p, p / s)):
            record = at_ranks({ranks: seconds})[0]
            name = f"box{p}"
            mesh = replace(record.mesh, name=name, hash=name, n_cells=24 * p)
            case = record.case.with_(mesh=name)
            records.append(replace(record, id=f"{name}-{ranks}", case=case, mesh=mesh))
    found = results(records)
    (law,) = gustafson_laws(all_speedups(found, "assembly + cg"))
    assert law.processors == (2.0, 4.0)
    assert law.fit.fraction == pytest.approx(0.2)
    (row,) = rows_of(records, "speedup_laws")
    assert (row["law"], row["mesh"]) == ("Gustafson", "24 cells per rank")
    assert row["amdahl_f"] == pytest.approx(0.2 / (0.2 + 0.8 * 4))
    assert gustafson_laws(all_speedups(results(at_ranks({1: 1.0, 2: 0.55, 4: 0.325})), "assembly + cg")) == []


def test_the_hosts_are_used_best_only_by_one_of_several_quiet_runs(campaign):
    alone, equal, weighted = campaign[:2], *campaign[2:]
    said = {
        n: use_of([*alone, *(on_hosts_with(one, others_percent=40.0) for one in pair[:n]), *pair[n:]])
        for n, pair in ((0, (equal, weighted)), (1, (weighted, equal)), (2, (weighted, equal)))
    }
    case = "m1 · csr · kind C · SYNTHETIC on 2 ranks"
    assert said[0] == f"The hosts are used best by {case} (2:1): E_het is 1.00."
    assert said[1] == f"E_het of {case} is 0.67. Runs that are DISTURBED do not count."
    assert said[2] == "These runs are DISTURBED: nothing follows from their E_het."
    one = [*alone, on_hosts_with(equal, others_percent=40.0)]
    assert use_of(one) == "This run is DISTURBED: nothing follows from its E_het."


def test_a_host_whose_own_run_was_disturbed_says_so_wherever_a_run_is_compared_with_it(campaign):
    loud = [on_hosts_with(campaign[0], others_percent=40.0), *campaign[1:]]
    name = "node8 at speed 1 · DISTURBED"
    assert {row["machine"] for row in rows_of(loud, "speedup_alone")} == {name, "node8 at speed 0.5"}
    assert {row["fastest_alone"] for row in rows_of(loud, "speedup_unequal")} == {name}


def test_no_law_is_fitted_to_disturbed_runs():
    records = at_ranks({1: 1.0, 2: 0.55, 4: 0.325})
    assert rows_of(records, "speedup_laws")
    loud = [*records[:2], on_hosts_with(records[2], others_percent=40.0)]
    assert not any(t.name == "speedup_laws" for t in tables.every_table(loud))


def use_of(records):
    """The sentence of the plot of E_het."""
    return findings.of_use(unequal_results(results(records)))


def test_tables_and_pictures_show_it(campaign):
    made = {t.name: t for t in tables.every_table(campaign)}
    alone, efficiency = to_json(made["speedup_alone"]), to_json(made["speedup_unequal"])
    assert [row["speedup"] for row in alone] == pytest.approx([1.0, 2.0, 1.5, 3.0])
    assert [row["e_het"] for row in efficiency] == pytest.approx([2 / 3, 1.0])
    assert "SYNTHETIC" in text(made["speedup_unequal"])
    assert "SYNTHETIC" in text(made["speedup_alone"])
    plots = {p.name: p.svg for p in unequal_hosts(unequal_results(results(campaign)))}
    assert set(plots) == {"speedup_alone", "speedup_unequal"}
    assert "over node8 at speed 0.5 alone" in plots["speedup_alone"]
    assert "SYNTHETIC" in plots["speedup_unequal"]


def test_bars_and_marks_of_unequal_hosts_are_in_the_legend_and_no_others(campaign):
    (_, both), (alone,) = (unequal_hosts(unequal_results(results(c))) for c in (campaign, campaign[2:]))
    for words in ("speedup / ranks", "largest possible (P_eq / P)", "(orange)"):
        assert words in both.svg + both.caption, words
        assert words not in alone.svg + alone.caption.lower(), words
    assert "E_het" in alone.svg
