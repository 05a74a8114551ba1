"""Campaign files become runs: products, order, names."""

from pathlib import Path

import pytest

from fembench.base.config import convert
from fembench.base.errors import InputError
from fembench.bench.campaign import read_campaign
from fembench.bench.campaign_file import Campaign, expand, run_id
from fembench.bench.campaign_folder import Folder
from fembench.records.case import Case, new_case
from fembench.records.store import record_paths


def runs(*cases, **fields):
    return expand(convert({"name": "c", "cases": list(cases)} | fields, Campaign, where="c.toml"), "c.toml")


def test_lists_are_multiplied_out():
    found = runs({"mesh": ["m1", "m2"], "ranks": [1, 2], "storage": "csr"})
    assert {(r.case.question.mesh, r.case.placement.ranks, r.case.method.storage) for r in found} == {
        (m, n, "csr") for m in ("m1", "m2") for n in (1, 2)
    }


def test_repetitions_are_interleaved():
    found = runs({"mesh": ["m1", "m2"], "ranks": [1, 2]}, repetitions=3)
    assert [r.repetition for r in found] == [1] * 4 + [2] * 4 + [3] * 4


def test_one_rank_runs_come_first_for_the_others_are_held_against_them():
    found = runs({"mesh": ["m1", "m2", "m3"], "ranks": [4, 1, 2]})
    assert [r.case.placement.ranks == 1 for r in found] == [True] * 3 + [False] * 6


def test_the_order_is_random_but_seeded():
    many = {"mesh": ["m1", "m2", "m3"], "ranks": [2, 3, 4, 5]}
    assert [r.id for r in runs(many)] == [r.id for r in runs(many)]
    assert [r.id for r in runs(many)] != [r.id for r in runs(many, seed=1)]


def test_shares_that_fit_only_some_ranks_are_left_out_of_the_others():
    found = runs({"ranks": [1, 2, 3], "shares": ["", "7:1"]})
    placed = sorted((r.case.placement.ranks, r.case.placement.shares) for r in found)
    assert placed == [(1, ""), (2, ""), (2, "7:1"), (3, "")]


def test_different_cases_have_different_names():
    fields = ({}, {"ranks": 2}, {"overlap": False}, {"tolerance": 1e-7}, {"mesh": "box:2x2x2"})
    cases = [Case.of(**some) for some in fields]
    assert len({run_id(case, 1) for case in cases}) == len(cases)
    assert run_id(Case(), 1) != run_id(Case(), 2)
    assert run_id(Case.of(mesh="meshes/bar.mesh/"), 1).startswith("bar-mesh-")


def test_a_campaign_finds_its_runs_of_an_earlier_schema_whatever_they_were_named():
    folder = Folder(Path(__file__).parents[2] / "results" / "reference")
    _, asked = read_campaign(folder.path / "campaign.toml")
    found = [folder.record(run) for run in asked]
    assert sorted(record.id for record in found) == [path.stem for path in record_paths(folder.path)]
    assert [record.case for record in found] == [run.case for run in asked]


@pytest.mark.parametrize(
    "fields", [{}, {"overlap": False, "recurrence": "pipelined"}, {"overlap": False, "balance": "rcb"}]
)
def test_blocking_exchange_is_refused_beside_what_overlaps(fields):
    with pytest.raises(InputError, match="exchange 'blocking'"):
        new_case({"mesh": "m1", "exchange": "blocking", **fields}, "options")
