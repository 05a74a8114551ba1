"""Predictions, records and machine profiles of earlier releases do what those of today do.

What is not stored in its old form is written in it by hand, from a file of today.
"""

import hashlib
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from planted_machine import flat_class, planted_machine, planted_network
from planted_runs import planted_run

from fembench.cli.main import main
from fembench.fem.presets import PRESETS
from fembench.fem.problem import resolved
from fembench.model.cg import prices
from fembench.model.predictor import open_study
from fembench.model.workload import workload
from fembench.records.case import Case
from fembench.records.network import Contention, KernelTime
from fembench.records.prediction import PREDICTION_SCHEMA, load_prediction, sealed
from fembench.records.profile import load_profile, save_profile
from fembench.records.store import save

DATA = Path(__file__).parents[1] / "data"
RECORD = str(DATA / "record-schema-1.json")
EARLIER, LATER = "2026-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"
CAME = {  # {schema of a profile: what it brought}
    3: {
        "network": ("class_names", "blocking", "trains", "kielmann", "overlap_left", "loads", "seconds"),
        "contention": ("where",),
        "kernels": ("cpu",),
    },
    4: {"network": ("exchanges", "settings"), "classes": ("both_ways", "beside")},
}
SINCE_3 = {  # fields of a case
    *("hosts", "per_node", "precision", "max_seconds"),
    *(
        "widen_after",
        "interval",
        "hysteresis",
        "cooldown",
        "ageing",
        "origin",
        "net",
        "link_costs",
        "hot_spot",
    ),
}


def in_schema_1(tree):
    """A tree with a case and its problem as schema 1 had them."""
    case = {name: value for group in tree["case"].values() for name, value in group.items()}
    for name in SINCE_3:
        del case[name]
    return tree | {"case": case | {"problem": "thesis"}, "problem": tree["problem"] | {"name": "thesis"}}


def outdate_record(path):
    path.write_text(json.dumps(in_schema_1(json.loads(path.read_text())) | {"schema": 1}))


def outdate_prediction(path):
    """Schema 1, with a seal of its own, without the state of the machine; a prediction by simulation did not
    say so at first."""
    tree = json.loads(path.read_text())
    said = in_schema_1(tree["predicted"])
    del said["state"]
    if said["method"] == "simulation":
        del said["method"]
    seal = hashlib.sha256(msgspec.json.encode(said)).hexdigest()
    path.write_text(json.dumps(tree | {"schema": 1, "seal": seal, "predicted": said}))


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


@pytest.fixture(autouse=True)
def own_verdicts(monkeypatch):
    """Old records are judged by the rules of today, which a planted run does not meet."""
    monkeypatch.setattr("fembench.records.store.judge", lambda record: record.verdict)


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


def a_run(machine, case, created, folder, id="planted"):
    """The path of a record, of a run that took what the profile says."""
    study = open_study(machine)
    slots, known, _ = study.place(case.placement.ranks)
    priced = prices(workload(case), slots, study.rates)
    run, _ = planted_run(case, known, priced, created=created, id=id)
    return save(msgspec.structs.replace(run, problem=resolved(PRESETS["corner-load"])), folder)


def printed(capsys, *words):
    """The JSON that a verb prints."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_prediction_of_schema_1_is_scored_by_runs_of_both_schemas(tmp_path, capsys, machine):
    before = tmp_path / "before.json"
    shutil.copy(DATA / "prediction-schema-1.json", before)
    promised = load_prediction(before).predicted
    words = ["predict", "box:3x3x3", "--machine", str(machine), "-o", str(before), "--against"]
    case = Case.of(mesh="box:3x3x3", ranks=2)
    today, old, other = (
        a_run(machine, c, LATER, tmp_path, id)
        for c, id in ((case, "today"), (case, "old"), (case.with_(storage="csr"), "other"))
    )
    outdate_record(old)
    assert [main([*words, str(path)]) for path in (today, old, other)] == [0, 0, 2]
    assert "storage is 'csr', predicted was 'sym'" in capsys.readouterr().err
    scored = load_prediction(before)
    assert (scored.schema, scored.predicted) == (PREDICTION_SCHEMA, promised)
    first, second = scored.observed
    assert (first.record, second.record) == ("today", "old")
    assert first.error == second.error == promised.iteration / first.iteration - 1


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


def test_a_profile_of_schema_1_has_speeds_and_no_network(tmp_path, capsys, machine):
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
    assert main(["place", RECORD, "--machine", str(old)]) == 2
    assert "expected a profile of fembench characterize --network" in capsys.readouterr().err


def test_a_grid_of_old_files_has_the_score_of_the_same_files_of_today(tmp_path, capsys, machine):
    for mesh, ranks, created, folder in (
        ("box:4x4x4", 1, EARLIER, "train"),
        ("box:4x4x4", 2, EARLIER, "train"),
        ("box:5x5x5", 4, LATER, "held"),
        ("box:6x6x6", 4, LATER, "held"),
    ):
        case = Case.of(mesh=mesh, ranks=ranks)
        a_run(machine, case, created, tmp_path / folder / "runs", f"{len(mesh)}{mesh[-1]}-p{ranks}")
    grid, held = tmp_path / "grid.toml", tmp_path / "held.toml"
    grid.write_text('machine = "machine.json"\ntraining = "train"\nheld_out = "held"\npredictions = "said"\n')
    held.write_text('name = "held"\n[[cases]]\nmesh = ["box:5x5x5", "box:6x6x6"]\nranks = 4\n')
    assert main(["validate", str(grid), "--cases", str(held)]) == 0
    today = printed(capsys, "validate", str(grid))
    for path in (tmp_path / "said").glob("*.json"):
        outdate_prediction(path)
    for path in tmp_path.glob("*/runs/*.json"):
        outdate_record(path)
    outdate_profile(machine, 3)
    assert printed(capsys, "validate", str(grid)) == today
    assert main(["validate", str(grid), "--cases", str(held)]) == 0
    assert "0 predictions written" in capsys.readouterr().out  # the old ones are about these cases


def test_a_prediction_without_a_state_has_the_seal_that_it_had_before_states_were_kept():
    said = load_prediction(DATA / "prediction-schema-2.json").predicted
    tree = msgspec.to_builtins(said)
    assert not tree.pop("state")
    for name, usual in (("method", "simulation"), ("problem", {})):
        if tree[name] == usual:
            del tree[name]
    assert sealed(said).seal == hashlib.sha256(msgspec.json.encode(tree)).hexdigest()
