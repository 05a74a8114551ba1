"""Words of campaigns, resolved against the hosts of a job."""

import pytest
from planted_environment import on_hosts_with
from planted_profile import planted_profile

from fembench.base.config import convert, from_toml
from fembench.base.errors import InputError
from fembench.bench import campaign_hosts as hosts_module
from fembench.bench.campaign_file import Campaign, expand
from fembench.bench.campaign_hosts import CampaignHosts, campaign_hosts
from fembench.launch.allocation import allocation
from fembench.mesh.presets import box_named
from fembench.records.profile import save_profile
from fembench.records.weights import RankShare, Weights, save_weights

DAY = "2026-01-02T03:04:05+00:00"
GIB = 2**30
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x2),1"}


pytestmark = pytest.mark.usefixtures("no_batch_system")


@pytest.fixture
def slurm(slurm, monkeypatch):
    """A Slurm job on three hosts, of two, two and one slots; this host is the first."""
    slurm("n[1-3]", "2(x2),1")
    monkeypatch.setattr("platform.node", lambda: "n1")
    monkeypatch.setattr(hosts_module, "memory_bytes", lambda: 8 * GIB)


def cases(*tables, there=None):
    campaign = convert({"name": "c", "cases": list(tables)}, Campaign, where="c.toml")
    return [run.case for run in expand(campaign, "c.toml", there)]


def placements(*tables, there=None):
    """{(ranks, hosts, ranks per host)} of the runs, each once."""
    where = [case.placement for case in cases(*tables, there=there)]
    found = {(p.ranks, p.hosts, p.per_node) for p in where}
    assert len(found) == len(where)
    return found


def ranks(*tables, there=None):
    return sorted(ranks for ranks, _, _ in placements(*tables, there=there))


def refused(*tables, there=None):
    with pytest.raises(InputError) as error:
        cases(*tables, there=there)
    return str(error.value)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([1, "node", "2 nodes", "half", "all"], [1, 2, 4, 5]),  # half of five slots is two, as many as a node
        (["1 node", "3 nodes"], [2, 5]),
        (["cores"], [5]),
        ([3, 3], [3]),
    ],
)
def test_words_for_ranks_are_resolved_against_the_slots_and_equal_ones_run_once(slurm, words, found):
    assert ranks({"ranks": words}) == found


def test_words_for_ranks_follow_the_named_hosts_and_the_ranks_per_host(slurm):
    assert placements({"hosts": "n2,n3", "ranks": ["node", "all"]}) == {(2, "n[2-3]", 0), (3, "n[2-3]", 0)}
    found = placements({"per_node": 1, "ranks": ["node", "2 nodes", "all"]})
    assert found == {(1, "", 0), (2, "", 1), (3, "", 1)}


def test_hosts_or_ranks_per_host_without_ranks_take_all_that_they_allow(slurm):
    assert placements({"hosts": "n2"}) == {(2, "n2", 0)}
    assert placements({"per_node": 1}) == {(3, "", 1)}


def test_each_machine_alone_and_all_of_them_are_one_campaign(slurm):
    found = placements({"hosts": ["each", "all"], "ranks": "all"})
    assert found == {(2, "n1", 0), (2, "n2", 0), (1, "n3", 0), (5, "", 0)}


def test_the_same_run_in_other_words_is_one_run(slurm):
    again = {"hosts": "n1", "ranks": [1, "node"]}, {"hosts": "all", "ranks": 2}
    assert len(cases({"ranks": [1, 2]}, *again)) == 2
    assert placements({"hosts": "n1,n2,n3", "ranks": 3}) == {(3, "", 0)}
    found = placements({"hosts": "n[1-2]", "ranks": 2, "per_node": 2}, {"hosts": "n1", "ranks": 2})
    assert found == {(2, "n[1-2]", 0)}


def test_words_on_this_machine_are_those_of_one_host():
    (host,) = allocation("", {}).hosts
    found = ranks({"ranks": [1, "node", "half", "all"], "hosts": ["each", "fast", host.name]})
    assert found == sorted({1, max(1, host.slots // 2), host.slots})
    assert placements({"per_node": 1}) == {(1, "", 0)}


def test_the_nodes_of_a_host_file_that_deals_ranks_out_in_turn_are_named(tmp_path, monkeypatch):
    path = tmp_path / "hosts"
    path.write_text("a\nb\na\nb\n")
    monkeypatch.setenv("FEMBENCH_HOSTFILE", str(path))
    assert placements({"ranks": ["node", 2, "all"]}) == {(2, "a", 0), (2, "", 0), (4, "", 0)}
    assert placements({"hosts": "a,b", "ranks": [1, 3]}) == {(1, "", 0), (3, "a,b", 0)}


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"ranks": "4 nodes"}, "c.toml [[cases]] ranks = '4 nodes': the job has 3 hosts (n1:2, n2:2, n3:1)"),
        ({"ranks": [1, 6]}, "c.toml [[cases]] ranks = 6: expected at most 5 (5 slots, Slurm job 7"),
        ({"hosts": ["n1", "n9"]}, "c.toml [[cases]] hosts = 'n9': no host n9 in the job (5 slots, Slurm job"),
        ({"per_node": [1, 2]}, "c.toml [[cases]] per_node = 2: n3 has 1 slot"),
        ({"mesh": []}, "c.toml [[cases]] mesh = []: expected at least one value"),
        ({"ranks": [1, 3], "shares": "7:1"}, "c.toml [[cases]] no shares match any of ranks = [1, 3]"),
        ({"hosts": "fast"}, "c.toml [[cases]] hosts = 'fast': the speed of the hosts is not known; expected"),
        ({"ranks": "nodes 2"}, "ranks = 'nodes 2': expected a number, 'node', '2 nodes', 'half' or 'all'"),
        ({"ranks": True}, "c.toml [[cases]] ranks = true: expected a number, 'node', '2 nodes', 'half'"),
        ({"per_node": "1"}, "c.toml [[cases]]: per_node = '1': expected a whole number of at least 0"),
        ({"overlap": "yes"}, "c.toml [[cases]]: overlap = 'yes': expected true or false"),
        (
            {"emulate": [1, 0.5]},
            'c.toml [[cases]]: emulate = [1, 0.5]: expected text in quotes, as in "1,0.5"',
        ),
        ({"shares": [[2, 1], "7:1"]}, 'shares = [2, 1]: expected text in quotes, as in "2,1"'),
        ({"label": True}, "c.toml [[cases]]: label = true: expected text in quotes"),
        ({"hosts": [["n1"]]}, "c.toml [[cases]] hosts = ['n1']: expected names such as 'n1,n3' or 'n[1-3]'"),
        ({"equations_per_rank": "10k"}, "equations_per_rank = 10k: expected a whole number, as in 200_000"),
        ({"equations_per_rank": 10**15, "ranks": 2}, "expected at most 1e+15"),
        ({"equations_per_rank": 10, "memory": "1%"}, "equations_per_rank and memory: expected one of them"),
        ({"mesh": "m1", "memory": "1%"}, "mesh and memory: expected one of them"),
        ({"memory": "120%"}, "memory = '120%': expected a part of the memory, as in '25%'"),
        ({"memory": 25}, "memory = '25': expected a part of the memory, as in '25%'"),
        ({"memory": "0.1%"}, "memory = '0.1%' of n1 is 8.19 MiB; expected more than 64 MiB"),
        ({"memory": "25%", "storage": "dense"}, "memory with storage = 'dense', whose size grows faster"),
    ],
)
def test_bad_words_are_refused_in_one_line_that_says_what_there_is(slurm, table, line):
    said = refused(table)
    assert line in said
    assert "\n" not in said


def test_the_case_with_a_bad_word_is_counted_where_there_are_several(slurm):
    assert "[[cases]] (2 of 3) ranks = 1.5: expected a number" in refused({}, {"ranks": 1.5}, {})


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("repetitions", "0", "c.toml: repetitions = 0: expected 1 to "),
        ("timeout", "nan", "c.toml: timeout = nan: expected a finite number"),
        ("nam", "1", "c.toml: unknown key 'nam'; the nearest known key is 'name'"),
        ("cases", "[]", "c.toml: no [[cases]]: expected at least one"),
        ("repetitions", '"two"', "c.toml: repetitions = 'two': expected a whole number"),
        ("timeout", "[1, true]", "c.toml: timeout = [1, true]: expected a number"),
        ("launcher", "1.5", "c.toml: launcher = 1.5: expected text in quotes"),
        ("cases", '"m1"', "c.toml: cases = 'm1': expected a list"),
        ("cases", "[1]", "c.toml: cases[0] = 1: expected a table"),
        ("cases", "{}", "c.toml: cases: expected a list, found a table"),
        ("seed", "1", "c.toml: key 'cases' is missing"),
    ],
)
def test_a_setting_of_a_campaign_of_the_wrong_type_is_refused_in_words(key, value, line):
    text = f"name = 'c'\n{key} = {value}\n" + ("" if key in ("cases", "seed") else "cases = []\n")
    with pytest.raises(InputError) as error:
        from_toml(text, Campaign, where="c.toml")
    assert str(error.value).startswith(line)


def test_a_number_of_ranks_too_large_for_some_of_the_hosts_is_left_out_of_those(slurm):
    found = placements({"hosts": ["each", "all"], "ranks": [1, 2]})
    assert found == {(1, "n1", 0), (1, "n2", 0), (1, "n3", 0), (2, "n1", 0), (2, "n2", 0)}


def known(speeds):
    return CampaignHosts(allocation("", SLURM), {}, (), speeds, "machine.json")


def test_fast_hosts_are_those_within_ten_percent_of_the_fastest():
    for speeds, found in (((0.89, 1.0, 0.9), (3, "n[2-3]", 0)), ((1.0, 1.0, 1.0), (5, "", 0))):
        there = known(dict(zip(("n1", "n2", "n3"), speeds)))
        assert placements({"hosts": "fast"}, there=there) == {found}


def test_a_host_without_a_speed_is_refused_by_name():
    said = refused({"hosts": "fast"}, there=known({"n1": 1.0, "n2": 1.0}))
    assert "machine.json has no speed of n3, only of n1, n2" in said


def test_speeds_are_from_a_profile_or_from_weights(slurm, tmp_path):
    profile, weights = tmp_path / "machine.json", tmp_path / "weights.json"
    save_profile(planted_profile([1.0, 1.0, 0.25], hosts=("n1", "n2", "n3")), profile)
    shares = tuple(RankShare(f"n{k}", share) for k, share in ((1, 0.5), (2, 0.48), (3, 0.02)))
    made = Weights(schema=1, rule="given", created=DAY, measured=DAY, source=(), ranks=shares)
    save_weights(made, weights)
    for there in (campaign_hosts(machine=str(profile)), campaign_hosts(weights=str(weights))):
        assert placements({"hosts": "fast"}, there=there) == {(4, "n[1-2]", 0)}


def test_weak_scaling_keeps_the_equations_per_rank(slurm):
    found = cases({"equations_per_rank": 3000, "ranks": [1, "node", "all"]})
    sizes = {(c.placement.ranks, c.question.mesh) for c in found}
    assert sizes == {(1, "box:3000"), (2, "box:6000"), (5, "box:15000")}


def test_a_mesh_sized_by_memory_fills_the_tightest_host_to_the_part_asked_for(slurm):
    """By hand: 8 GiB per host, 64 MiB per rank, 1000 bytes per equation with storage sym, and on rank 0's
    host 2000 / 3 per equation of the whole mesh where it partitions."""
    blocks = {"ranks": "all", "partitioner": "blocks"}
    for fields, ranks, per_equation in (
        ({"hosts": "n3"}, 1, 1000),
        (blocks, 2, 1000 * 2 / 5),
        ({"ranks": "all"}, 2, 1000 * 2 / 5 + 2000 / 3),
        (blocks | {"ranks": 3, "shares": "1:1:6"}, 1, 1000 * 6 / 8),
    ):
        (case,) = cases({"memory": "25%", **fields})
        assert case.question.mesh == f"box:{int((2 * GIB - ranks * (64 << 20)) / per_equation)}"
        assert box_named(case.question.mesh).n_equations > 1_000_000


def test_the_memory_of_a_host_is_that_of_a_profile_of_this_host_or_of_slurms_limit(
    slurm, monkeypatch, tmp_path
):
    there = campaign_hosts()
    assert (there.memory["n3"], there.assumed) == (8 * GIB, ("n2", "n3"))
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "1024")
    assert dict(campaign_hosts().memory) == {"n1": 2 * GIB, "n2": 2 * GIB, "n3": GIB}
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "4096")
    assert campaign_hosts().memory["n3"] == 4 * GIB
    profile = planted_profile([1.0, 1.0, 1.0], hosts=("n1", "n2", "n3"))
    save_profile(on_hosts_with(profile, memory_bytes=3 * GIB), tmp_path / "m.json")
    found = campaign_hosts(machine=str(tmp_path / "m.json"))
    assert (found.memory["n3"], found.assumed) == (3 * GIB, ())


def test_an_unknown_memory_is_refused_by_the_name_of_the_host(slurm, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "login")
    assert "memory of n1: not known; expected a mesh, or machine = FILE of fembench characterize" in refused(
        {"memory": "25%"}
    )


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"mesh": "box:40000000", "ranks": 2}, "storage sym: needs at least 11.9 GiB on n1, which has 8"),
        ({"mesh": "box:140000000", "ranks": 2, "storage": "ebe"}, "storage ebe: needs at least 10.4 GiB"),
        ({"mesh": "m", "storage": "dense"}, "storage dense: needs at least "),
        ({"equations_per_rank": 50_000_000, "ranks": 1}, "on n1, which has 8 GiB; expected a smaller mesh"),
    ],
)
def test_a_mesh_that_exceeds_the_memory_of_a_host_is_refused(slurm, table, line):
    assert line in refused(table)


def test_a_mesh_is_spread_over_the_hosts_and_those_of_unknown_memory_are_not_judged(slurm):
    assert cases({"mesh": "box:40000000", "ranks": "all"})
    assert cases({"mesh": "box:40000000", "ranks": 1, "hosts": "n2"})
    assert cases({"mesh": "box:40000000", "ranks": 2, "storage": "ebe"})
