"""The times of cases over dates, with planted changes."""

import datetime
import itertools
import json
import re
import time

import numpy as np
import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_records import lasting, wrong
from report_sample import environment, make_record
from spoil import spoiled

import fembench
from fembench.base.errors import InputError
from fembench.cli import main as entry
from fembench.records.record import SCHEMA
from fembench.records.store import glance, load, save
from fembench.records.times import times_of
from fembench.records.validity import RULES, judge
from fembench.report.history import change_points, history_conclusions, series_of
from fembench.report.measures import SOLVE, parts_of_solve
from fembench.report.table import text, to_json

pytest.importorskip("ruptures")
PLAIN = {"noise": 0.0, "events": False}


def nights(values, mesh="m1", **changes):
    """A record per day, whose times are the values."""
    base = make_record(mesh, 2, **PLAIN, **changes)
    base = replace(base, verdict=judge(base))
    for day, value in enumerate(values):
        date = datetime.date(2026, 3, 1) + datetime.timedelta(days=day)
        created = f"{date}T03:00:00+00:00"
        e = replace(base.environment, commit=f"c{day // 8}")
        yield replace(lasting(base, float(value)), id=f"{mesh}-{day:03d}", created=created, environment=e)


def steps(rng, n=24, at=16, factor=1.1, noise=0.01):
    values = np.exp(noise * rng.standard_normal(n))
    values[at:] *= factor
    return values


@pytest.fixture
def nightly(tmp_path):
    """A folder of 24 nights: one case is 10 % slower from the seventeenth on, another is not."""
    rng, folder = np.random.default_rng(2), tmp_path / "nightly"
    (folder / "runs").mkdir(parents=True)
    for record in (*nights(steps(rng)), *nights(steps(rng, factor=1.0), "m2")):
        save(record, folder / "runs")
    return folder


def test_a_change_is_found_with_its_date_its_commits_and_its_size(nightly):
    slower, steady = fembench.history(nightly).found
    (change,) = slower.changes
    assert str(slower.points[change.at].date) == "2026-03-17"
    assert change.ratio.interval.low < 1.1 < change.ratio.interval.high
    said = history_conclusions([slower, steady])
    assert said[0].startswith("m1 · csr · 2 ranks: ")
    assert said[0].endswith(" since 2026-03-17, commit c1 to c2.")
    assert said[1] == "No change shown in 1 case."


def test_runs_as_they_were_loaded_have_the_history_of_their_folder(nightly):
    runs = fembench.load(nightly)
    assert repr(fembench.history(runs)) == repr(fembench.history(nightly))
    (steady,) = fembench.history(runs.where(lambda r: r.case.question.mesh == "m2")).found
    assert len(steady.points) == 24


@pytest.mark.parametrize("values", ["steady", "one slow night", "short"])
def test_noise_a_slow_night_and_a_short_series_show_no_change(values):
    x = steps(np.random.default_rng(4), factor=1.0)
    if values == "one slow night":
        x[10] *= 1.5
    if values == "short":
        x = np.r_[x[:4], 2 * x[4:8]]
    assert change_points(x) == []


def test_steady_series_change_in_less_than_one_of_twenty_also_with_rare_large_values():
    rng = np.random.default_rng(6)
    x = 0.01 * rng.standard_normal((60, 40))
    rare = x + (rng.random(x.shape) < 0.1) * 0.06 * rng.exponential(size=x.shape)
    assert sum(bool(change_points(np.exp(row))) for row in x) <= 3
    assert sum(bool(change_points(np.exp(row))) for row in rare) <= 5


def test_each_of_several_series_needs_a_larger_change():
    x = steps(np.random.default_rng(8), n=30, at=20, factor=1.05, noise=0.015)
    assert change_points(x) != []
    assert change_points(x, tests=10_000) == []


def test_runs_of_one_day_and_commit_are_one_point_and_invalid_ones_are_none(nightly):
    first = load(sorted((nightly / "runs").glob("m1-000*"))[0])
    again = lasting(replace(first, id="again", created="2026-03-01T05:00:00+00:00"), 3.0)
    bad = wrong(replace(first, id="bad", created="2026-03-01T06:00:00+00:00"))
    for record in (again, bad):
        save(record, nightly / "runs")
    point = fembench.history(nightly).found[0].points[0]
    times = [parts_of_solve(times_of(r))[SOLVE] for r in (first, again)]
    assert (len(point.runs), point.seconds) == (2, pytest.approx(np.median(times)))


def loud(record, **changes):
    return on_hosts_with(replace(record, **changes), others_percent=40.0)


def test_disturbed_runs_count_only_in_points_without_quiet_ones_which_are_hollow_and_told(nightly):
    first, second = (load(path) for path in sorted((nightly / "runs").glob("m1-00*"))[:2])
    steady = fembench.history(nightly).found[0].points
    save(loud(lasting(first, 9.0), id="loud", created="2026-03-01T05:00:00+00:00"), nightly / "runs")
    save(loud(second), nightly / "runs")
    found = fembench.history(nightly)
    points = found.found[0].points
    assert [(p.seconds, len(p.runs), p.left) for p in points[:2]] == [
        (steady[0].seconds, 1, 1),
        (steady[1].seconds, 1, 0),
    ]
    assert [p.disturbed for p in points[:3]] == [False, True, False]
    (said,) = (line for line in found.conclusions() if line.startswith("DISTURBED"))
    assert said == (
        "DISTURBED: other work took CPU time in 2 of 49 runs: 1 left out, beside quiet ones of the same day "
        "and commit; 1 point without a quiet run (hollow in plots)."
    )
    assert [row.split("; ")[0] for row in found.summary()["remarks"]] == ["1 point DISTURBED", "PROVISIONAL"]
    assert ["Hollow" in plot.caption for plot in found.plots()] == [True, False]


def test_provisional_runs_are_told_once_and_in_the_row_of_their_case(nightly):
    found = fembench.history(nightly)
    assert "48 of 48 runs PROVISIONAL: `fembench check` says why." in found.conclusions()
    assert list(found.summary()["remarks"]) == ["PROVISIONAL"] * 2
    for path in (nightly / "runs").glob("m2-*"):
        record = load(path)
        save(replace(record, verdict=replace(record.verdict, status="VALID")), nightly / "runs")
    found = fembench.history(nightly)
    assert "24 of 48 runs PROVISIONAL: `fembench check` says why." in found.conclusions()
    assert list(found.summary()["remarks"]) == ["PROVISIONAL", None]


def test_a_change_from_quiet_to_disturbed_runs_says_so(nightly):
    for path in sorted((nightly / "runs").glob("m1-*"))[16:]:
        save(loud(load(path)), nightly / "runs")
    assert fembench.history(nightly).conclusions()[0].endswith("; also CPU time of other work.")


def test_a_change_between_disturbed_runs_says_so_as_well(nightly):
    for path in (nightly / "runs").glob("m1-*"):
        save(loud(load(path)), nightly / "runs")
    found = fembench.history(nightly)
    assert found.conclusions()[0].endswith("; also CPU time of other work.")
    assert list(found.tables()["changes"]["also"]) == ["CPU time of other work"]


def test_the_newest_point_is_shown_and_a_level_only_where_it_is_searched(nightly):
    found = fembench.history(nightly)
    (row, _), (series, _) = to_json(found.summary()), found.found
    assert row["newest_s"] == series.points[-1].seconds
    assert row["level_s"] == np.median([p.seconds for p in series.points[16:]]) != row["newest_s"]
    for path in sorted((nightly / "runs").glob("m*-0*")):
        if not path.name.startswith(("m1-000", "m1-001")):
            path.unlink()
    found = fembench.history(nightly)
    (series,) = found.found
    assert (series.levels, found.summary()["newest_s"]) == ([], [series.points[-1].seconds])
    assert "level_s" not in found.summary().names
    assert "level" not in found.plots()[0].caption


def test_a_plot_spans_the_dates_of_its_points_and_one_point_has_none(nightly):
    for path in sorted((nightly / "runs").glob("m*-0*")):
        if not path.name.startswith(("m1-000", "m1-001", "m2-000")):
            path.unlink()
    found = fembench.history(nightly)
    (plot,) = found.plots()
    needed = "2 cases with too few points (days and commits): "
    needed += "changes are searched for in 9 or more; a plot needs 2."
    assert needed in found.conclusions()
    assert plot.title.startswith("m1")
    dates = re.findall(r">(20\d\d-\d\d-\d\d)<", plot.svg)
    assert dates == ["2026-03-01", "2026-03-02"]


def test_the_dates_of_a_plot_begin_with_its_first_point_and_lines_are_explained_as_they_are(nightly):
    changed, steady = fembench.history(nightly).plots()
    for plot in (changed, steady):
        dates = [datetime.date.fromisoformat(text) for text in re.findall(r">(20\d\d-\d\d-\d\d)<", plot.svg)]
        assert dates[0] == datetime.date(2026, 3, 1)
        assert {b - a for a, b in itertools.pairwise(dates)} == {datetime.timedelta(days=3)}
    assert "which are dashed" in changed.caption
    assert steady.caption.endswith(" The line is their median: no change is shown.")


def test_other_processors_are_another_series(nightly):
    other = replace(environment(2).hosts[0], cpu_model="Other CPU")
    for record in nights([1.0], environment=environment(2, hosts=(other,))):
        save(replace(record, id="other"), nightly / "runs")
    assert [len(s.points) for s in fembench.history(nightly).found] == [24, 24, 1]


def test_emulated_runs_are_another_series_which_says_so(nightly):
    for record in nights([1.0]):
        e = replace(record.environment, synthetic="speeds 1,0.5")
        save(replace(record, id="emulated", environment=e), nightly / "runs")
    found = {"SYNTHETIC: speeds 1,0.5" in s.name: len(s.points) for s in fembench.history(nightly).found}
    assert found == {True: 1, False: 24}


def test_a_glance_reads_what_the_whole_record_says_and_judges_old_verdicts_again(nightly):
    path = next((nightly / "runs").glob("*.json"))
    record, seen = load(path), glance(path)
    assert seen.seconds == pytest.approx(parts_of_solve(times_of(record))[SOLVE], rel=1e-12)
    assert seen.status == record.verdict.status
    old = replace(record.verdict, version=RULES - 1, status="INVALID")
    save(replace(record, verdict=old), nightly / "runs")
    assert glance(path).status == record.verdict.status


def test_many_records_are_read_in_a_millisecond_each(nightly):
    paths = sorted((nightly / "runs").glob("*.json"))
    start = time.process_time()
    found = [glance(path) for path in paths * 4]
    assert time.process_time() - start < 2e-3 * len(found)  # a quarter of what reading them whole takes
    assert len(series_of(found)) == 2


def test_the_verb_writes_each_form_and_reads_folders_of_folders(nightly, output, unrendered):
    files = [str(nightly.parent / name) for name in ("a.html", "a.json", "a.md")]
    words = [word for file in files for word in ("-o", file)]
    printed = output("history", str(nightly.parent), *words)
    assert printed.startswith("m1 · csr · 2 ranks: ")
    assert "\nChanges\n" in printed
    page = (nightly.parent / "a.html").read_text()
    assert page.count("<svg") == 2
    tables = json.loads((nightly.parent / "a.json").read_text())["tables"]
    assert [row["date"] for row in tables["changes"]] == ["2026-03-17"]


def test_other_files_beside_results_folders_are_no_records(nightly, output):
    said = output("history", str(nightly.parent), "-o", str(nightly.parent / "a.json"))
    (nightly.parent / "latest").symlink_to(nightly)
    assert output("history", str(nightly.parent)) == said


def test_runs_that_do_not_count_are_told_also_if_they_are_all(nightly, output):
    paths = sorted((nightly / "runs").glob("*.json"))
    first, second = (load(path) for path in paths[:2])
    timeless = [replace(one, warmup=True) for one in second.sets]
    endless = lasting(load(paths[2]), 1e308)
    for record in (
        wrong(first),
        replace(second, sets=tuple(timeless)),
        replace(endless, verdict=first.verdict),
    ):
        save(record, nightly / "runs")
    said = "3 runs left out: INVALID, or without the times of a set."
    assert fembench.history(nightly).conclusions()[-1] == said
    for path in paths[3:]:
        path.unlink()
    assert output("history", str(nightly)).splitlines() == [said, "", ""]


def test_the_date_of_a_change_is_said_to_be_an_estimate(nightly):
    assert "it may be off by a point or so." in fembench.history(nightly).tables()["changes"].note


def test_python_gets_what_the_verb_prints_and_writes(nightly, answer):
    found = fembench.history(nightly, nightly)  # each run once
    printed = answer("history", str(nightly))
    assert (found.conclusions(), list(found.tables())) == (printed["conclusions"], list(printed["tables"]))
    assert list(found.summary()["runs"]) == [24, 24]
    shown = found.tables()["changes"]
    assert repr(found) == "\n".join([*found.conclusions(), "", text(shown)])
    assert found._repr_html_().endswith(shown._repr_html_())
    found.save(nightly.parent / "a.json")
    assert json.loads((nightly.parent / "a.json").read_text()) == printed
    assert len(found.plots()) == 2
    for ending in ("xml", "pdf"):
        with pytest.raises(InputError, match=r"unknown ending; expected one of .md, .json, .html$"):
            found.save(f"a.{ending}")


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        ((), "history: no folder; expected one or more"),
        ((3,), "history: folders = 3: expected Runs or a path"),
        (("none",), "none: expected a folder of results"),
    ],
)
def test_python_is_refused_in_one_line(folders, said):
    with pytest.raises(InputError, match=said):
        fembench.history(*folders)


def test_what_cannot_be_read_is_one_line_and_status_two(nightly, refusal):
    assert "x: expected a folder of results" in refusal("history", str(nightly), str(nightly.parent / "x"))
    (nightly.parent / "empty").mkdir()
    assert "no records found" in refusal("history", str(nightly.parent / "empty"))
    (nightly / "runs" / "half.json").write_text('{"schema": 3')
    assert "half.json: not valid JSON" in refusal("history", str(nightly))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("schema", SCHEMA + 1, f"schema {SCHEMA + 1} of a record; expected {SCHEMA}: it is newer"),
        ("environment.rank_host", [0, -1], "environment.rank_host: host -1; expected 0 to 0"),
        ("created", "soon", "created = 'soon': expected a time"),
        ("created", "0001-01-01T00:00:00+00:00", "expected a time"),  # which no plot can show
        ("case.placement.ranks", 0, "ranks = 0"),
    ],
)
def test_a_glance_refuses_what_a_reading_refuses(nightly, refusal, place, value, said):
    path = sorted((nightly / "runs").glob("*.json"))[0]
    spoiled(path.read_text(), path, place, value)
    assert said in refusal("history", str(nightly))


def test_a_missing_package_is_named_with_its_installation(nightly, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "ruptures", None)
    assert entry.main(["history", str(nightly)]) == 2
    assert "pip install ruptures" in capsys.readouterr().err
