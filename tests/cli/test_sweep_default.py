"""sweep without a file, and with a limit of time: the ranks are replaced by planted records."""

import dataclasses
import html
import json
import re
import time
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_machine import planted_network
from planted_nodes import Planted, planted_nodes
from planted_profile import planted_profile
from planted_records import planted

import fembench
from fembench.base.errors import AllocationLostError, InputError, UnsharedError
from fembench.bench import campaign as campaigns
from fembench.bench import schedule
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import campaign_hosts
from fembench.cli.main import main
from fembench.fem.problem import load_problem, resolved
from fembench.launch.allocation import allocation, layout
from fembench.launch.run_job import JobEnd
from fembench.records.nodes import load_nodes
from fembench.records.profile import save_profile
from fembench.records.store import load, record_paths
from fembench.records.verdict import Verdict
from fembench.workflows import sweep_source
from fembench.workflows.sweep_runs import Minutes

PROBLEM = json.loads(msgspec.json.encode(resolved(load_problem("corner-load"))))
replace = msgspec.structs.replace


@pytest.fixture(autouse=True)
def job(tmp_path, slurm, monkeypatch):
    """A Slurm job on three hosts with two slots each, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    slurm()


class Ranks:
    """What replaces them: each run takes `seconds`; host n2 computes at the speed given."""

    def __init__(self, monkeypatch):
        self.speed, self.seconds, self.ran, self.patience = 1.0, 0.0, [], None
        self.disturbance = 1.0  # of n2 in runs alone
        self.crashes, self.too_long = (), ()  # meshes
        self.foreign = 0.0  # percent of the CPU time of each node
        self.other = False  # n2 has another processor instead of a quota
        monkeypatch.setattr(campaigns, "launch", self.launch)
        monkeypatch.setattr(sweep_source, "machine", self.network)
        monkeypatch.setattr("fembench.workflows.nodes.launch_nodes", self.nodes)

    @property
    def cases(self):
        return [case for case in self.ran if not isinstance(case, str)]

    def launch(self, case, *, id, timeout, **_):
        self.ran.append(case)
        if case.question.mesh in self.crashes:
            return JobEnd(None, "crashed", "rank 1 died", 1, "")
        if case.question.mesh in self.too_long:
            time.sleep(timeout)
            return JobEnd(None, "timeout", f"no result after {timeout:g} s: ended", 1, "")
        time.sleep(self.seconds)
        hosts = [host.name for host in layout(case.placement, allocation()) for _ in range(host.slots)]
        speeds = [self.speed * self.disturbance if name == "n2" else 1.0 for name in hosts]
        shares = [float(word) for word in case.placement.shares.split(",") if word]
        made = planted(speeds, shares or None, hosts=hosts, id=id, noise=0.0)
        verdict = Verdict(status="VALID", reasons=(), rules=())
        return JobEnd(replace(made, case=case, problem=PROBLEM, verdict=verdict), "ok", "", 0, "")

    def nodes(self, asked, only=(), **_):
        """As if a quota kept n2 slow."""
        self.ran.append(f"{', '.join(only.values())} alone" if only else "all nodes")
        self.patience = asked.patience
        held = {"throttled_percent": 100 * (1 - self.speed), "cpu_quota": 2 * self.speed}
        others = {"others_percent": self.foreign}
        slow = {k: Planted(host=others) for k in range(3)} if self.foreign else {}
        slow |= {1: Planted(load=1 - self.speed, host=held | others)} if self.speed < 1 else {}
        slow |= {1: Planted(self.speed, self.speed, host={"cpu_model": "Small"})} if self.other else {}
        record = planted_nodes(3, slow, ranks=2)
        launch = record.second if only else record.first
        return replace(launch, nodes=tuple(replace(node, listed=node.name) for node in launch.nodes))

    def network(self, ranks, *, path, **_):
        self.ran.append(f"network of {ranks} ranks")
        path.write_text("{}")


@pytest.fixture
def ranks(monkeypatch):
    return Ranks(monkeypatch)


def placements(folder):
    return {
        (r.case.question.mesh, r.case.placement.ranks, r.case.placement.hosts, bool(r.case.placement.shares))
        for r in map(load, record_paths(folder))
    }


def test_on_several_hosts_slow_nodes_come_first_then_the_network_then_scaling_over_the_hosts(ranks, capsys):
    assert main(["sweep", "--no-report"]) == 0
    assert ranks.ran[:2] == ["all nodes", "network of 6 ranks"]
    strong = {(n, hosts) for mesh, n, hosts, _ in placements("results/default") if mesh == "m"}
    assert strong == {(1, ""), (2, ""), (4, ""), (6, "")}
    text = Path("results/default/campaign.toml").read_text()
    assert text.startswith("# Made by fembench sweep for 6 slots, Slurm job 7: n1:2, n2:2, n3:2.\n")
    assert 'ranks = [1,"all"]' in text
    assert "shares" not in text
    said = capsys.readouterr()
    assert "nodes: no slow node among 3" in said.err
    assert "fembench nodes found no slow one" in said.out
    assert "slow hosts" not in (said.err + said.out).lower()


CAUSE = "n2: all cores slow: a quota of 0.5 CPUs withheld 75 % of the time"


@pytest.mark.parametrize("disturbance", [1.0, 4.0])
def test_a_slow_node_is_measured_alone_named_with_its_cause_and_runs_weighted_and_left_out(
    ranks, capsys, disturbance
):
    """Whatever one run shows of it: a disturbance may hide how slow it is."""
    ranks.speed, ranks.disturbance = 0.25, disturbance
    assert main(["sweep", "--no-report", "--json"]) == 0
    assert ranks.ran[:2] == ["all nodes", "n2 alone"]
    assert load_nodes("results/default/nodes").second is not None
    found = placements("results/default")
    assert {("m", 6, "", True), ("m", 4, "n[1,3]", False)} <= found
    (weighted,) = (case for case in ranks.cases if case.placement.shares)
    shares = [float(word) for word in weighted.placement.shares.split(",")]
    assert shares == pytest.approx([4 / 18, 4 / 18, 1 / 18, 1 / 18, 4 / 18, 4 / 18], rel=0.05)
    assert 'hosts = "n[1,3]"' in Path("results/default/campaign.toml").read_text()
    said = capsys.readouterr()
    assert f"nodes: 1 of 3 nodes slow: {CAUSE}" in said.err
    assert "slow hosts, by fembench nodes: n2 (25 % of the fastest)" in said.err
    assert "DISTURBED" not in said.err  # its own quota is the finding, no disturbance
    tree = json.loads(said.out)
    assert tree["records"] == "results/default/runs"
    rows = {row["what"]: row for row in tree["tables"]["headline"]}
    assert rows["slowest host"]["remarks"].startswith(CAUSE)
    assert disturbance > 1 or rows["slowest host"]["value"] == pytest.approx(25, abs=2)
    ranks.ran.clear()
    assert main(["sweep", "--no-report"]) == 0  # the same campaign, all of it recorded
    assert ranks.ran == []


@pytest.mark.parametrize("verb", ["sweep", "report"])
def test_the_page_says_what_the_terminal_says_and_concludes_nothing_again(
    ranks, output, monkeypatch, unrendered, verb
):
    Path("c.toml").write_text('name = "c"\n[[cases]]\nmesh = "m1"\nranks = [1, 2]\n')
    assert main(["sweep", "c.toml", "--no-report"]) == 0
    monkeypatch.setattr("fembench.report.page.conclusions", Mock(side_effect=AssertionError))
    told = output(*{"sweep": ("sweep", "c.toml"), "report": ("report", "results/c")}[verb])
    first, *_ = told.splitlines()
    page = html.unescape(Path("results/c/report/index.html").read_text())
    assert f"<p>{first}</p>" in re.sub("<a [^>]*>|</a>", "", page)  # without links to tables


def test_unequal_hosts_end_with_what_to_do_and_what_the_other_ways_cost(ranks, output):
    """Ranks of speeds 1, 1, 1/4, 1/4, 1, 1: equal shares take 4/6 of the time of one rank, shares by speed
    2/9, the four fast ranks 1/4."""
    ranks.speed = 0.25
    said = output("sweep", "--no-report").splitlines()
    line = next(x for x in said if x.startswith("Slow hosts: "))
    leave_out = "`fembench nodes results/default/nodes --without good`, then --hostfile good"
    assert said[said.index(line) + 1] == f"To run without them: {leave_out} and another --results."
    assert said.index(line) < said.index("Headline")
    assert line.startswith("Slow hosts: keep n2, with shares by speed (m takes ")
    more = [int(percent) for percent in re.findall(r": (\d+) % more time", line)]
    assert more == pytest.approx([200, 12.5], rel=0.15)  # whole cells, and messages
    assert "; without n2: " in line
    ranks.ran.clear()
    for path in record_paths("results/default"):
        place = load(path).case.placement
        if path.name.startswith("m-") and place.ranks == 6 and not place.shares:
            path.unlink()  # it showed the speeds
    assert main(["sweep", "--no-report"]) == 0
    assert len(ranks.ran) == 1
    assert ("m", 6, "", True) in placements("results/default")


@pytest.mark.parametrize(
    ("settings", "planned", "said", "unsaid"),
    [
        # slow because of its processor: fembench nodes --without would keep it
        (
            {"speed": 0.25, "other": True},
            True,
            ["nodes: 3 nodes, none compared", "Slow hosts: keep n2, with shares by speed"],
            "to run without them",
        ),
        ({"speed": 0.25, "foreign": 40.0}, False, ["DISTURBED: others used up to 40 %"], "slow hosts:"),
        ({"disturbance": 0.8}, False, [], "slow hosts"),  # slow in one run, but not as a node
    ],
)
def test_only_what_nodes_show_undisturbed_makes_a_host_slow_and_only_nodes_leave_it_out(
    ranks, capsys, settings, planned, said, unsaid
):
    vars(ranks).update(settings)
    assert main(["sweep", "--no-report"]) == 0
    told = "".join(capsys.readouterr())
    assert [words for words in said if words not in told] == []
    assert unsaid not in told.lower()
    assert any(case.placement.shares for case in ranks.cases) is planned


def test_a_campaign_that_has_begun_without_a_measurement_of_nodes_goes_on_without(ranks, monkeypatch):
    def refuse(*_, **__):
        raise InputError("no route to n3")

    with monkeypatch.context() as patch:
        patch.setattr("fembench.workflows.nodes.launch_nodes", refuse)
        assert main(["sweep", "--no-report"]) == 0
    ranks.ran.clear()
    assert main(["sweep", "--no-report"]) == 0
    assert ranks.ran == []


def test_slow_nodes_are_looked_for_again_only_on_other_hosts(ranks, monkeypatch):
    there, folder = campaign_hosts(), Folder(Path("results/default"))
    for _ in range(2):
        sweep_source.measure_nodes(there, folder, 0.0, "")
    assert ranks.ran == ["all nodes"]
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[4-6]")
    sweep_source.measure_nodes(campaign_hosts(), folder, 0.0, "")
    assert ranks.ran == ["all nodes"] * 2


def test_slow_nodes_are_left_out_only_of_the_shortest_campaigns(ranks, capsys):
    there, folder = campaign_hosts(), Folder(Path("results/default"))
    sweep_source.measure_nodes(there, folder, 1.0, "")
    assert "nodes: left out, as they take up to half a minute" in capsys.readouterr().err
    assert ranks.ran == []
    sweep_source.measure_nodes(there, folder, 4.0, "")
    assert (ranks.ran, ranks.patience) == (["all nodes"], 60.0)


def test_a_network_of_which_there_are_only_the_speeds_is_measured_by_the_next_start(ranks):
    there, folder = campaign_hosts(), Folder(Path("results/default"))
    path = folder.path / sweep_source.MACHINE
    for network, ran in ((planted_network(), []), (None, ["network of 6 ranks"])):
        save_profile(planted_profile([1.0, 1.0], network=network), path)
        sweep_source.measure_network(there, folder, 0.0, "")
        assert ranks.ran == ran


@pytest.mark.parametrize(
    ("what", "measure"), [("nodes", "nodes.launch_nodes"), ("network", "sweep_source.machine")]
)
def test_what_cannot_be_measured_is_said_and_the_campaign_goes_on(ranks, capsys, monkeypatch, what, measure):
    monkeypatch.setattr(f"fembench.workflows.{measure}", Mock(side_effect=InputError("no route to n3")))
    assert main(["sweep", "--no-report"]) == 0
    assert f"{what}: not measured: no route to n3" in capsys.readouterr().err
    assert ("m", 6, "", False) in placements("results/default")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AllocationLostError("job 7 was cancelled"), 1),
        (UnsharedError("host n3 cannot read /r: Is a directory"), 2),
    ],
)
def test_hosts_taken_away_and_a_folder_they_do_not_share_end_the_campaign(
    ranks, capsys, monkeypatch, error, status
):
    monkeypatch.setattr("fembench.workflows.nodes.launch_nodes", Mock(side_effect=error))
    assert main(["sweep", "--no-report"]) == status
    assert str(error) in capsys.readouterr().err.splitlines()[-1]
    assert ranks.ran == []


def test_a_dry_run_shows_the_campaign_that_is_made(ranks, output):
    tree = json.loads(output("sweep", "--dry-run", "--json"))
    before = sum(tree["first"].values()) / 60
    assert tree["minutes"] == pytest.approx(before + sum(run["minutes"] for run in tree["runs"]))
    assert (tree["runs"][0]["mesh"], tree["runs"][0]["recorded"]) == ("m", False)
    assert {run["ranks"] for run in tree["runs"]} == {1, 2, 4, 6}
    assert {run["precision"] for run in tree["runs"]} == {2.0}
    assert tree["left_out"] == []
    assert tree["first"] == {"slow hosts": 30, "network": 120}
    assert not Path("results").exists()


def test_a_dry_run_counts_what_comes_before_the_runs(ranks, output):
    out = output("sweep", "--dry-run", "--minutes", "5")
    assert "before the runs: slow hosts, about 0:30\n" in out
    assert "network" not in out
    assert "before the runs" not in output("sweep", "--dry-run", "--minutes", "1")


def test_a_dry_run_within_minutes_repeats_cases_or_says_what_is_left_out(ranks, output):
    long = json.loads(output("sweep", "--dry-run", "--json", "--minutes", "30"))
    assert sum(run["id"].endswith("-r2") for run in long["runs"]) >= 3
    assert long["left_out"] == []
    assert 25 < long["minutes"] < 32
    out = output("sweep", "--dry-run", "--minutes", "1")
    assert "left out (no time): " in out


@pytest.mark.parametrize("slow", [False, True])
def test_a_sweep_ends_in_the_time_given_and_says_what_it_left_out(ranks, capsys, monkeypatch, slow):
    monkeypatch.setattr(schedule, "QUICKEST", 0.01)
    ranks.seconds = 0.05 if not slow else 0.7
    Path("c.toml").write_text(
        'name = "c"\n[[cases]]\nmesh = "m1"\nranks = [1, 2, 4]\nsets = 2\nwarmups = 1\n'
        '[[cases]]\nmesh = "m2"\nranks = 2\nsets = 2\nwarmups = 1\n'
    )
    begin = time.monotonic()
    assert main(["sweep", "c.toml", "--no-report", "--json", "--minutes", "0.03"]) == 0  # 1.8 s
    assert time.monotonic() - begin < 4  # tables included, on a busy machine
    tree = json.loads(capsys.readouterr().out)
    if slow:
        assert len(ranks.ran) < 4
        assert len(tree["left_out"]) == 4 - len(ranks.ran)
        assert all(name.startswith(("m1 · sym · ", "m2 · sym · ")) for name in tree["left_out"])
    else:
        assert len(ranks.ran) > 8
        assert tree["left_out"] == []
        repetitions = {path.stem.rsplit("-r", 1)[1] for path in record_paths("results/c")}
        assert {"1", "2", "3"} <= repetitions


TWO_MESHES = 'name = "c"\n[[cases]]\nmesh = ["m1", "m2"]\nsets = 2\nwarmups = 1\n'
WITHIN = ["sweep", "c.toml", "--no-report", "--minutes", "0.06"]  # 3.6 s


@pytest.fixture
def short(ranks, monkeypatch):
    """A campaign of two meshes, within seconds."""
    monkeypatch.setattr(schedule, "QUICKEST", 0.01)
    Path("c.toml").write_text(TWO_MESHES)
    return ranks


def test_a_run_that_is_cut_as_the_time_is_up_is_left_out_and_no_failure(short, capsys, output, unrendered):
    short.too_long = ("m2",)
    assert main(WITHIN) == 0
    said = capsys.readouterr()
    assert "left out (no time): no result after" in said.err
    assert "\nleft out (no time): m2 · sym · 1 rank\n" in said.out
    assert "FAILED" not in said.out + said.err
    assert "Failed runs" not in said.out
    assert "; left out (no time): 1 case " in said.out
    assert main(["report", "results/c"]) == 0
    page = Path("results/c/report/report.md").read_text()
    assert "### Left out (no time)" in page
    assert " failed" not in page
    short.too_long = ()
    capsys.readouterr()
    assert "left out" not in output(*WITHIN)
    assert not list(Path("results/c/runs").glob("*.failed.json"))


def test_a_run_that_fails_for_its_own_reasons_fails_the_campaign_also_within_minutes(short, capsys):
    short.crashes = ("m2",)
    assert main(WITHIN) == 1
    said = capsys.readouterr()
    assert "FAILED: rank 1 died" in said.err
    assert "left out" not in said.out


def test_a_run_that_exceeds_the_time_limit_of_its_campaign_fails_also_within_minutes(short, capsys):
    Path("c.toml").write_text("timeout = 0.1\n" + TWO_MESHES)
    short.too_long = ("m2",)
    assert main(WITHIN) == 1
    assert "FAILED: no result after 0.1 s: ended" in capsys.readouterr().err


def test_a_campaign_of_which_no_run_ends_in_time_fails_and_says_so(short, capsys):
    short.too_long = ("m1", "m2")
    assert main(WITHIN) == 1
    said = capsys.readouterr()
    assert "--minutes 0.06: no run ended in time; give more minutes" in said.err
    assert said.out.count("left out (no time): m") == 2


@pytest.mark.parametrize(
    ("minutes", "line"),
    [
        ("0.1", "--minutes 0.1: no time for a run; expected more than 8 seconds"),
        *((word, "expected a") for word in ("0", "-1", "soon", "inf", "1e6")),
    ],
)
def test_minutes_have_to_be_a_number_that_leaves_time_for_runs(ranks, minutes, line, refusal):
    assert line in refusal("sweep", "--minutes", minutes)
    assert (ranks.ran, Path("results").exists()) == ([], False)


def test_a_sweep_from_python_tells_which_cases_it_left_out(short):
    short.too_long = ("m2",)
    told = []
    found = fembench.sweep("c.toml", minutes=0.03, tell=told.append)
    assert {record.case.question.mesh for record in found} == {"m1"}
    assert "sweep: 1 case left out: no time within 0.03 minutes: m2 · sym · 1 rank" in told


def test_a_sweep_that_ended_late_says_by_how_much(monkeypatch):
    def late(minutes, seconds):
        monkeypatch.setattr("time.monotonic", lambda: seconds)
        return Minutes(minutes, 0.0, False).overrun()

    assert late(3, 202.4) == "sweep: ended 22 s late (3 min were given)"
    assert late(3, 180.4) == late(3, 100.0) == late(0, 100.0) == ""


def test_an_interrupted_campaign_says_how_many_of_its_runs_were_disturbed(ranks, capsys, monkeypatch):
    used = iter([0.0, 75.0])

    def launch(case, **options):
        if (percent := next(used, None)) is None:
            raise KeyboardInterrupt
        ended = ranks.launch(case, **options)
        return dataclasses.replace(ended, result=on_hosts_with(ended.result, others_percent=percent))

    monkeypatch.setattr(campaigns, "launch", launch)
    Path("c.toml").write_text('name = "c"\nrepetitions = 3\n[[cases]]\nmesh = "m1"\nranks = 1\n')
    assert main(["sweep", "c.toml"]) == 130
    kept = "2 runs kept, 1 of them DISTURBED: start the sweep again to continue"
    again = "to repeat recorded runs, give another folder (--results FOLDER)"
    assert capsys.readouterr().err.splitlines()[-1] == f"fembench: interrupted; {kept}; {again}"
