"""Which records may be pooled or held against each other."""

import msgspec
import pytest
from report_sample import HOST, VERSIONS, environment, make_record

from fembench.records.compare import pools, same_kind
from fembench.report.bases import base_of, difference
from fembench.report.results import results

replace = msgspec.structs.replace


def changed(record, **environment_changes):
    return replace(record, environment=replace(record.environment, **environment_changes))


def on(record, **host_changes):
    return changed(record, hosts=(replace(HOST, **host_changes),))


def test_runs_that_differ_only_in_times_and_load_are_one_kind():
    other = on(make_record(run=1, noise=0.5), load_average=3.0, steal_percent=1.0, governor="powersave")
    assert same_kind(make_record(), other) is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda r: on(r, name="node00"), "host set"),
        (lambda r: on(r, cpu_model="Example CPU 1"), "CPU model"),
        (lambda r: changed(r, mpi="MPICH 4.2"), "MPI library"),
        (lambda r: changed(r, kernels="reference"), "kernels"),
        (lambda r: changed(r, commit="fff0000"), "commit"),
        (lambda r: changed(r, sources="fff0000"), "sources"),
        (lambda r: replace(r, mesh=replace(r.mesh, hash="other")), "mesh hash"),
        (lambda r: replace(r, problem={"name": "bar"}), "problem"),
        (lambda r: replace(r, clock=replace(r.clock, name="perf_counter_ns")), "clock"),
        (lambda r: changed(r, synthetic="rank 1 slowed"), "emulated slowness"),
        (lambda r: changed(r, versions={**VERSIONS, "numpy": "1.26.4"}), "version of numpy"),
        (lambda r: changed(r, versions={**VERSIONS, "petsc4py": "3.22"}), "version of petsc4py"),
    ],
)
def test_the_refusal_names_the_field(change, field):
    record = make_record(ranks=2)
    assert same_kind(record, change(record)) == field
    assert same_kind(change(record), record) == field


def test_a_host_without_ranks_does_not_count():
    idle = replace(HOST, name="idle", cpu_model="Another CPU")
    assert same_kind(make_record(), make_record(environment=environment(1, hosts=(HOST, idle)))) is None


def test_repetitions_form_one_pool_in_the_order_of_their_dates():
    records = [make_record(run=k) for k in (2, 0, 1)]
    (pool,) = pools(records)
    assert [r.id[-1] for r in pool.records] == ["0", "1", "2"]
    assert pool.apart == ""


def test_runs_of_one_case_with_other_clocks_form_two_pools_that_say_why():
    other = make_record(run=1)
    first, second = pools([make_record(), replace(other, clock=replace(other.clock, name="mpi_wtime"))])
    assert (first.apart, second.apart) == ("", "clock")


def test_an_invalid_run_is_never_pooled_with_valid_ones():
    first, second = pools([make_record(), make_record(run=1, status="INVALID")])
    assert (second.apart, second.status) == ("verdict", "INVALID")
    assert first.status == "VALID"


def test_a_provisional_run_makes_its_pool_provisional():
    (pool,) = pools([make_record(), make_record(run=1, status="PROVISIONAL")])
    assert pool.status == "PROVISIONAL"


def test_a_base_may_differ_in_placement_alone():
    run = make_record(ranks=4, shares="2,1,1,1", partitioner="rcb", overlap=False, seed=7)
    assert difference(make_record(), run) is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"storage": "dense"}, "storage"),
        ({"precond": "jacobi"}, "precond"),
        ({"tolerance": 1e-8}, "tolerance"),
        ({"iterations": 50}, "iterations"),
    ],
)
def test_another_method_is_no_base(changes, field):
    assert difference(make_record(**changes), make_record(ranks=4)) == field


def test_a_base_on_one_host_serves_a_run_on_that_and_an_equal_one_but_not_the_other_way():
    two = environment(2, hosts=(HOST, replace(HOST, name="node9")))
    assert difference(make_record(), make_record(ranks=2, environment=two)) is None
    elsewhere = make_record(environment=environment(1, hosts=(replace(HOST, name="node9"),)))
    assert difference(elsewhere, make_record(ranks=2)) == "host set"


def test_where_there_is_no_base_the_reason_is_given():
    (run,) = results([make_record(ranks=2)])
    assert base_of(run, [run], "cg") == (None, "no run on one rank")
    (bad,) = results([make_record(status="INVALID")])
    assert base_of(run, [run, bad], "cg") == (None, "base is INVALID")
    (other,) = results([changed(make_record(), commit="fff0000")])
    assert base_of(run, [run, other], "cg") == (None, "base differs in commit")
    (good,) = results([make_record()])
    assert base_of(run, [run, bad, good], "petsc") == (None, "no time of petsc")
