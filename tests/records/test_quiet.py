"""What quotas withheld and others took: the limits, and what is said at them."""

import msgspec
import pytest
from good_record import good_record

from fembench.host.others import TICK
from fembench.records.quiet import (
    foreign,
    lost,
    narrow_quotas,
    others_note,
    quiet,
    quota_rules,
    stretch,
    withheld,
)
from fembench.records.validity import judge

replace = msgspec.structs.replace
RECORD = good_record()
HOST = replace(RECORD.environment.hosts[0], name="n1", cpu_quota=0.0, throttled_percent=0.0)


def on(*hosts, ranks=2):
    """An environment with this number of ranks on each of these hosts."""
    where = tuple(k for k in range(len(hosts)) for _ in range(ranks))
    return replace(RECORD.environment, hosts=hosts, rank_host=where)


def rules(**changes):
    """{id: the rule} of a record of one host."""
    environment = on(replace(HOST, **changes))
    return {rule.id: rule for rule in quiet(replace(RECORD, environment=environment))}


@pytest.mark.parametrize(("quota", "factor"), [(0.0, 1.0), (0.5, 4.0), (1.0, 2.0), (2.0, 1.0), (8.0, 1.0)])
def test_a_quota_stretches_times_by_the_cpus_that_its_ranks_lack(quota, factor):
    assert stretch(on(HOST, replace(HOST, cpu_quota=quota)), 1) == factor


@pytest.mark.parametrize(
    ("quota", "throttled", "group", "narrow"),
    [
        (1.5, 0.0, "slurm/job", True),
        (2.0, 0.0, "slurm/job", False),
        (2.0, 2.0, "slurm/job", False),
        (2.0, 2.1, "slurm/job", True),
        (0.5, 60.0, "fembench.n1/job", False),
    ],
)
def test_a_host_is_slow_by_a_quota_that_lacks_cpus_or_withheld_time(quota, throttled, group, narrow):
    host = replace(HOST, cpu_quota=quota, throttled_percent=throttled, quota_group=group)
    assert narrow_quotas(on(host)) == ([f"n1: 2 ranks, a quota of {quota:g} CPUs"] if narrow else [])
    assert withheld(host) == (throttled > 2)


def test_the_hosts_from_which_most_was_withheld_are_named_first_and_at_most_three_of_five():
    job, shares = replace(HOST, quota_group="job"), (0.0, 3.0, 9.0, 1.0, 5.0, 7.0)
    hosts = [replace(job, name=f"n{k}", throttled_percent=share) for k, share in enumerate(shares)]
    (rule,) = quota_rules(on(*hosts))
    assert [part.split(":")[0] for part in rule.value.split(", ")] == ["n2", "n5", "n4"]
    assert rule.value.endswith(" and 2 more")
    assert (rule.ok, rule.threshold) == (True, "any: a property of the host")
    assert not list(quota_rules(on(hosts[0])))
    (small,) = quota_rules(on(replace(hosts[0], throttled_percent=0.5)))
    assert small.value.startswith("n0: 0.5 % of CPU time withheld")


def test_the_quota_of_a_lab_is_called_so_if_no_other_host_has_one():
    lab = replace(HOST, throttled_percent=50.0, quota_group="x/fembench.n1")
    alone, mixed = (next(quota_rules(on(*h))) for h in ((lab,), (lab, replace(lab, quota_group="job"))))
    assert (alone.threshold, mixed.threshold) == ("the lab's own: SYNTHETIC", "any: a property of the host")
    assert lost(lab) == {}
    assert lost(replace(lab, quota_group="job")) == {"a quota withheld": 50.0}


@pytest.mark.parametrize(("steal", "ok"), [(0.0, True), (2.0, True), (2.1, False)])
def test_a_hypervisor_may_take_two_percent(steal, ok):
    rule = rules(steal_percent=steal)["D3"]
    assert (rule.ok, rule.value) == (ok, f"steal, % of CPU time = {steal:g}")
    assert bool(rule.note) is not ok
    assert foreign(replace(HOST, steal_percent=steal)) == ({} if ok else {"the hypervisor took": steal})


@pytest.mark.parametrize(
    ("others", "resolution", "ok", "note"),
    [
        (0.0, 0.0, True, ""),
        (1.5, 0.5, True, ""),
        (2.05, 0.0, False, "stop the other work"),
        (2.5, 0.5, None, "the run is too short"),
        (2.6, 0.5, False, "stop the other work"),
        (-1.0, 100.0, None, ""),
    ],
)
def test_others_may_use_two_percent_and_what_cannot_be_told_is_not_judged(others, resolution, ok, note):
    rule = rules(others_percent=others, others_resolution=resolution)["D6"]
    assert rule.ok is ok
    assert rule.note.startswith(note)
    assert bool(rule.note) == bool(note)
    known = f"others used {others:g} % of the CPU time, ± {resolution:g} %"
    assert (known if others >= 0 else "does not report CPU time used by others") in rule.value
    found = foreign(replace(HOST, others_percent=others, others_resolution=resolution))
    assert found == ({"others used": others} if ok is False else {})


@pytest.mark.parametrize(("others", "seconds"), [(0.0, 2.5), (0.9, 2.5), (1.1, 3), (2.5, 5), (1.98, None)])
def test_a_run_too_short_to_tell_says_how_long_is_enough_unless_others_use_about_as_much_as_they_may(
    others, seconds
):
    note = rules(others_percent=others, others_resolution=3.0)["D6"].note
    if seconds is None:
        assert note.startswith("stop the other work")
        return
    assert note.endswith(f"run longer (--seconds {seconds:g})")
    resolution = 100 * 2 * TICK / seconds
    assert rules(others_percent=others, others_resolution=resolution)["D6"].ok is not None


@pytest.mark.parametrize(("resolution", "asked"), [(99.0, False), (100.0, True)])
def test_a_run_that_did_not_measure_others_is_judged_by_no_rule(resolution, asked):
    assert ("D6" in rules(others_percent=-1.0, others_resolution=resolution)) is asked


def test_of_several_hosts_that_is_judged_which_lost_most():
    shares = {"n0": 0.5, "n1": 5.0, "n2": 1.0}
    shared = replace(HOST, others_resolution=0.1)
    hosts = [replace(shared, name=n, steal_percent=s, others_percent=s) for n, s in shares.items()]
    found = {rule.id: rule for rule in quiet(replace(RECORD, environment=on(*hosts)))}
    assert found["D3"].value == "steal, % of CPU time = 5"
    assert found["D6"].value.startswith("n1: others used 5 % ")


@pytest.mark.parametrize(("others", "steal", "said"), [(40.0, 0.0, True), (0.0, 9.0, False)])
def test_a_run_is_noted_as_shared_with_others_only_if_they_used_its_cpus(others, steal, said):
    host = replace(HOST, others_percent=others, others_resolution=0.1, steal_percent=steal)
    record = replace(RECORD, environment=on(host))
    note = others_note(replace(record, verdict=judge(record)))
    loud = "PROVISIONAL: no other programs on the cores (D6) not met: n1: others used 40 %"
    assert note.startswith(loud) if said else note == ""
