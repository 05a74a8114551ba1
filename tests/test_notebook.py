"""`fembench.load`: the results for notebooks and scripts, held against the report's own tables."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import fembench
from fembench.base.errors import InputError
from fembench.records.store import load_all
from fembench.report import table, tables

REFERENCE = Path(__file__).parent.parent / "results" / "reference"
NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def runs():
    return fembench.load(REFERENCE)


def test_a_folder_gives_its_records_in_order_and_a_file_gives_one(runs):
    assert [r.id for r in runs] == [r.id for r in load_all(REFERENCE)]
    assert len(runs) == 30
    one = fembench.load(REFERENCE / "runs" / f"{runs[3].id}.json")
    assert [r.id for r in one] == [runs[3].id]
    assert repr(one).startswith("1 run in ")


def test_a_slice_and_a_condition_give_runs_again(runs):
    assert [r.id for r in runs[2:4]] == [runs[2].id, runs[3].id]
    on_two = runs.where(lambda record: len(record.total) == 2)
    assert {len(r.total) for r in on_two} == {2}
    assert 0 < len(on_two) < len(runs)


@pytest.mark.parametrize("name", ["overview", "summary", "phases", "speedup_cg"])
def test_tables_are_those_of_the_report(runs, name):
    of_report = {t.name: t for t in tables.every_table(load_all(REFERENCE))}[name]
    mine = runs.speedup() if name == "speedup_cg" else getattr(runs, name)()
    assert table.to_json(mine) == table.to_json(of_report)


def test_the_speedup_of_a_quantity_that_was_not_timed_is_refused_with_those_that_were(runs):
    with pytest.raises(InputError, match=r"speedup of 'cgg': expected one of .*\bcg\b"):
        runs.speedup("cgg")


def test_weights_of_each_case_add_up_to_one_and_favour_the_rank_that_needs_less_time_per_cell(runs):
    found = runs.weights()
    cases: dict[tuple, list[int]] = {}
    for k, key in enumerate(zip(found["mesh"], found["method"], found["ranks"])):
        cases.setdefault(key, []).append(k)
    assert len(cases) == 5
    for rows in cases.values():
        share, cost = found["share"][rows], found["cost_per_cell_s"][rows]
        assert share.sum() == pytest.approx(1)
        assert share == pytest.approx((1 / cost) / (1 / cost).sum(), rel=0.02)


def test_a_column_is_an_array_with_nan_where_there_is_no_value(runs):
    two = runs.where(lambda record: record.id.endswith(("-r1", "-r2")))  # of each case: they give no interval
    low = two.weights()["share_low"]
    assert low.dtype == float
    assert np.isnan(low).all()
    with pytest.raises(InputError, match=r"no column 'shares'; expected one of mesh"):
        runs.weights()["shares"]


def test_pandas_gets_the_raw_columns_and_without_it_a_line_says_how_to_get_it(runs, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = runs.phases().to_pandas()
    assert list(frame.columns) == list(runs.phases().names)
    assert len(frame) == len(runs.phases().rows)
    assert pandas.api.types.is_float_dtype(frame["median_s"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        runs.phases().to_pandas()


def test_a_notebook_shows_tables_with_their_text_escaped(runs):
    odd = table.Table("odd", "<b>", "a & b", (table.words("<i>"),), (("<script>",),))
    html = odd._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 2
    assert "30 runs" in runs._repr_html_()


def test_the_example_notebook_runs(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(NOTEBOOK.parent)
    scope: dict = {}
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    for text in code:
        exec(compile(text, str(NOTEBOOK), "exec"), scope)
    assert len(scope["runs"]) == 30
