"""Machine profiles of earlier schemas, written by hand from one of today, do what that one does."""

import json
import shutil
from pathlib import Path

import pytest
from planted_machine import flat_class, planted_machine, planted_network

from fembench.cli.main import main
from fembench.records.network import Contention, KernelTime
from fembench.records.profile import load_profile, save_profile

DATA = Path(__file__).parents[1] / "data"
RECORD = str(DATA / "record.json")
EARLIER, LATER = "2026-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"
CAME = {  # {schema of a profile: what it brought}
    3: {
        "network": ("class_names", "blocking", "trains", "kielmann", "overlap_left", "loads", "seconds"),
        "contention": ("where",),
        "kernels": ("cpu",),
    },
    4: {"network": ("exchanges", "settings"), "classes": ("both_ways", "beside")},
}


def outdate_profile(path, schema):
    tree = json.loads(path.read_text()) | {"schema": schema}
    network = tree["network"]
    for came, fields in CAME.items():
        for part, names in fields.items() if came > schema else ():
            for one in [network] if part == "network" else network[part]:
                for name in names:
                    del one[name]
    if schema < 5:
        del tree["state"]
    if schema == 1:
        del tree["network"]
    path.write_text(json.dumps(tree))


@pytest.fixture
def machine(tmp_path):
    """A profile, with something of all that older ones say less of."""
    network = planted_network(
        2,
        near=flat_class("same host", 3e-7, 5e-7, 1e-10),
        contention=(Contention(pairs=2, m=1000, factor=1.5),),
        kernels=(KernelTime(rank=0, kernel="matmul", seconds=1.0),),
    )
    path = tmp_path / "machine.json"
    save_profile(planted_machine([1, 1, 0.5, 0.5], ("a", "a", "b", "b"), network=network, noise=0.02), path)
    return path


def printed(capsys, *words):
    """The JSON that a verb prints."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("schema", [2, 3])
def test_a_profile_of_an_earlier_schema_predicts_and_places_as_one_of_today(
    tmp_path, capsys, machine, schema
):
    old = tmp_path / "old.json"
    shutil.copy(machine, old)
    outdate_profile(old, schema)
    assert load_profile(old).schema == schema

    def answers(path):
        predicted = printed(capsys, "predict", "box:3x3x3", "--machine", path, "--ranks", "1,4")
        times = [(p["predicted"]["low"], p["predicted"]["iteration"]) for p in predicted]
        return times, printed(capsys, "place", RECORD, "--machine", path)

    assert answers(str(old)) == answers(str(machine))


def test_a_profile_of_schema_1_has_speeds_and_no_network(tmp_path, capsys, refusal, machine):
    old = tmp_path / "old.json"
    shutil.copy(machine, old)
    outdate_profile(old, 1)
    shares = [
        [rank["share"] for rank in printed(capsys, "weights", str(path), "--rule", "rate")["ranks"]]
        for path in (old, machine)
    ]
    assert shares[0] == shares[1]
    words = ["--ranks", "1", "--link", "1e-6,1e9"]
    (first,), (second,) = (
        printed(capsys, "predict", "box:3x3x3", "--machine", str(path), *words) for path in (old, machine)
    )
    assert first["predicted"]["iteration"] == second["predicted"]["iteration"]
    assert "expected a profile of fembench characterize --network" in refusal(
        "place", RECORD, "--machine", str(old)
    )
