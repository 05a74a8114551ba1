"""Task graphs from files, and the verb that schedules them."""

import itertools
import json

import pytest
from zoo import LOCAL, REMOTE, random_graph, two_classes

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench_studies.scheduling.execute import makespan, timeline
from fembench_studies.scheduling.graph_files import read_graph
from fembench_studies.scheduling.schedulers import METHODS, usable

TASKS = [
    {"name": "d", "seconds": 1},
    {"name": "a", "seconds": 0.5},
    {"name": "b", "operations": 4e9},
    {"name": "c", "seconds": 1},
]
EDGES = [
    {"from": "a", "to": "b", "bytes": 1e6},
    {"from": "a", "to": "c"},
    {"from": "b", "to": "d", "bytes": 8},
    {"from": "c", "to": "d", "bytes": 8},
]
DOT = """// the same
strict digraph "mine" {
  rankdir = LR; node [shape=box, seconds=1]; edge [bytes=8]
  a [seconds=0.5, label="first; {of all}"]; b [operations=4e9]
  a -> b [bytes=1e6]   /* one */
  # and these
  a -> c [bytes=0];
  b -> d; c -> d
}"""


def write(folder, text, name="mine.json"):
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return str(path)


def test_json_and_dot_give_the_same_graph_with_tasks_after_those_that_feed_them(tmp_path):
    by_json = read_graph(write(tmp_path, {"name": "mine", "tasks": TASKS, "edges": EDGES}), rate=2e9)
    assert by_json.names == ("a", "b", "c", "d")
    assert by_json.graph.work == (0.5, 2.0, 1.0, 1.0)
    assert by_json.graph.edges == ((0, 1, 1e6), (0, 2, 0.0), (1, 3, 8.0), (2, 3, 8.0))
    by_dot = read_graph(write(tmp_path, DOT, "mine.dot"), rate=2e9)
    assert (by_dot.graph, by_dot.names) == (by_json.graph, by_json.names)


def tasks(*more):
    return {"tasks": [*TASKS, *more], "edges": EDGES}


def edges(*more):
    return {"tasks": TASKS, "edges": [*EDGES, *more]}


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (edges({"from": "d", "to": "a"}), "form a cycle: "),
        (edges({"from": "a", "to": "a"}), "form a cycle: a -> a"),
        (edges({"from": "a", "to": "x"}), "edge 'a' -> 'x': there is no task 'x'"),
        (edges({"from": "a", "to": "b"}), "edge 'a' -> 'b' is given twice"),
        (edges({"from": "a", "to": "d", "bytes": -1}), "bytes = -1: expected a number of 0 or more"),
        (tasks({"name": "a", "seconds": 1}), "task 'a' is given twice"),
        (tasks({"name": "x"}), "task 'x' has no cost; expected seconds or operations"),
        (tasks({"name": "x", "seconds": 1, "operations": 1}), "has seconds and operations"),
        (tasks({"name": "x", "seconds": -2}), "seconds = -2"),
        (tasks({"name": "x", "weight": 1}), "weight"),
        ({"tasks": []}, "no tasks"),
        ('{"tasks": [{"name": "a", "seconds": NaN}]}', "not valid JSON"),
        ([], "mine.json"),
    ],
)
def test_a_bad_graph_is_one_line(graph, message, tmp_path, refusal):
    assert message in refusal("study", "schedule", write(tmp_path, graph), "--hosts", "a:1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", "expected 'digraph', got 'graph'"),
        ("digraph { a [seconds=nan] }", "seconds = nan"),
        ("digraph { a [seconds=inf] }", "seconds = inf"),
        ("digraph { a [seconds=much] }", "seconds = 'much': expected a number"),
        ("digraph { a [seconds=1]; a [seconds=2] }", "task 'a' is given twice"),
        ("digraph { a [seconds=1]; a -> b }", "task 'b' has no cost"),
        ("digraph { node [seconds=1] a -> {b c} }", "no subgraphs), got '{'"),
        ("digraph { node [seconds=1] subgraph x { a } }", "no subgraphs), got 'subgraph'"),
        ("digraph { node [seconds=1] a -> b; b -> a }", "form a cycle: "),
        ("digraph { node [seconds=1] a -> ", "got 'the end'"),
        ("digraph { a [seconds=1", "expected '=', got"),
        ("digraph { a [seconds=1] } }", "expected the end of the file"),
        ("digraph { $ }", "cannot read '$'"),
        ("", "expected 'digraph', got 'the end'"),
    ],
)
def test_bad_dot_is_one_line(text, message, tmp_path, refusal):
    assert message in refusal("study", "schedule", write(tmp_path, text, "mine.gv"), "--hosts", "a:1")


@pytest.mark.parametrize("options", [["--overhead", "nan"], ["--rate", "0"], ["--method", "best"]])
def test_wrong_options_are_refused(options, tmp_path):
    path = write(tmp_path, {"tasks": TASKS})
    assert main(["study", "schedule", path, "--hosts", "a:1", *options]) == 2
    with pytest.raises(InputError, match=r"ending in \.json, \.dot or \.gv"):
        read_graph(write(tmp_path, "", "mine.txt"))


def test_the_time_line_ends_with_the_makespan_and_no_host_does_two_tasks_at_once():
    platform = two_classes((1.0, 1.5, 1.0), REMOTE, LOCAL)
    for seed in range(4):
        graph = random_graph(6, seed)
        for name in usable(graph, platform):
            found = METHODS[name](graph, platform)
            slots = timeline(graph, platform, found.order, found.host)
            assert [s.task for s in slots] == list(found.order)
            assert max(s.end for s in slots) == makespan(graph, platform, found.order, found.host)
            for host in range(3):
                own = sorted((s.work, s.free) for s in slots if s.host == host)
                assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(own))


@pytest.mark.row("001:F10", "001:3.11c")
def test_two_tasks_on_two_hosts_by_hand(tmp_path, output):
    # a takes 2 s on the host of speed 1, 4 s on that of 0.5; 1e6 bytes at 1e6 bytes/s take a second
    text = "digraph { a [seconds=2]; b [seconds=2]; c [seconds=1]; a -> c [bytes=1e6]; b -> c [bytes=1e6] }"
    path, out = write(tmp_path, text, "mine.dot"), tmp_path / "s.csv"
    line = ["study", "schedule", path, "--hosts", "x:1,y:1:1:0.5", "--link", "0,1e6", "--overhead", "0"]
    found = json.loads(output(*line, "--json"))
    assert found["hosts"] == ["x", "y"]
    times = {row["method"]: row["makespan"] for row in found["schedules"]}
    assert set(times) == set(METHODS)
    assert times["fastest"] == pytest.approx(5.0)  # 2 + 2 + 1 on x
    assert times["optimum"] == times["portfolio"] == pytest.approx(5.0)  # b on y: 4 + 1 + 1 is longer
    assert times["turn"] == pytest.approx(6.0)
    shown = output(*line, "--method", "turn,turn", "-o", str(out))
    assert "turn (round robin), 0 to 6 s" in shown
    assert out.read_text().splitlines()[1:] == ["turn,a,x,0.0,2.0", "turn,b,y,0.0,4.0", "turn,c,x,5.0,6.0"]
