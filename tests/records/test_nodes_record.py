"""Measurements of nodes on disk: read back as written, refused in one line if they do not fit together."""

import pytest
from planted_nodes import Planted, planted_nodes
from spoil import spoiled

from fembench.base.config import encode
from fembench.base.errors import InputError
from fembench.records.nodes import FOLDER, load_nodes, nodes_of_campaign, save_nodes

SLOW = {1: Planted(cores=0.8)}


def test_a_record_is_read_as_it_was_written(tmp_path):
    record = planted_nodes(4, SLOW)
    save_nodes(record, tmp_path / "nodes-r1.json")
    found = load_nodes(tmp_path / "nodes-r1.json")
    assert found == record
    assert found.second is not None
    assert [path.name for path in tmp_path.iterdir()] == ["nodes-r1.json"]


def test_of_a_folder_the_newest_record_is_read(tmp_path):
    for number, day in enumerate(("2026-01-03", "2026-01-05", "2026-01-04")):
        save_nodes(planted_nodes(3, created=day), tmp_path / f"nodes-r{number}.json")
    assert load_nodes(tmp_path).first.created.startswith("2026-01-05")


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(InputError, match="no measurement of nodes"):
        load_nodes(tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("schema", 2, "schema 2 of a measurement of nodes; expected 1: it is newer"),
        ("first.nodes", [], "no nodes"),
        ("first.nodes.0.name", "n2", "a node occurs twice"),
        ("first.nodes.1.together", [1.0] * 7, "n2: 7 samples of all cores; expected 8"),
        ("first.nodes.2.memory.3", 0.0, "n3: 0.0 per second; expected a positive rate"),
        ("first.nodes.2.memory_busy.3", 1.5, "n3: busy for 1.5 of the time"),
        ("first.nodes.2.cores.1.0", -1.0, "n3: -1.0 per second"),
        ("first.nodes.2.clock.1", -5.0, "n3: clock rate -5.0"),
        ("first.nodes.2.clock", [1.0], "n3: 1 sample of clock"),
        ("first.nodes.2.cpus", [0, 1], "n3: 4 cores, 2 CPUs"),
        ("first.nodes.2.host", 9, "n3 on host 9; expected 0 to 3"),
        ("first.nodes.2.slots", 0, "n3: 0 slots"),
        ("second.nodes.0.name", "n9", "second launch: n9 with 4 ranks is not in the first"),
        ("first.nodes.0.speed", 1.0, "unknown key 'speed'"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_its_place(tmp_path, path, value, line):
    file = spoiled(encode(planted_nodes(4, SLOW)), tmp_path / "x.json", path, value)
    with pytest.raises(InputError) as refused:
        load_nodes(file)
    assert line in str(refused.value)


def test_a_profile_is_no_measurement_of_nodes(tmp_path):
    (tmp_path / "x.json").write_text('{"schema": 1, "speeds": []}')
    with pytest.raises(InputError, match="not a measurement of nodes"):
        load_nodes(tmp_path / "x.json")


def test_a_damaged_measurement_of_a_campaign_does_not_count(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "nodes-r2.json").write_text('{"schema": 1, "first"')
    assert nodes_of_campaign(tmp_path) is None
    save_nodes(planted_nodes(3), folder / "nodes-r1.json")
    assert nodes_of_campaign(tmp_path) == planted_nodes(3)
