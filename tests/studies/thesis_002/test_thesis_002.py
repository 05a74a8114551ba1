"""The study thesis-002: its printed tables, and ours from planted times."""

import pytest

from fembench.balance.policies import POLICIES
from fembench.base.files import write_atomic
from fembench.cli.main import main
from fembench.records.ledger import Ledger, Look
from fembench.studies.bsp.bsp_job import CellTimes, ProgramTimes
from fembench.studies.thesis_002 import bsp_study, bsp_tables
from fembench.studies.thesis_002.bsp_plan import (
    FULL,
    OURS,
    QUICK,
    STRATEGIES,
    cells,
    job_of,
    scenarios,
    thesis,
    thesis_seconds,
)

NAMES = {(s.table, s.name): s for s in scenarios()}


def gain(scenario, strategy, alpha=2, band=0.3):
    null = thesis_seconds(scenario, "NullLB", 0, 0)
    return 100 * (1 - thesis_seconds(scenario, strategy, alpha, band) / null)


def best(scenario, strategy):
    return max(gain(scenario, strategy, a, d) for a in (2, 4, 8) for d in (0.3, 0.2, 0.1))


@pytest.mark.parametrize(
    ("table", "name", "expected"),
    [
        *(("12", "iii", 32.0), ("12", "v", 39.5), ("12", "vii", 40.4), ("12", "viii", 38.8)),
        *(("15", "iii", 26.8), ("15", "vi", 41.0), ("15", "ix", 37.9), ("15", "xii", 42.1)),
    ],
)
def test_gains_recomputed_from_the_printed_tables(table, name, expected):
    assert best(NAMES[table, name], "MigBSPLB-B") == pytest.approx(expected, abs=0.05)


def test_the_printed_tables_are_whole():
    assert all(len(thesis(table)) == 33 for table in ("12", "13", "14", "15"))
    assert len(scenarios()) == 20
    assert all(thesis_seconds(s, "NullLB", 0, 0) > 0 for s in scenarios())


def test_a_shear_sort_is_cut_into_whole_rows():
    for scenario in scenarios():
        job = job_of(scenario, FULL, 2)
        assert job.program != "shear-sort" or job.size[0] % job.n_blocks == 0
        assert len(job.speeds) == 7
        assert max(job.speeds) == 1
    assert len(cells(FULL)) == 4 + 7 + 27
    assert len(cells(QUICK)) == 4 + 7 + 9


def test_strategies_with_messages_are_repeated_by_policies_with_messages():
    assert STRATEGIES["GreedyCommLB"] == "greedy-comm"
    assert STRATEGIES["RefineCommLB"] == "refine-comm"
    assert {*STRATEGIES.values(), *OURS} == set(POLICIES)


def planted(scenario, effort):
    """Times in which the published algorithm saves 30 %, and all others nothing."""
    job = job_of(scenario, effort, 2)
    look = Look(
        iteration=2,
        alpha=2,
        next_alpha=1,
        rank_time=(0.2,) * 6 + (0.5,),
        superstep=0.5,
        balanced=False,
        reachable=True,
        n_candidates=0,
        candidates=(),
        moves=(),
        predicted=0.5,
        remaining=9,
        look_seconds=0.001,
    )
    ledger = Ledger(looks=(look, look), owner=(0,) * 7, iterations=9, seconds=1.0)
    made = [
        CellTimes(cell=c, seconds=(0.7 if c.policy == "migbsp++" else 1.0,), ledger=ledger, agrees=True)
        for c in job.cells
    ]
    return ProgramTimes(job=job, cells=tuple(made))


def test_both_numbers_stand_side_by_side():
    found = {s: planted(s, QUICK) for s in bsp_study.chosen(QUICK)}
    row = bsp_tables.best_table(found).rows[0]
    assert row[:3] == ("12", "iii", 1)
    assert row[5] == pytest.approx(0.3)  # B here …
    assert row[6] == pytest.approx(0.320, abs=5e-4)  # … and in the thesis
    overhead = bsp_tables.overhead_table(found).rows[0]
    assert overhead[2:4] == (0.0, 0.0)
    assert overhead[5] == pytest.approx(192 / 181 - 1)


@pytest.mark.slow
def test_the_page_is_made_of_what_was_measured(tmp_path, monkeypatch, capsys, unrendered):
    import msgspec

    monkeypatch.setattr(bsp_study, "launch_program", lambda job, folder: None)
    for s in bsp_study.chosen(QUICK):
        path = tmp_path / f"table-{s.table}-{s.name}.json"
        write_atomic(path, msgspec.json.encode(planted(s, QUICK)))
    monkeypatch.setattr("fembench.launch.allocation.usable_cores", lambda: 2)
    assert main(["study", "thesis-002", "--quick", "--page", "--results", str(tmp_path)]) == 0
    assert "thesis" in capsys.readouterr().out
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "MigBSPLB-B" in page
    assert "<svg" in page


def test_nothing_measured_is_said(tmp_path, capsys):
    assert main(["study", "thesis-002", "--quick", "--page", "--results", str(tmp_path)]) == 2
    assert "nothing measured" in capsys.readouterr().err
