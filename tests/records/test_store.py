"""Records on disk: whole or absent, versioned, read back as they were."""

import json
import os

import msgspec
import numpy as np
import pytest
from planted_nodes import planted_nodes
from planted_records import FROZEN
from spoil import spoiled

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.records import store
from fembench.records.nodes import save_nodes
from fembench.records.record import SCHEMA
from fembench.report.page import read_campaign


def test_a_record_is_written_and_read_back_unchanged(tmp_path):
    record = store.load(FROZEN)
    assert (record.schema, record.mesh.n_equations, len(record.sets)) == (SCHEMA, 630, 12)
    assert store.load(store.save(record, tmp_path)) == record


def test_numbers_of_numpy_are_written_as_plain_ones_and_what_json_cannot_hold_is_refused(tmp_path):
    record = msgspec.structs.replace(store.load(FROZEN), total=(np.float64(1.5), np.float32(2.5)))
    assert store.load(store.save(record, tmp_path)).total == (1.5, 2.5)
    with pytest.raises(TypeError, match="object"):
        store.save(msgspec.structs.replace(record, total=(object(),)), tmp_path)


@pytest.mark.parametrize("id", ["../x", "a/b", "/etc/x", "..", ".hidden", "a\\b", ""])
def test_an_id_that_is_no_file_name_is_refused_for_exports_are_named_by_it(tmp_path, id):
    with pytest.raises(InputError, match=r"r\.json: id '.*': expected a file name"):
        store.load(spoiled(FROZEN.read_text(), tmp_path / "r.json", "id", id))
    with pytest.raises(ValueError, match="expected a file name"):
        msgspec.structs.replace(store.load(FROZEN), id=id)


def test_a_copy_of_a_record_is_no_second_run(tmp_path):
    record = store.load(FROZEN)
    again = msgspec.structs.replace(record, created="2026-01-01T00:00:00+00:00")
    for name, one in (("a", record), ("copy", record), ("again", again)):
        (tmp_path / f"{name}.json").write_bytes(store.save(one, tmp_path / name).read_bytes())
    assert len(store.load_all(tmp_path)) == 2
    assert len(read_campaign(tmp_path).records) == 2


@pytest.mark.parametrize("text", ["", "{", "[1]", "not json"])
def test_what_is_not_a_record_is_refused(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"r\.json"):
        store.load(path)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="No space left"):
        store.save(store.load(FROZEN), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_half_written_file_is_not_a_record(tmp_path):
    (tmp_path / ".m1-p1.json.x7k2.json").write_text('{"schema"')
    assert store.record_paths(tmp_path) == []


def test_a_pipe_among_records_is_passed_by_instead_of_waited_on(tmp_path):
    path = store.save(store.load(FROZEN), tmp_path)
    os.mkfifo(path.parent / "pipe.json")
    assert store.record_paths(tmp_path) == [path]


def test_an_empty_campaign_is_refused(tmp_path):
    with pytest.raises(InputError, match="no records found"):
        store.load_all(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        store.load_all(tmp_path / "nowhere")


def test_folders_of_records_are_named_below_one_without_and_a_file_is_no_folder(tmp_path, refusal):
    file = store.save(store.load(FROZEN), tmp_path / "single" / "runs")
    (tmp_path / "empty" / "runs").mkdir(parents=True)
    single = f"expected runs/*.json; there are records in {tmp_path / 'single'}"
    assert refusal("report", str(tmp_path)) == f"fembench: {tmp_path}: no records found; {single}\n"
    said = f"fembench: {file}: a file; expected a folder of a campaign's results\n"
    assert refusal("report", str(file)) == said


LEVEL = {"nodes": 9, "computing": [1.0], "messages": [0.0], "waiting": [0.0]}
LEVELS = {"nodes": 9, "computing": [1.0] * 2, "messages": [0.0] * 2, "waiting": [0.0] * 2}
STATE = {"host": "a", "what": "core", "ranks": 1, "n_bytes": 9, "speed": 1e31}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", 99, "schema 99 of a record; expected 3: it is newer: update fembench"),
        ("schema", 2, "schema 2 of a record; expected 3: measure again"),
        ("schema", None, "not a record; expected a file of fembench run"),
        ("solve.iteration", 1, "unknown key 'iteration' in [solve]; the nearest known key is 'iterations'"),
        ("solve.flops", [], "solve.flops of 0 ranks; expected 2, as in its case"),
        *(
            (f"solve.{name}", [1], f"solve.{name} of 1 rank; expected 2, as in its case")
            for name in ("bytes", "matrix_bytes", "bandwidth")
        ),
        ("solve.levels", [LEVEL], "solve.levels[0].computing of 1 rank; expected 2, as in its case"),
        ("solve.triads", [[1.0]] * 3, "solve.triads of 3 ranks; expected 2, as in its case"),
        ("solve.triads", [[1.0], []], "solve.triads[1] = []: expected numbers above 0"),
        ("solve.bandwidth", [1.0, 0.0], "solve.bandwidth = [1.0, 0.0]: expected numbers above 0"),
        ("partition.targets", [1.5, -0.5], "partition.targets = [1.5, -0.5]: expected numbers above 0"),
        ("partition.cells", [9, -9], "partition.cells, their sum = [0]: expected numbers above 0"),
        ("mesh.n_equations", -1, "mesh.n_equations = [-1]: expected numbers above 0"),
        ("case.placement.ranks", 3, "environment.rank_host of 2 ranks; expected 3, as in its case"),
        ("partition.shared_dofs_all", [9], "partition.shared_dofs_all of 1 rank; expected 2, as in its case"),
        ("solve.flops", [1e308, 1e308], "solve.flops = 1e+308: expected 0 to 1e+30"),
        ("solve.bytes", [1.0, -1.0], "solve.bytes = -1: expected 0 to 1e+30"),
        ("solve.triads", [[1.0], [1e31]], "solve.triads = 1e+31: expected 0 to 1e+30"),
        ("solve.iterations", -1, "solve.iterations = -1: expected 0 or more"),
        ("sets", [], "sets = []: expected at least one set"),
        ("setup", [], "setup of 0 ranks; expected 2, as in its case"),
        ("sets.1.counts.0", [1] * 18, "sets[1].counts of 18 phases; expected 19"),
        ("sets.1.counts.0", [1] * 20, "sets[1].counts of 20 phases; expected 19"),
        ("solve.matrix_bytes", [1, -1], "solve.matrix_bytes = -1: expected 0 to 1e+30"),
        ("solve.bandwidth", [1e31, 1.0], "solve.bandwidth = 1e+31: expected 0 to 1e+30"),
        ("solve.state", [STATE], "solve.state: speed = 1e+31: expected 0 to 1e+30"),
        ("total", [1.0], "total of 1 rank; expected 2, as in its case"),
        ("sets.0.total", [1.0], "sets[0].total of 1 rank; expected 2, as in its case"),
        ("environment.affinity", [[0]], "environment.affinity of 1 rank; expected 2, as in its case"),
        *(
            ("solve.levels", [LEVELS | {name: [0.0]}], f"solve.levels[0].{name} of 1 rank; expected 2")
            for name in ("messages", "waiting")
        ),
        ("events.0.1", 99, "events: phase 99; expected 0 to 18"),
        ("partition.neighbours.0", [2], "partition.neighbours: rank 2; expected 0 to 1"),
        ("partition.message_bytes.1", [], "rank 1 has 1 neighbour and 0 message sizes; expected as many"),
        ("environment.rank_host", [0, 1], "environment.rank_host: host 1; expected 0 to 0"),
        ("events.0.0", -1, "events: rank -1; expected 0 to 1"),
        ("created", "soon", "created = 'soon': expected a time such as "),
        ("created", "2026-01-02T03:04:05", "created = '2026-01-02T03:04:05': expected a time such as "),
    ],
)
@pytest.mark.parametrize("verb", ["check", "trace"])
def test_a_record_that_does_not_fit_its_ranks_is_refused(tmp_path, refusal, verb, path, value, message):
    file = spoiled(FROZEN.read_text(), tmp_path / "r.json", path, value)
    assert refusal(verb, str(file)).startswith(f"fembench: {file}: {message}")


@pytest.mark.parametrize("verb", ["check", "report", "trace"])
def test_a_record_names_the_package_of_its_methods_where_that_is_not_installed(tmp_path, refusal, verb):
    file = spoiled(FROZEN.read_text(), tmp_path / "r.json", "case.method.precond", "half")
    folder = str(tmp_path if verb == "report" else file)
    assert "preconditioner 'half': expected one of none, jacobi" in refusal(verb, folder)
    tree = json.loads(file.read_text())
    tree["environment"]["brought"] = {"preconditioner half": "fembench-hello 1.0"}
    file.write_text(json.dumps(tree))
    said = (
        "preconditioner 'half' is from fembench-hello 1.0, which is not installed: pip install fembench-hello"
    )
    assert refusal(verb, folder) == f"fembench: {file}: {said}\n"


@pytest.mark.parametrize("brought", [3, [], {"x": 1}, {"storage x": ""}, {"": ""}])
def test_whatever_a_damaged_record_says_of_packages_what_is_wrong_is_told(tmp_path, refusal, brought):
    tree = json.loads(FROZEN.read_text())
    tree["environment"]["brought"], tree["solve"]["iterations"] = brought, "x"
    (tmp_path / "r.json").write_text(json.dumps(tree))
    said = refusal("check", str(tmp_path / "r.json"))
    assert "expected" in said or "not installed" in said


@pytest.fixture
def three(tmp_path):
    """A folder of three records: two with a residual that is too large."""
    good = store.load(FROZEN)
    wrong = msgspec.structs.replace(good.verification, true_residual=1.0)
    for k, verification in enumerate((good.verification, wrong, wrong)):
        store.save(msgspec.structs.replace(good, id=f"r{k}", verification=verification), tmp_path)
    return tmp_path


def test_a_folder_is_checked_with_a_line_per_record_and_one_per_rule_that_is_not_met(three, capsys):
    assert main(["check", str(three)]) == 1
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first == "r1: INVALID (the record says PROVISIONAL)"
    others = [line for line in lines if line[0] != " "]
    assert others == ["r2: INVALID (the record says PROVISIONAL)", "r0: PROVISIONAL"]
    assert lines[0].startswith("  residual within the tolerance (A1) not met: |f - A u| / |f| = ")
    assert not [line for line in lines if "(A2)" in line]
    assert last == "3 records: 1 PROVISIONAL, 2 INVALID (every rule: --all)"


@pytest.mark.parametrize(("words", "records"), [([".", "--all"], 3), (["r0.json"], 1)])
def test_every_rule_is_printed_with_all_and_for_a_single_record(three, capsys, monkeypatch, words, records):
    monkeypatch.chdir(three)
    assert main(["check", *words]) == int(records > 1)
    assert capsys.readouterr().out.count("| symmetric operator (A2)") == records


@pytest.mark.parametrize("verb", ["check", "report", "trace"])
def test_a_measurement_of_nodes_is_no_record_of_a_run_and_says_how_it_is_shown(tmp_path, refusal, verb):
    path = tmp_path / "nodes-r1.json"
    save_nodes(planted_nodes(3), path)
    said = refusal(verb, str(path if verb == "trace" else tmp_path))
    assert said == f"fembench: {path}: a measurement of nodes; `fembench nodes {path}` shows it\n"


def test_a_folder_with_records_of_several_schemas_is_checked_but_for_those_of_other_ones(tmp_path, capsys):
    tree = json.loads(FROZEN.read_text())
    for k, schema in enumerate((SCHEMA, SCHEMA + 1, SCHEMA - 1)):
        (tmp_path / f"r{k}.json").write_text(json.dumps({**tree, "schema": schema}))
    assert main(["check", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{tree['id']}: ")
    first = f"{tmp_path / 'r1.json'}: schema {SCHEMA + 1} of a record"
    assert err.startswith(f"fembench: 2 of 3 records cannot be read; the first: {first}")
    (tmp_path / "r0.json").unlink()
    (tmp_path / "r2.json").unlink()
    assert main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"fembench: {tmp_path / 'r1.json'}: schema")
