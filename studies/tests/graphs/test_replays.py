"""What other simulators read: SMPI's replay, GOAL schedules."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from known_programs import cg_chain, cg_graph, master_slaves

from fembench.cli.main import main
from fembench.model.engine import simulate
from fembench.model.graph import save_graph
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench_studies.graphs.replays import smpi_command, write_goal, write_smpi

NET = {"latency": 50e-6, "per_byte": 8e-9, "overhead": 1e-6}


@pytest.mark.row("003:exp")
def test_smpi_gets_every_action_of_every_rank_and_a_link_for_every_pair(tmp_path):
    graph = cg_chain([0.01] * 3, 4, 2400)
    line = write_smpi(graph, even_machine(3, speeds=(1, 1, 0.5), **NET), tmp_path)
    assert "smpi/allreduce:rdb" in line
    middle = (tmp_path / "rank1.trace").read_text().splitlines()
    assert middle[0] == "1 init"
    assert middle[-1] == "1 finalize"
    words = [text.split()[1] for text in middle]
    assert [words.count(w) for w in ("irecv", "isend", "waitall", "compute", "allreduce")] == [8, 8, 4, 4, 8]
    zone = ET.parse(tmp_path / "platform.xml").getroot().find("zone")
    assert [h.get("speed") for h in zone.findall("host")] == ["1e+09f", "1e+09f", "500000000f"]
    assert len(zone.findall("link")) == 6
    link = zone.find("link")
    assert float(link.get("latency")[:-1]) == pytest.approx(50e-6)
    assert float(link.get("bandwidth")[:-3]) == pytest.approx(125e6)


@pytest.mark.row("003:exp")
def test_a_goal_schedule_has_as_many_sends_as_receives_and_no_cycle(tmp_path):
    write_goal(
        master_slaves(4, 1.2, 16, 8), even_machine(4, speeds=(1, 1, 0.5, 1), **NET), tmp_path / "a.goal"
    )
    text = (tmp_path / "a.goal").read_text()
    assert text.startswith("num_ranks 4\n")
    assert text.count(" send 16b to ") == 3
    assert text.count(" recv 16b from 0 ") == 3
    assert "calc 800000000" in text  # 0.4 s at half speed
    for after, before in re.findall(r"l(\d+) requires l(\d+)", text):
        assert int(before) < int(after)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("smpirun"), reason="SimGrid is not installed (Debian: libsimgrid-dev)")
@pytest.mark.parametrize("ranks", [2, 8, 64])
@pytest.mark.parametrize("switch", [None, 4096])
@pytest.mark.parametrize("mix", ["equal", "half slow", "graded"])
def test_smpi_replays_the_trace_in_the_time_that_was_simulated(tmp_path, ranks, mix, switch):
    speeds = {
        "equal": np.ones(ranks),
        "half slow": np.where(np.arange(ranks) % 2, 0.5, 1.0),
        "graded": np.linspace(1.0, 0.25, ranks),
    }[mix]
    neighbours = [
        sorted({(r - 1) % ranks, (r + 1) % ranks, (r + ranks // 2) % ranks} - {r}) for r in range(ranks)
    ]
    graph = cg_graph([0.04 / ranks] * ranks, neighbours, 20, 9600, inside=0.5)
    on = even_machine(ranks, speeds=speeds.tolist(), switch=switch, **NET)
    write_smpi(graph, on, tmp_path)
    done = subprocess.run(
        smpi_command(tmp_path, graph, on), capture_output=True, text=True, timeout=170, check=False
    )
    told = re.findall(r"Simulation time\s+([0-9.e+-]+)", done.stdout + done.stderr)
    assert told, done.stderr[-2000:]
    assert float(told[-1]) == pytest.approx(simulate(make_plan(graph, on)).makespan, rel=0.01)


def test_the_tool_measures_and_exports_a_graph(tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("graph.json", "one.json", "smpi", "a.goal")]
    save_graph(cg_chain([0.01] * 2, 50, 2400), paths[0])
    save_graph(cg_chain([0.02], 50, 2400), paths[1])
    files = ["--base", paths[1], "--smpi", paths[2], "--goal", paths[3]]
    assert main(["study", "graph", paths[0], "--link", "0,1e12", *files]) == 0
    text = capsys.readouterr().out
    assert "speedup 2\n" in text
    assert "replay: smpirun -np 2" in text
    assert (tmp_path / "a.goal").read_text().startswith("num_ranks 2\n")
