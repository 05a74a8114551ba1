import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_machine import flat_class, planted_machine, planted_network
from planted_records import planted

from fembench.cli.main import main
from fembench.mesh.presets import resolve
from fembench.partition.methods import partition
from fembench.partition.partition import metrics
from fembench.records.profile import save_profile
from fembench.records.quiet import disturbance
from fembench.records.store import load, save
from fembench.records.verdict import Verdict
from fembench.records.weights import load_weights
from fembench.weights.make import by_time
from fembench.workflows.command import plain
from fembench.workflows.tune import TuneRuns


@pytest.fixture
def record(tmp_path):
    """A file of a run of m1: two ranks on one host, one at half speed on another; its true partition."""
    mesh, made = resolve("m1"), planted([1.0, 1.0, 0.5], hosts=("a", "a", "b"))
    facts = replace(made.mesh, hash=mesh.hash, n_cells=mesh.n_cells, n_nodes=mesh.n_nodes)
    cut = replace(metrics(mesh, partition(mesh, (1 / 3,) * 3)), cells=made.partition.cells)
    return str(save(replace(made, mesh=facts, partition=cut), tmp_path / "runs"))


def test_weights_are_printed_and_written(record, tmp_path, output):
    out = tmp_path / "w.json"
    text = output("weights", record, record, str(Path(record).parent), "-o", str(out))  # thrice the same
    assert "|    2 | b    |" in text
    assert "rule time, from 1 record of m1" in text
    assert [r.share for r in load_weights(out).ranks] == pytest.approx([0.4, 0.4, 0.2], rel=0.01)


@pytest.mark.row("004:E9")
def test_runs_of_each_host_alone_make_a_file_of_weights(tmp_path, output):
    for k in range(2):  # repeated
        for host, speed in (("node8", 1.0), ("node00", 1 / 7.7)):
            save(planted([speed], hosts=(host,), id=f"{host}-{k}"), tmp_path / "alone")
    out = tmp_path / "w.json"
    text = output("weights", str(tmp_path / "alone"), "--rule", "tasks", "-o", str(out))
    ratio = re.search(r"node00 is (\S+) x slower than the fastest", text)
    assert float(ratio[1]) == pytest.approx(7.7, rel=0.02)
    weights = load_weights(out)
    assert dict(weights.tasks) == {"node8": 7, "node00": 1}
    assert [r.share for r in weights.ranks] == [1 / 8] * 8


def test_json_is_the_file_which_is_exported_as_it_stands(record, tmp_path, answer, output):
    out = tmp_path / "w.json"
    assert answer("weights", record, "-o", str(out)) == json.loads(out.read_text())
    assert output("weights", str(out), "--export", "shares") == plain(load_weights(out))


@pytest.mark.parametrize(
    ("option", "value"), [("rule", "comm"), ("machine", "m"), ("ranks", "3"), ("mesh", "m")]
)
def test_options_that_choose_among_runs_are_refused_with_a_file_of_weights(
    record, tmp_path, output, refusal, option, value
):
    path = str(tmp_path / "w.json")
    output("weights", record, "-o", path)
    said = f"--{option} with the weights in {path}: expected records of runs"
    assert said in refusal("weights", path, f"--{option}", value)


@pytest.fixture
def comm_shares(answer):
    """A function: the shares of the rule comm for a record and the file of a profile."""

    def shares(record, machine):
        found = answer("weights", record, "--rule", "comm", "--machine", machine)
        return [r["share"] for r in found["ranks"]]

    return shares


def network(tmp_path, latency, a_byte):
    """The file of a profile: messages to b take as much longer."""
    far = flat_class("a > b", latency=latency, a_byte=a_byte)
    made = planted_machine([1, 1, 0.5], hosts=("a", "a", "b"), network=planted_network(2, far=far))
    save_profile(made, tmp_path / f"{latency}.json")
    return str(tmp_path / f"{latency}.json")


@pytest.mark.row("001:7.3.2")
def test_a_slow_network_takes_cells_from_the_host_behind_it(record, tmp_path, comm_shares):
    fast, slow = (comm_shares(record, network(tmp_path, *how)) for how in ((0.0, 0.0), (2e-5, 1e-9)))
    assert fast == pytest.approx([0.4, 0.4, 0.2], rel=0.03)
    assert slow[2] < 0.9 * fast[2]


def changed(record, case, **facts):
    """The record's file, its case and partition changed."""
    found = load(Path(record))
    partition = replace(found.partition, **facts)
    case = found.case.with_(**case)
    return str(save(replace(found, case=case, partition=partition), Path(record).parent))


def test_the_comm_rule_takes_replicated_runs_and_no_blocks(record, tmp_path, comm_shares, refusal):
    machine = network(tmp_path, 2e-5, 1e-9)
    replicated = changed(record, {"replicated": True}, method="metis, replicated")
    assert comm_shares(replicated, machine) == comm_shares(record, machine)
    blocks = changed(record, {"partitioner": "blocks"}, method="blocks")
    said = "partitioner blocks works only under MPI"
    assert said in refusal("weights", blocks, "--rule", "comm", "--machine", machine)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "comm"], "--rule comm: --machine PROFILE is for --rule comm, which needs it"),
        (["--machine", "m.json"], "--rule time: --machine PROFILE is for --rule comm"),
        (["--ranks", "4"], "--ranks 4: no such records; there are records of m1 on 3 ranks"),
        (["--mesh", "m2"], "--mesh m2: no such records"),
        (["--rule", "rate"], "--rule rate: expected a machine profile; from records of runs, --rule time"),
        (["no-such-file.json"], "no-such-file.json"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(record, options, message, refusal):
    assert message in refusal("weights", record, *options)


def disturbed(record, folder, **facts):
    """(the record, the file of a copy with these facts of its hosts)."""
    made = load(Path(record))
    return made, str(save(on_hosts_with(made, **facts), folder))


def test_weights_of_a_provisional_record_say_so_and_why(record, tmp_path, capsys, output):
    made, path = disturbed(record, tmp_path / "loud", steal_percent=41.6)
    out = tmp_path / "w.json"
    why = "PROVISIONAL: steal, % of CPU time = 41.6 (D3), and 2 more reasons; use hosts"
    text = output("weights", path, "-o", str(out))
    (note,) = (note for note in load_weights(out).notes if note.startswith("PROVISIONAL: "))
    assert note.startswith(why)
    assert len(note) < 160
    assert note in text
    assert main(["weights", str(out), "--export", "shares"]) == 0
    assert f"warning: weights: {note}" in capsys.readouterr().err
    valid = replace(made, verdict=Verdict("VALID", (), ()))
    assert not any("PROVISIONAL" in note for note in by_time([valid]).notes)


def test_weights_of_a_record_whose_cores_others_used_say_so_and_what_to_do(record, tmp_path, capsys, output):
    made, path = disturbed(record, tmp_path / "loud", others_percent=80.6, others_resolution=0.8)
    text = output("weights", path)
    (line,) = [x for x in text.splitlines() if x.startswith("DISTURBED")]
    assert text.index(line) < text.index("| rank")
    assert "others used up to 80.6 % of the CPU time on" in line
    assert "stop the other work (`top` shows it)" in line
    assert line.endswith("or use idle hosts, then repeat")
    both = on_hosts_with(made, others_percent=80.6, others_resolution=0.8, steal_percent=41.6)
    assert disturbance([both.environment]).endswith(
        "or use idle hosts, and use hosts that share no processors, then repeat"
    )
    assert main(["weights", path, "--export", "shares"]) == 0
    assert f"warning: weights: {line}" in capsys.readouterr().err
    assert not any(note.startswith("DISTURBED") for note in by_time([made]).notes)


def test_records_of_several_meshes_or_rank_counts_are_narrowed_by_options(tmp_path, output, refusal):
    runs = tmp_path / "runs"
    other = replace(planted([1.0]).mesh, name="m2", hash="other")
    for id, speeds in (("p1", [1.0]), ("p2", [1.0, 0.5])):
        save(planted(speeds, id=id), runs)
    made = planted([1.0, 0.5], id="m2", mesh=other)
    save(replace(made, case=made.case.with_(mesh="m2")), runs)
    assert "several meshes (m1, m2): choose one mesh (--mesh, or runs.where)" in refusal("weights", str(runs))
    assert "choose one number of ranks (--ranks, or runs.where)" in refusal(
        "weights", str(runs), "--mesh", "m1"
    )
    shares = output("weights", str(runs), "--mesh", "m1", "--ranks", "2", "--export", "shares")
    first, second = map(float, shares.split(","))
    assert first == pytest.approx(2 * second, rel=0.01)


def test_tune_leaves_out_a_host_of_the_job_whoever_named_its_hosts(tmp_path, slurm):
    def runs(hostfile):
        return TuneRuns(tmp_path, hostfile, 0.0, "")

    assert not runs("").can_do_without("n1")  # this machine
    path = tmp_path / "hosts"
    path.write_text("n1.cluster.org:2\nn2.cluster.org\n")
    assert Path(runs(str(path))._hosts_of("n1", ())).read_text() == "n2.cluster.org slots=1\n"
    slurm()
    assert Path(runs("")._hosts_of("n2", ())).read_text() == "n1 slots=2\nn3 slots=2\n"
    assert runs("").can_do_without("n2")
