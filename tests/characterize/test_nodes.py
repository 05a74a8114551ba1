"""`fembench nodes` from its hosts to its verdicts: what is launched, what is measured, what is printed."""

import itertools
import json
import platform
import re
import time

import numpy as np
import pytest
from msgspec.structs import replace
from planted_nodes import Planted, planted_nodes

from fembench.base.errors import InputError
from fembench.characterize import node_launches, node_rates
from fembench.characterize.jobs import NodesJob
from fembench.characterize.node_launches import NodesAsked, launch_nodes
from fembench.characterize.node_rates import measure_nodes, triad_bytes, turn_of
from fembench.cli.main import main
from fembench.host.machine_state import LARGEST
from fembench.launch.hosts import HostSlots, host_slots
from fembench.records.nodes import load_nodes, save_nodes
from fembench.records.record import HostFacts
from fembench.synthetic.speeds import NodeSpeed
from fembench.weights.host_speed import host_speeds

EMULATED = "1,1,1,1,1,0.5,1:0.5,1:1:0.5"  # slow also where the machine is faster while they are alone
CAUSES = {
    "node6": "all cores slow (clock or quota)",
    "node7": "memory slow, cores normal",
    "node8": "another load: no processor for 50 % of the time",
}
SLOW = {2: Planted(cores=0.8)}


pytestmark = pytest.mark.usefixtures("no_batch_system")


@pytest.fixture
def started(monkeypatch, tmp_path):
    """(hosts with their ranks, job) of every launch; the ranks of planted nodes are not started."""
    found = []

    def job_line(ranks, hostfile, options, hosts):
        found.append([(host.name, host.slots) for host in hosts])
        return type("Line", (), {"crowded": False, "loose": False, "__str__": lambda self: "mpiexec"})()

    def measure(*_, **__):
        hosts = found[-1]
        launch = planted_nodes(len(hosts), ranks=1).first
        names = [f"{name}.cluster" for name, _ in hosts]
        nodes = tuple(replace(node, name=name) for node, name in zip(launch.nodes, names))
        return replace(launch, nodes=nodes)

    monkeypatch.setattr(node_launches, "job_line", job_line)
    monkeypatch.setattr(node_launches, "measure", measure)
    (tmp_path / "hosts").write_text("n[1-3] slots=4\n")
    return found


@pytest.mark.parametrize(
    ("per_node", "only", "launched", "nodes"),
    [
        (0, {}, [("n1", 4), ("n2", 4), ("n3", 4)], [(f"n{k}.cluster", f"n{k}", 4) for k in (1, 2, 3)]),
        (2, {"n3": "third", "n1": "first"}, [("n1", 2), ("n3", 2)], [("first", "n1", 4), ("third", "n3", 4)]),
    ],
)
def test_a_launch_takes_the_slots_of_its_hosts_and_names_some_nodes_as_before(
    started, tmp_path, per_node, only, launched, nodes
):
    told, asked = [], NodesAsked(hostfile=str(tmp_path / "hosts"), per_node=per_node)
    found = launch_nodes(asked, only, scratch=tmp_path, tell=told.append)
    assert started == [launched]
    assert only or told == ["3 nodes, 12 ranks: 8 rounds, usually 10 s and the start"]
    assert [(node.name, node.listed, node.slots) for node in found.nodes] == nodes


def test_hosts_that_turn_out_to_be_one_are_named(started, tmp_path):
    nodes = planted_nodes(3, ranks=1).first.nodes
    hosts = [HostSlots("n1", 1), HostSlots("localhost", 1)]
    with pytest.raises(
        InputError, match=r"2 hosts in the list \(n1:1, localhost:1\), but .* on 3 \(n1, n2, n3\)"
    ):
        list(node_launches._listed(nodes, hosts, {}, {}))


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("rank 0=n1 slot=0\n", (), "hosts is a rankfile, which places every rank"),
        ("n1 slots=2\nn2\n", ("--ranks-per-node", "2"), "n2 has 1 slot"),
        ("n1\nn2\n", ("--emulate", "1,1"), "emulated on one host; the job has 2"),
        ("n1\n", ("--emulate", "1,1", "--without", "good"), "emulated nodes are no hosts"),
        ("n1\n", ("--emulate", "1,2"), "cannot read '2'; expected SPEED[:MEMORY[:LOAD]]"),
    ],
)
def test_wrong_hosts_are_refused_before_anything_starts(tmp_path, refusal, text, words, line):
    (tmp_path / "hosts").write_text(text)
    hosts = ["--hostfile", str(tmp_path / "hosts"), "--results", str(tmp_path)]
    assert line in refusal("nodes", *hosts, *words)


@pytest.mark.parametrize(
    "words", ["--emulate 1,1", "--rounds 8", "--results elsewhere", "--map-by core", "--launcher-options x"]
)
def test_options_of_a_measurement_do_not_go_with_a_record(tmp_path, refusal, words):
    assert f"{words.split()[0]} with the record {tmp_path}" in refusal("nodes", str(tmp_path), *words.split())


@pytest.fixture
def measured(monkeypatch):
    """Launches that find planted nodes, the third of five slow; the names asked for in the second."""
    record, asked_for = planted_nodes(5, SLOW), []

    def launch(asked, only=node_launches.EVERYONE, **_):
        asked_for.append(dict(only))
        return record.second if only else record.first

    monkeypatch.setattr("fembench.workflows.nodes.launch_nodes", launch)
    return record, asked_for


def test_slow_nodes_are_measured_alone_and_left_out_of_the_host_file(measured, tmp_path, capsys):
    record, asked_for = measured
    good = tmp_path / "good"
    words = ["nodes", "--results", str(tmp_path / "r"), "--without", str(good)]
    assert main(words) == 1
    assert asked_for == [{}, {"n3.cluster": "n3"}]
    assert load_nodes(tmp_path / "r") == record
    assert host_slots(str(good)) == [HostSlots(f"n{k}.cluster", 8) for k in (1, 2, 4, 5)]
    text = capsys.readouterr().out
    assert text.startswith("1 of 5 nodes slow: n3: all cores slow")
    assert "(alone: 0." in text
    assert f"record: {tmp_path / 'r' / 'nodes-r1.json'}" in text
    assert f"{good}: 4 nodes; pass it to any verb with --hostfile" in text


def test_the_first_launch_is_kept_if_the_second_fails(measured, monkeypatch, tmp_path):
    record, _ = measured

    def launch(asked, only=node_launches.EVERYONE, **_):
        if only:
            raise InputError("n3 is gone")
        return record.first

    monkeypatch.setattr("fembench.workflows.nodes.launch_nodes", launch)
    assert main(["nodes", "--results", str(tmp_path)]) == 2
    assert load_nodes(tmp_path) == replace(record, second=None)


def test_a_record_is_analysed_again_with_the_same_verdicts(measured, tmp_path, capsys):
    main(["nodes", "--results", str(tmp_path)])
    before = capsys.readouterr().out.split("\nrecord: ")[0].rstrip()
    for path in (tmp_path, tmp_path / "nodes-r1.json"):
        assert main(["nodes", str(path)]) == 1
        assert capsys.readouterr().out.rstrip() == before
    assert main(["nodes", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [node["name"] for node in found["nodes"] if node["verdict"] == "slow"] == ["n3"]


@pytest.mark.parametrize("model", ["Example", "Other"])
def test_of_two_nodes_the_one_with_a_quota_of_its_own_is_slow_and_left_out(model, tmp_path, capsys):
    """Also beside another processor, whose speed it would not have without the quota."""
    quota = {"throttled_percent": 60.0, "cpu_quota": 0.5, "cpu_model": model}
    record = planted_nodes(2, {1: Planted(load=0.75, host=quota)}, ranks=2, noise=1e-3, spread=0.0)
    save_nodes(record, tmp_path / "two.json")
    words, good = ["nodes", str(tmp_path / "two.json")], tmp_path / "good"
    assert main([*words, "--without", str(good)]) == 1
    assert host_slots(str(good)) == [HostSlots("n1.cluster", 4)]
    text = capsys.readouterr().out
    cause = "all cores slow: a quota of 0.5 CPUs withheld 75 % of the time"
    assert text.startswith(f"1 of 2 nodes slow: n2: {cause}. With equal shares, all nodes run at 25 % of")
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(node["name"], node["verdict"]) for node in found["nodes"]] == [
        ("n1", "not compared"),
        ("n2", "slow"),
    ]
    assert [one["faulty"] for one in found["speeds"]] == [False, True]
    (said,) = host_speeds(record).faulty
    assert (said.name, said.cause) == ("n2", cause)
    assert found["costs"]["equal"] == pytest.approx(0.75, abs=1e-2)
    assert found["costs"]["left_out"] == pytest.approx(0.5, abs=1e-2)


def test_no_host_file_is_written_if_every_node_is_slow(tmp_path, refusal):
    save_nodes(planted_nodes(1, {0: Planted(core={1: 0.5})}), tmp_path / "one.json")
    good = tmp_path / "good"
    assert "every node is slow" in refusal("nodes", str(tmp_path / "one.json"), "--without", str(good))
    assert not good.exists()


def test_equal_nodes_are_launched_once_and_the_status_is_good(tmp_path, output):
    save_nodes(planted_nodes(5), tmp_path / "nodes-r1.json")
    said = "no slow node among 5: none lacks 5 % of the speed of its kind."
    assert output("nodes", str(tmp_path)).startswith(said)


def test_nodes_on_which_others_computed_are_named_before_the_tables(tmp_path, output):
    save_nodes(planted_nodes(2, {1: Planted(host={"others_percent": 30.0})}), tmp_path / "nodes-r1.json")
    text = output("nodes", str(tmp_path))
    assert text.startswith("DISTURBED: others used up to 30 % of the CPU time on n2: ")
    assert text.splitlines()[1].startswith("2 nodes, none compared")


def test_of_many_nodes_the_table_shows_those_that_are_not_normal(tmp_path, capsys):
    save_nodes(planted_nodes(40, SLOW), tmp_path / "nodes-r1.json")
    assert main(["nodes", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| n")] == ["node", "n3"]
    (others,) = [line for line in lines if line.startswith("39 other nodes not slow: all cores ")]
    low, high = re.findall(r"(\d\.\d\d) to (\d\.\d\d)", others)[0]
    assert 0.9 < float(low) < 1 < float(high) < 1.1


def test_arrays_exceed_all_last_level_caches_of_a_node_and_fit_its_memory():
    def host(l3, memory):
        return HostFacts(name="n", cpu_model="x", cores=8, caches={"L3": l3}, memory_bytes=memory)

    assert triad_bytes(host(32 << 20, 1 << 40), 2, 8) * 8 == 4 * 2 * (32 << 20)
    assert triad_bytes(host(512 << 20, 1 << 40), 2, 1) == LARGEST
    assert triad_bytes(host(32 << 20, 1 << 28), 2, 8) == (1 << 28) // 32
    assert triad_bytes(host(0, 0), 0, 64) == node_rates.LEAST_BYTES


class HeldMeter:
    """Had a processor for a quarter of its time."""

    way, spent = "processor", (0.0, 0.0)

    def visit(self, probe, cost, seconds):
        self.spent = (self.spent[0] + 0.4, self.spent[1] + 0.1)
        return 1000.0


def test_a_rate_is_per_elapsed_second():
    rank = object.__new__(node_rates.NodeRank)
    rank._emulated, meter = False, HeldMeter()
    for _ in range(2):
        assert rank._visit(meter, None, 1e-3, 0.1) == pytest.approx((250.0, 0.25))


class MachineOfRanks:
    """The communicator of ranks that say these rows."""

    def __init__(self, *rows):
        self.rows, self.size = rows, len(rows)

    def allgather(self, row):
        return self.rows


@pytest.mark.parametrize(
    ("cpus", "turns"),
    [
        (((0,), (1,), (0,), (1,)), [(0, 2), (1, 2)]),  # virtual hosts on the same two CPUs
        (((0,), (1,), (2,), (3,)), [(0, 1), (0, 1)]),  # containers with CPUs of their own
        ((tuple(range(8)),) * 4, [(0, 1), (0, 1)]),  # not bound, and enough for all
    ],
)
def test_nodes_that_share_processors_are_measured_one_after_another(monkeypatch, cpus, turns):
    machine = MachineOfRanks(*zip(("a", "a", "b", "b"), cpus))
    assert [turn_of(machine, name) for name in ("a", "b")] == turns


@pytest.mark.mpi
def test_in_a_turn_of_one_node_the_ranks_of_others_wait(comm, brief, monkeypatch):
    """Every rank is a node of its own, and all share a CPU."""
    names, when = [f"n{rank}" for rank in range(comm.size)], []
    monkeypatch.setattr(node_rates, "node_names", lambda comm, job: names)
    monkeypatch.setattr(node_rates, "affinity", lambda: (0,))
    visit = node_rates.NodeRank._visit

    def timed(rank, *rest):
        begin = time.monotonic()
        found = visit(rank, *rest)
        when.append((begin, time.monotonic()))
        return found

    monkeypatch.setattr(node_rates.NodeRank, "_visit", timed)
    found = measure_nodes(comm, job(comm), lambda text: None)
    assert found is None or [node.name for node in found.nodes] == names
    spans = [(when[3 * k][0], when[3 * k + 2][1]) for k in range(3)]  # of each round
    for of_round in zip(*comm.allgather(spans)):
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(of_round))


@pytest.fixture
def brief(monkeypatch):
    """Visits of a few milliseconds; ranks are not bound to cores."""
    for name in ("IN_TURN", "TOGETHER"):
        monkeypatch.setattr(node_rates, name, 0.02)
    monkeypatch.setattr(node_rates, "settle", lambda node: None)


def job(comm, **more):
    return NodesJob(ranks=comm.size, rounds=3, command="x", launcher="y", synthetic="", **more)


@pytest.mark.mpi
def test_every_host_has_samples_of_every_rank_and_round(comm, brief):
    told = []
    found = measure_nodes(comm, job(comm), told.append)
    assert (found is None) == (comm.rank > 0)
    if found is None:
        assert told == []
        return
    (node,) = found.nodes
    assert node.name == platform.node()
    assert (node.ranks, found.rounds, len(node.cores[0])) == (comm.size, 3, 3)
    assert node.together[0] > 1e6
    assert all(0 < busy <= 1 for row in node.cores_busy for busy in row)
    assert told[-1].startswith("round 3 of 3")


@pytest.mark.mpi(1, 2)  # on a core each: visits of 20 ms are shorter than turns of ranks that share one
def test_emulated_nodes_have_their_speeds(comm, brief):
    speeds = tuple(NodeSpeed(1 / (1 + k), 1.0, 0.5 * (k > 0)) for k in range(comm.size))
    names = tuple(f"node{k}" for k in range(comm.size))
    found = measure_nodes(comm, job(comm, names=names, speeds=speeds), lambda text: None)
    if found is None:
        return
    assert [node.name for node in found.nodes] == list(names)
    assert {node.host for node in found.nodes} == {0}
    for k, node in enumerate(found.nodes):
        assert node.together_busy[-1] == pytest.approx(1 - speeds[k].load)
        relative = np.median(node.together) / np.median(found.nodes[0].together)
        assert 0.3 < relative * (1 + k) / (1 - speeds[k].load) < 3


def names_and_causes(text):
    """{node: cause} in the printed table."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| node")]
    *_, verdict, cause, _ = zip(*rows)
    names = [row[0].strip() for row in rows]
    return {n: c.strip().split(" (alone")[0] for n, v, c in zip(names, verdict, cause) if v.strip() == "slow"}


@pytest.mark.slow
@pytest.mark.alone
def test_emulated_nodes_that_are_slow_are_named_with_their_causes(tmp_path, capsys):
    assert main(["nodes", "--emulate", EMULATED, "--rounds", "6", "--results", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert names_and_causes(text) == CAUSES, text
    assert (
        "SYNTHETIC: 3 of 8 nodes slow: node6" in text[: text.index("\n\n")]
    )  # if disturbed, the second line
    assert f"SYNTHETIC: emulated nodes {EMULATED}.\n" in text
    record = load_nodes(tmp_path)
    assert [node.name for node in record.second.nodes] == list(CAUSES)


@pytest.mark.slow
@pytest.mark.alone
def test_of_emulated_equal_nodes_none_is_slow(tmp_path, capsys):
    assert main(["nodes", "--emulate", "1,1,1,1", "--rounds", "6", "--results", str(tmp_path)]) == 0
    assert "no slow node among 4" in capsys.readouterr().out


@pytest.mark.slow
def test_a_single_host_is_described_and_not_compared(tmp_path, output):
    words = ["nodes", "--ranks-per-node", "1", "--rounds", "6", "--results", str(tmp_path)]
    text = output(*words)
    assert "1 node, none compared: that takes 3 nodes of a kind." in text
    assert f"| {platform.node()} " in text
