"""Files of schemas 1 and 2 are read, reported and compared with those of today."""

import json
from pathlib import Path

import msgspec
import pytest

from fembench.base.errors import InputError
from fembench.records.case import Case
from fembench.records.compare import pools
from fembench.records.contest import PEERS_SCHEMA, load_peers
from fembench.records.prediction import PREDICTION_SCHEMA, load_prediction, sealed
from fembench.records.record import SCHEMA
from fembench.records.store import load, load_all, load_failure, save
from fembench.records.upgrade import upgraded
from fembench.report.tables import terminal

ROOT = Path(__file__).parents[2]
DATA, REFERENCE = ROOT / "tests" / "data", ROOT / "results" / "reference"


def test_records_of_schema_1_are_those_of_today_by_the_names_of_today():
    for path in sorted((REFERENCE / "runs").glob("*.json")):
        old, record = json.loads(path.read_text()), load(path)
        assert (old["schema"], record.schema) == (1, SCHEMA)
        assert (old["case"].pop("problem"), old["problem"].pop("name")) == ("thesis", "thesis")
        assert record.case.question.problem == record.problem["name"] == "corner-load"
        flat = record.case.flat()
        assert {name: flat[name] for name in old["case"]} == old["case"]


def test_old_and_new_records_of_one_case_are_pooled_and_reported_together(tmp_path):
    old = load_all(REFERENCE)
    saved = save(msgspec.structs.replace(old[0], id="today"), tmp_path)
    assert json.loads(saved.read_text())["schema"] == SCHEMA
    assert len(pools([*old, load(saved)])) == len(pools(old))
    assert "corner-load" not in terminal([*old, load(saved)])  # it is the same problem in all of them


def test_a_failure_of_schema_1_is_read(tmp_path):
    case = json.loads((DATA / "record-schema-1.json").read_text())["case"]
    facts = {"kind": "crashed", "message": "m", "exit_status": 1, "output": ""}
    path = tmp_path / "x.failed.json"
    path.write_text(json.dumps({"schema": 1, "id": "x", "created": "2026", "case": case, **facts}))
    assert load_failure(path).case.placement.ranks == 2


@pytest.mark.parametrize("schema", [1, 2])
def test_a_comparison_of_peers_of_an_earlier_schema_is_read(schema):
    record = load_peers(DATA / f"peers-schema-{schema}.json")
    assert record.schema == PEERS_SCHEMA
    assert record.case.question.problem == "corner-load"


@pytest.mark.parametrize("schema", [1, 2])
def test_a_prediction_of_an_earlier_schema_is_read_and_sealed_again(schema):
    prediction = load_prediction(DATA / f"prediction-schema-{schema}.json")
    assert prediction.schema == PREDICTION_SCHEMA
    assert prediction.predicted.case == Case.of(mesh="box:3x3x3", ranks=2)
    assert prediction.predicted.problem["name"] == "corner-load"
    assert prediction == sealed(prediction.predicted)


@pytest.mark.parametrize("schema", [1, 2])
def test_a_prediction_of_an_earlier_schema_that_was_changed_is_refused(tmp_path, schema):
    text = (DATA / f"prediction-schema-{schema}.json").read_text()
    path = tmp_path / "p.json"
    path.write_text(text.replace('"ranks": 2', '"ranks": 3'))
    with pytest.raises(InputError, match="has been changed since"):
        load_prediction(path)


def test_a_group_of_schema_2_in_a_case_of_schema_1_is_refused(tmp_path):
    old = json.loads((DATA / "record-schema-1.json").read_text())
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**old, "case": {"mesh": "m1", "method": {"solver": "own"}}}))
    with pytest.raises(InputError, match="unknown key 'method of schema 2'"):
        load(path)


def test_a_record_of_schema_2_named_no_hosts():
    record = load(DATA / "record-schema-2.json")
    assert (record.case.placement.hosts, record.case.placement.per_node) == ("", 0)
    first = load(DATA / "record-schema-1.json")
    assert record.case == first.case
    whole = msgspec.structs.replace(record, verdict=first.verdict)  # the file was cut to one set: INVALID now
    assert len(pools([whole, first])) == 1


def test_the_steps_of_upgrading_name_the_fields_and_defaults_of_their_own_schema():
    old = {"schema": 2, "case": {"placement": {"ranks": 2}, "effort": {"sets": 4}}}
    tree = upgraded(old, "record", SCHEMA, "here")
    assert tree["case"]["placement"] == {"ranks": 2, "hosts": "", "per_node": 0}
    assert tree["case"]["effort"] == {"sets": 4, "precision": 0.0, "max_seconds": 20.0}
