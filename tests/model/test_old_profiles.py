"""Machine profiles of earlier schemas, written by hand from one of today, do what that one does."""

import json
from pathlib import Path

import pytest
from planted_machine import flat_class, planted_machine, planted_network

from fembench.records.network import Contention, KernelTime
from fembench.records.profile import load_profile, save_profile

DATA = Path(__file__).parents[1] / "data"
RECORD = str(DATA / "record.json")
CAME = {  # {schema of a profile: what it brought}
    3: {
        "network": ("class_names", "blocking", "trains", "kielmann", "overlap_left", "loads", "seconds"),
        "contention": ("where",),
        "kernels": ("cpu",),
    },
    4: {"network": ("exchanges", "settings"), "classes": ("both_ways", "beside")},
}


def outdated(path, schema):
    """A file of the same profile as an earlier schema said it."""
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
    old = path.with_name("old.json")
    old.write_text(json.dumps(tree))
    return old


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


@pytest.mark.parametrize("schema", [2, 3])
def test_a_profile_of_an_earlier_schema_predicts_and_places_as_one_of_today(answer, machine, schema):
    old = outdated(machine, schema)
    assert load_profile(old).schema == schema

    def answers(path):
        predicted = answer("predict", "box:3x3x3", "--machine", path, "--ranks", "1,4")
        times = [(p["predicted"]["low"], p["predicted"]["iteration"]) for p in predicted]
        return times, answer("place", RECORD, "--machine", path)

    assert answers(str(old)) == answers(str(machine))


def test_a_profile_of_schema_1_has_speeds_and_no_network(answer, refusal, machine):
    old = str(outdated(machine, 1))

    def answers(path):
        ranks = answer("weights", path, "--rule", "rate")["ranks"]
        words = ["box:3x3x3", "--machine", path, "--ranks", "1", "--link", "1e-6,1e9"]
        (found,) = answer("predict", *words)
        return [rank["share"] for rank in ranks], found["predicted"]["iteration"]

    assert answers(old) == answers(str(machine))
    expected = "expected a profile of fembench characterize --network"
    assert expected in refusal("place", RECORD, "--machine", old)
