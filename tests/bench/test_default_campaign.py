"""The campaign that is made for the hosts of the job."""

import pytest

from fembench.base.config import from_toml
from fembench.bench.campaign_file import Campaign, cases_of, expand
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.default_campaign import as_toml, default_campaign, solution_campaign
from fembench.bench.duration import equations_of, expected_seconds
from fembench.launch.hosts import Allocation, HostSlots
from fembench.methods.preconditioners import SMALL_LEVEL


def hosts(*slots, speeds=None):
    """A job on hosts n1, n2, … with these slots."""
    job = Allocation("Slurm job 7", tuple(HostSlots(f"n{k}", n) for k, n in enumerate(slots, 1)), batch=True)
    known = dict(zip((host.name for host in job.hosts), speeds or ()))
    return CampaignHosts(job, {}, (), known, "the first run" if speeds else "")


def cases(there, **more):
    return cases_of(default_campaign(there, **more), "here", there)


def placed(found, mesh):
    """[(ranks, hosts)] of the cases of a mesh, by ranks."""
    return sorted((c.placement.ranks, c.placement.hosts) for c in found if c.question.mesh == mesh)


def test_on_one_host_it_goes_from_one_rank_to_all_cores_and_takes_two_to_three_minutes():
    there = hosts(2)
    found = cases(there)
    assert {(c.placement.ranks, c.method.storage) for c in found} == {(1, "sym"), (2, "sym")}
    assert placed(found, "m") == placed(found, "l") == placed(found, "m3") == [(1, ""), (2, "")]
    assert 90 < sum(expected_seconds(case) for case in found) < 180
    assert {c.placement.ranks for c in cases(hosts(8))} == {1, 4, 8}


@pytest.mark.parametrize("slots", [(1,), (2,), (7,), (64,), (256,), (2, 2, 2), (1, 1), (128,) * 40])
def test_every_case_can_be_valid(slots):
    """As far as the campaign decides: warm-ups and sets, a median made precise, ranks with enough equations,
    and time enough for the CPU time of others to be known within 1 %."""
    for case in cases(hosts(*slots)):
        assert case.effort.warmups >= 2
        assert case.effort.sets >= 10
        assert 0 < case.effort.precision <= 2.0
        assert 2.0 <= case.effort.seconds <= case.effort.max_seconds
        assert equations_of(case) >= 1000 * case.placement.ranks or case.placement.ranks == 1


def test_on_several_hosts_it_scales_strongly_and_weakly_from_one_core_over_hosts_to_all():
    found = cases(hosts(*(2,) * 10))
    (strong,) = {c.question.mesh for c in found if c.stop.iterations and c.placement.partitioner == "metis"}
    assert [ranks for ranks, _ in placed(found, strong)] == [1, 2, 4, 8, 16, 20]
    weak = {c.placement.ranks: equations_of(c) / c.placement.ranks for c in found if "box" in c.question.mesh}
    assert sorted(weak) == [1, 2, 4, 8, 16, 20]
    assert all(each == pytest.approx(50_000, rel=0.03) for each in weak.values())
    assert not [c for c in found if c.placement.shares]


def test_unequal_hosts_add_a_weighted_run_and_one_without_the_slow_hosts():
    there = hosts(2, 2, 2, speeds=(0.95, 0.25, 1.0))
    equal, more = cases(there), cases(there, shares="4,4,1,1,4,4")
    assert [c.placement.ranks for c in equal[:2]] == [1, 6]  # the others are left out first
    added = [case for case in more if case not in equal]
    where = [(c.placement.ranks, c.placement.shares, c.placement.hosts) for c in added]
    assert where == [(6, "4,4,1,1,4,4", ""), (4, "", "n[1,3]")]
    assert more[:2] == equal[:2]
    assert more[2:4] == added
    assert {c.question.mesh for c in added} == {equal[0].question.mesh}
    last = hosts(2, 2, 2, speeds=(1.0, 0.95, 0.25))  # the fast ones are two hosts of the plain campaign
    (one,) = (case for case in cases(last, shares="4,4,4,4,1,1") if case not in cases(last))
    assert one.placement.shares
    alike = hosts(2, 2, 2, speeds=(1.0, 0.95, 0.93))
    assert cases(alike, shares="4,4,4,4,4,4") == cases(alike)


def test_many_ranks_get_a_mesh_of_their_own_from_the_fewest_hosts_that_hold_it():
    found = cases(hosts(*(128,) * 40))
    large = [c for c in found if c.question.mesh == "box:102400000"]
    assert sorted({c.placement.ranks for c in large}) == [256, 512, 1024, 2048, 4096, 5120]
    assert {c.placement.partitioner for c in large} == {"blocks"}
    alone = [c for c in found if c.question.mesh == "xl"]
    assert max(c.placement.ranks for c in alone) == 2048


def test_more_minutes_allow_more_sets_and_make_another_campaign_of_the_same_cases():
    there = hosts(2, 2, 2)
    short, long = (default_campaign(there, minutes=m) for m in (1, 60))
    assert (short.name, long.name) == ("default-1-minutes", "default-60-minutes")
    longest = [{table["max_seconds"] for table in c.cases} for c in (short, long)]
    assert longest == [{4.0}, {30.0}]
    slow = hosts(2, 2, 2, speeds=(1.0, 1.0, 0.5))
    assert set(cases(there, minutes=5)) < set(cases(slow, minutes=5, shares="2,2,2,2,1,1"))


@pytest.mark.parametrize("more", [{}, {"minutes": 5.0}, {"shares": "4,4,4,4,1,1"}])
def test_its_file_describes_the_same_runs(more):
    there = hosts(2, 2, 2, speeds=(1.0, 1.0, 0.25))
    made = default_campaign(there, **more)
    text = as_toml(made, "Made for a test.\nOf two lines.")
    assert text.startswith("# Made for a test.\n# Of two lines.\nname = ")
    assert from_toml(text, Campaign, where="here") == made
    assert expand(made, "here", there)


@pytest.mark.parametrize("slots", [(1,), (2,), (64,), (2, 2, 2), (128,) * 40])
def test_whole_solutions_scale_strongly_and_weakly_on_meshes_with_grids_on_all_ranks(slots):
    there = hosts(*slots)
    found = cases_of(solution_campaign(there), "here", there)
    work = {(c.method.precond, c.stop.iterations, c.stop.tolerance) for c in found}
    assert work == {("multigrid", 0, 1e-7)}
    meshes = [c.question.mesh for c in found]
    strong = [c for c in found if meshes.count(c.question.mesh) > 1 or sum(slots) == 1]
    for series in (strong, [c for c in found if c not in strong] or strong):
        assert max(c.placement.ranks for c in series) == sum(slots)
    assert all(equations_of(c) / 3 / 8 > SMALL_LEVEL for c in found if c.placement.ranks > 1)
    assert all(equations_of(c) <= 1.3e6 * c.placement.ranks for c in found)
