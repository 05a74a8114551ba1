"""Energy in records, tables and the headline, from planted joules."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from report_sample import HOST, environment, make_record, named, rows_of

from fembench.base.errors import InputError
from fembench.records.record import NO_JOULES, EnergyFacts
from fembench.records.store import check_shapes, load
from fembench.records.times import Times
from fembench.report import tables

replace = msgspec.structs.replace
RAPL = EnergyFacts(reader="RAPL", includes=("package-0", "package-1", "dram of package-0"), updates=1e-3)
EQUATIONS = 5460  # of m3


def using(record, *joules, energy=RAPL):
    """The record with these joules of each host in every timed set, a second each."""
    sets = [replace(s, joules=joules, total=(1.0,) * len(s.total)) for s in record.sets]
    return on_hosts_with(replace(record, sets=tuple(sets)), energy=energy)


def on_two_hosts(ranks=2, machines=(0, 1)):
    hosts = [replace(HOST, name=f"n{k}", machine=m) for k, m in enumerate(machines)]
    return make_record("m3", ranks, environment=environment(ranks, hosts))


def test_the_table_gives_energy_power_energy_per_equation_and_the_product_with_the_time():
    (row,) = rows_of([using(make_record("m3", 2, sets=5), 30.0)], "energy")
    assert (row["joules"], row["watts"], row["joule_seconds"]) == pytest.approx((30.0, 30.0, 30.0))
    assert row["joules_per_million_equations"] == pytest.approx(30.0 / EQUATIONS * 1e6)
    assert row["error_fraction"] == pytest.approx(1e-3 / 5)  # five sets of a second
    assert row["counted"] == "RAPL: 2 x package, dram"


def test_energy_is_the_mean_over_sets_and_the_median_over_runs():
    runs = []
    for k, mean in enumerate((30.0, 20.0, 100.0)):
        made = using(make_record("m3", 2, sets=2, run=k), 0.0)
        warmup, first, last = made.sets
        sets = (
            replace(warmup, joules=(999.0,)),
            replace(first, joules=(0.0,)),
            replace(last, joules=(2 * mean,)),
        )
        runs.append(replace(made, sets=sets))
    (row,) = rows_of(runs, "energy")
    assert row["joules"] == 30.0
    assert row["joules_low"] < 30.0 < row["joules_high"]


def test_the_energy_of_several_machines_is_added_and_that_of_one_machine_counts_once():
    both = using(on_two_hosts(), 30.0, 12.0)
    assert Times(both).joules.tolist() == [42.0] * 5
    shared = using(on_two_hosts(machines=(0, 0)), 30.0, NO_JOULES)
    assert Times(shared).joules.tolist() == [30.0] * 5
    (row,) = rows_of([both], "energy")
    assert row["counted"] == "RAPL: 4 x package, 2 x dram"


def test_a_machine_that_is_not_measured_or_counts_something_else_leaves_no_sum():
    assert np.isnan(Times(using(on_two_hosts(), 30.0, NO_JOULES)).joules).all()
    mixed = using(on_two_hosts(), 30.0, 12.0)
    mixed = on_hosts_with(mixed, only="n1", energy=EnergyFacts(reader="pm_counters", includes=("node",)))
    assert np.isnan(Times(mixed).joules).all()
    assert rows_of([mixed], "headline")[2]["what"] != "energy to solution"


def test_without_counters_a_report_does_not_speak_of_energy():
    records = [make_record("m3", 2), on_hosts_with(make_record("m3", 1), energy=EnergyFacts(why="none"))]
    found = tables.every_table(records)
    assert "energy" not in {t.name for t in found}
    assert "nergy" not in tables.selected(found)


def test_sets_that_took_no_time_have_no_power_and_no_row():
    record = using(make_record("m3", 2), 30.0)
    sets = tuple(replace(s, total=(0.0, 0.0)) for s in record.sets)
    assert "energy" not in {t.name for t in tables.every_table([replace(record, sets=sets)])}


def test_the_headline_gives_the_energy_of_the_run_at_full_scale():
    records = [using(make_record("m3", 1), 50.0), using(make_record("m3", 2), 30.0)]
    row = {r["what"]: r for r in rows_of(records, "headline")}["energy to solution"]
    assert (row["value"], row["unit"]) == (30.0, "J")
    each = f"{30.0 / EQUATIONS * 1e6:.0f} J/MDOF"
    said = f"{each}; energy-delay product 30 J s; RAPL: 2 x package, dram, 0.02 % uncertain"
    assert row["remarks"] == said
    assert named(records, "energy").name in {t.name for t in tables.every_table(records)}


def test_fixed_work_has_an_energy_and_no_solution():
    record = using(make_record("m3", 2, iterations=10), 30.0)
    assert {r["what"] for r in rows_of([record], "headline")} >= {"energy of a set"}
    assert "joules_per_million_equations" in named([record], "energy").names
    assert rows_of([record], "energy")[0]["joules_per_million_equations"] is None


def test_an_older_record_loads_without_energy():
    old = load(Path(__file__).parents[1] / "data" / "record.json")
    assert old.environment.hosts[0].energy is None
    assert np.isnan(Times(old).joules).all()


@pytest.mark.parametrize("joules", [(1.0, 2.0), (-2.0,), (float("nan"),), (1e31,)])
def test_joules_that_do_not_fit_the_hosts_are_refused(joules):
    with pytest.raises(InputError, match=r"sets\[0\].joules = .*one number per host \(1\)"):
        check_shapes(using(make_record("m3", 2), *joules), "file")
