"""Files of the HLogP modeller: what is read is what was written."""

import msgspec
import pytest
from planted_machine import planted_machine, planted_network

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.model.graph import Compute, ExecutionGraph, save_graph
from fembench.records.profile import save_profile
from fembench_studies.graphs.modeller import machine_of_model, model_of, read_model, write_model

MODEL = """4
298 caju.ic.uff.br 28 3 linux
323 siriguela.ic.uff.br 27 5 linux
426 melancia.ic.uff.br 45 6 linux
250 n01.par.inf.puc-rio.br 25 4 linux /home/local/gridriouser/helder
0      234      238      23,567
246    0        226      25,432
230    246      0        24,126
27,036 26,223 23,677 0
"""


@pytest.mark.row("001:F4a", "001:A11")
def test_the_model_of_fig_4_2_survives_its_file(tmp_path):
    first, again = tmp_path / "a", tmp_path / "b"
    first.write_text(MODEL)
    found = read_model(first)
    write_model(found, again)
    assert read_model(again) == found
    assert found.latency[0][3] == 23567  # commas are separators of thousands
    assert found.hosts[3] == (250, "n01.par.inf.puc-rio.br", 25, 4, "linux", "/home/local/gridriouser/helder")


@pytest.mark.parametrize(
    "text", ["", "x\n", "2\n1 a 1 1 linux\n0 1\n1 0\n", "1\n1 a 1 1\n0\n", "1\n1 a 1 1 os\n0 1\n"]
)
def test_another_file_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "model"
    path.write_text(text)
    with pytest.raises(InputError, match="expected") as error:
        read_model(path)
    assert "\n" not in str(error.value)


def test_a_profile_becomes_a_file_of_the_modeller_and_that_a_machine(tmp_path, capsys):
    profile = planted_machine([1.0, 0.5], ("a", "b"), network=planted_network(2))
    model = model_of(profile, 1000)
    assert [h.H for h in model.hosts] == [100, 200]
    assert [(h.send, h.receive) for h in model.hosts] == [(1.0, 1.0)] * 2
    assert model.latency == ((0.0, 58.0), (58.0, 0.0))
    write_model(model, tmp_path / "model")
    assert read_model(tmp_path / "model") == model
    machine = machine_of_model(model, 3)
    assert machine.host == (0, 1, 0)
    assert machine.speeds == (1.0, 0.5, 1.0)
    assert machine.cost(0, 1, 10**6).total == pytest.approx(60e-6)
    graph = ExecutionGraph(phases=("x",), programs=((Compute(0, 1.0),),) * 2)
    save_graph(graph, tmp_path / "graph.json")
    words = ["study", "graph", str(tmp_path / "graph.json"), "--machine", str(tmp_path / "model")]
    assert main(words) == 0
    assert capsys.readouterr().out.endswith(": 2 s\n")
    save_profile(profile, tmp_path / "machine.json")
    again = str(tmp_path / "again")
    assert main(["study", "modeller", str(tmp_path / "machine.json"), "--bytes", "1000", "-o", again]) == 0
    assert read_model(again) == model
    with pytest.raises(InputError, match="characterize --network"):
        model_of(msgspec.structs.replace(profile, network=None), 8)
