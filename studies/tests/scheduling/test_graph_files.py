"""Task graphs from files, and the verb that schedules them."""

import itertools
import json

import pytest
from zoo import LOCAL, REMOTE, random_graph, two_classes

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench_studies.scheduling.execute import makespan, timeline
from fembench_studies.scheduling.graph_files import read_graph
from fembench_studies.scheduling.methods import METHODS

TASKS = [
    {"name": "d", "seconds": 1},
    {"name": "a", "seconds": 0.5},
    {"name": "b", "seconds": 2},
    {"name": "c", "seconds": 1},
]
EDGES = [
    {"from": "a", "to": "b", "bytes": 1e6},
    {"from": "a", "to": "c"},
    {"from": "b", "to": "d", "bytes": 8},
    {"from": "c", "to": "d", "bytes": 8},
]


def write(folder, text, name="mine.json"):
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return str(path)


def test_tasks_of_a_file_come_after_those_that_feed_them(tmp_path):
    found = read_graph(write(tmp_path, {"name": "mine", "tasks": TASKS, "edges": EDGES}))
    assert found.names == ("a", "b", "c", "d")
    assert found.graph.work == (0.5, 2.0, 1.0, 1.0)
    assert found.graph.edges == ((0, 1, 1e6), (0, 2, 0.0), (1, 3, 8.0), (2, 3, 8.0))


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
        (tasks({"name": "x"}), "seconds"),
        (tasks({"name": "x", "seconds": -2}), "seconds = -2"),
        (tasks({"name": "x", "weight": 1}), "weight"),
        ({"tasks": []}, "no tasks"),
        ('{"tasks": [{"name": "a", "seconds": NaN}]}', "not valid JSON"),
        ([], "mine.json"),
    ],
)
def test_a_bad_graph_is_one_line(graph, message, tmp_path, refusal):
    assert message in refusal("study", "schedule", write(tmp_path, graph), "--hosts", "a:1")


@pytest.mark.parametrize("options", [["--overhead", "nan"], ["--method", "best"]])
def test_wrong_options_are_refused(options, tmp_path):
    path = write(tmp_path, {"tasks": TASKS})
    assert main(["study", "schedule", path, "--hosts", "a:1", *options]) == 2
    with pytest.raises(InputError, match=r"ending in \.json"):
        read_graph(write(tmp_path, "", "mine.txt"))


def test_the_time_line_ends_with_the_makespan_and_no_host_does_two_tasks_at_once():
    platform = two_classes((1.0, 1.5, 1.0), REMOTE, LOCAL)
    for seed in range(4):
        graph = random_graph(6, seed)
        for method in METHODS.values():
            found = method(graph, platform)
            slots = timeline(graph, platform, found.order, found.host)
            assert [s.task for s in slots] == list(found.order)
            assert max(s.end for s in slots) == makespan(graph, platform, found.order, found.host)
            for host in range(3):
                own = sorted((s.work, s.free) for s in slots if s.host == host)
                assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(own))


@pytest.mark.row("001:F10", "001:3.11c")
def test_two_tasks_on_two_hosts_by_hand(tmp_path, output):
    # a takes 2 s on the host of speed 1, 4 s on that of 0.5; 1e6 bytes at 1e6 bytes/s take a second
    graph = {
        "tasks": [{"name": name, "seconds": seconds} for name, seconds in (("a", 2), ("b", 2), ("c", 1))],
        "edges": [{"from": name, "to": "c", "bytes": 1e6} for name in ("a", "b")],
    }
    path, out = write(tmp_path, graph), tmp_path / "s.csv"
    line = ["study", "schedule", path, "--hosts", "x:1,y:1:1:0.5", "--link", "0,1e6", "--overhead", "0"]
    found = json.loads(output(*line, "--json"))
    assert found["hosts"] == ["x", "y"]
    times = {row["method"]: row["makespan"] for row in found["schedules"]}
    assert set(times) == set(METHODS)
    assert times["fastest"] == pytest.approx(5.0)  # 2 + 2 + 1 on x
    assert times["heft"] == pytest.approx(5.0)  # b on y: 4 + 1 + 1 is longer
    assert times["turn"] == pytest.approx(6.0)
    cells = [line.split("|") for line in output(*line).splitlines()]
    relative = {row[1].strip(): row[3].strip() for row in cells if len(row) > 5}
    assert (relative["fastest"], relative["turn"]) == ("1.000", "1.200")
    shown = output(*line, "--method", "turn,turn", "-o", str(out))
    assert ["turn", "c", "x", "5 s", "6 s"] in [
        [cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()
    ]
    assert out.read_text().splitlines()[1:] == ["turn,a,x,0.0,2.0", "turn,b,y,0.0,4.0", "turn,c,x,5.0,6.0"]
