"""Two campaigns held against each other, with planted differences."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_records import lasting, nested, wrong
from report_sample import environment, make_record

import fembench
from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.records import phases as ph
from fembench.records.store import save
from fembench.report.comparison import BOTH, SideRuns, compared, mean_ratio
from fembench.report.comparison_tables import comparison_tables, conclusions, more, range_in_words
from fembench.report.plots import bars
from fembench.report.table import text, to_json
from fembench.stats.student import ratio_unpaired
from fembench.stats.summary import Interval
from fembench.workflows.notebook import Runs

ONE_RANK = {"noise": 0.0, "events": False}


def runs(mesh="m2", ranks=1, *, n=5, factor=1.0, seed=0, phase=None, **changes):
    """Runs of a case that scatter by 1 %, longer by a factor: all of it, or one phase."""
    rng = np.random.default_rng([seed, ranks, len(mesh)])
    made = []
    for k in range(n):
        record = make_record(mesh, ranks, run=k, **{**ONE_RANK, **changes})
        record = lasting(
            record, float(np.exp(0.01 * rng.standard_normal())) * (factor if phase is None else 1)
        )
        made.append(record if phase is None else longer(record, phase, factor))
    return made


def longer(record, phase, factor):
    """The record with one phase longer, and cg with it."""
    sets = []
    for one in record.sets:
        seconds = np.array(one.seconds)
        more_of_it = (factor - 1) * seconds[:, phase]
        seconds[:, phase] += more_of_it
        if phase in ph.CG_PARTS:
            seconds[:, ph.CG] += more_of_it
        sets.append(replace(one, seconds=nested(seconds)))
    return replace(record, sets=tuple(sets))


def held(a, b):
    return compared(SideRuns("old", a), SideRuns("new", b))


def rows(found, name):
    return to_json(next(t for t in comparison_tables([found]) if t.name == name))


def test_equal_cases_show_no_difference_and_the_interval_of_their_ratio_contains_1():
    found = held(runs(), runs(seed=1))
    (row,) = rows(found, "comparison")
    assert row["verdict"] == found.verdict == "no difference shown"
    assert row["low"] < 1 < row["high"]
    assert conclusions([found])[0].startswith("No difference shown between new and old: new takes ")


def disturbed(records):
    return [on_hosts_with(record, others_percent=40.0) for record in records]


def test_nothing_follows_from_a_side_whose_runs_were_disturbed_which_is_named():
    found = held(disturbed(runs(factor=2.0)), runs(seed=1))
    said = conclusions([found])
    assert said[0].startswith(
        "DISTURBED: others used up to 40 % of the CPU time on node8 in 5 of 5 runs of old: "
    )
    assert said[1].startswith("No verdict on new and old: ")
    assert "but runs of old were DISTURBED: nothing follows about machine or version" in said[1]
    assert "new takes 50.2 % less time than old, m2 · csr, one rank, " in said[1]
    both = conclusions([held(disturbed(runs()), disturbed(runs(seed=1)))])[2]
    assert "but runs of new and old were DISTURBED: " in both
    assert both.endswith(" Make 3 quiet runs of new and old, better 5.")
    phases, differs = said[2:]
    assert phases == "`--all` prints the times of the phases, of which none has a verdict."
    assert differs == "What differs: CPU time of other work."
    (row,) = rows(found, "differences")
    assert (row["base"], row["other"]) == ("others used up to 40 % of the CPU time on node8", "none")
    (row,) = rows(found, "comparison")
    assert (row["verdict"], row["low"], row["method"]) == ("no verdict: DISTURBED", None, "csr")
    assert {row["verdict"] for row in rows(found, "compared_phases")} == {"no verdict: DISTURBED", None}


def test_disturbed_cases_and_runs_do_not_count_beside_quiet_ones():
    loud = disturbed(runs(ranks=2, factor=2.0))
    found = held([*runs(), *loud], [*runs(seed=1), *runs(ranks=2, seed=1)])
    assert [pair.verdict for pair in found.pairs] == ["no difference shown", "no verdict: DISTURBED"]
    assert (len(found.counted), found.verdict) == (1, "no difference shown")
    assert conclusions([found])[1].endswith("), geometric mean of 1 case.")
    mixed = held([*disturbed(runs(n=2, factor=2.0)), *runs(n=5)[2:]], runs(seed=1))
    assert (mixed.pairs[0].runs, mixed.verdict) == ((3, 5), "no difference shown")


def test_a_slow_phase_is_found_named_and_told_first():
    found = held(runs(), runs(seed=1, phase=ph.SPMV_INTERIOR, factor=1.1))
    (row,) = rows(found, "comparison")
    assert (row["verdict"], row["carrier"]) == ("slower", "product")
    assert row["share"] > 0.6
    said = conclusions([found])
    assert said[0].startswith("new is slower than old: ")
    assert said[0].endswith(" % is in product.")
    assert "By phase: product takes " in said[1]
    shown = {r["phase"]: r["verdict"] for r in rows(found, "compared_phases") if r["verdict"]}
    assert (shown["product"], shown["assembly"]) == ("slower", "no difference shown")


def test_phases_have_the_words_of_a_report():
    found = held(runs(), runs(seed=1, phase=ph.AXPY, factor=1.5))
    assert "By phase: vectors takes " in conclusions([found])[1]
    parts = {r["phase"] for r in rows(found, "compared_phases")}
    assert parts == {"assembly", "product", "vectors", "loop"}
    named = {label for label, *_ in (*bars.ASSEMBLY, *bars.SOLVE)}
    assert parts <= named


def test_a_case_that_is_emulated_on_one_side_is_synthetic_in_its_row_and_in_the_sentences():
    slowed = replace(environment(1), synthetic="speeds 0.5")
    real, other = runs(), runs(seed=1, factor=2.0, environment=slowed)
    found = held(real, other)
    said = conclusions([found])
    assert said[0] == "SYNTHETIC: ranks of new were slowed on purpose in 1 of 1 case."
    assert "), m2 · csr, one rank, SYNTHETIC. " in said[1]
    assert found.judged[0][0] == "m2 · csr, one rank, SYNTHETIC"
    (row,) = rows(found, "comparison")
    assert (row["method"], row["remarks"]) == ("csr · SYNTHETIC", "new: SYNTHETIC: speeds 0.5")
    of_case = [r for r in rows(found, "compared_phases") if r["base_s"]]
    assert {r["method"] for r in of_case} == {"csr · SYNTHETIC"}
    turned = held(other, real)
    assert conclusions([turned])[0] == "SYNTHETIC: ranks of old were slowed on purpose in 1 of 1 case."
    (row,) = rows(turned, "comparison")
    assert (row["method"], row["remarks"]) == ("csr · SYNTHETIC", "old: SYNTHETIC: speeds 0.5")


def test_a_slow_rank_is_told_as_computing_and_not_as_the_waiting_of_others():
    a, b = runs(ranks=4, skew=0.0), runs(ranks=4, skew=0.1, seed=1)
    assert held(a, b).carrier[0] == "product"


def test_one_run_each_has_a_ratio_but_neither_interval_nor_verdict():
    found = held(runs(n=1), runs(n=1, factor=2.0))
    (row,) = rows(found, "comparison")
    assert row["ratio"] == pytest.approx(2, rel=0.05)
    assert (row["low"], row["verdict"]) == (None, "one run each: no interval over runs")
    assert found.judged[0][1].interval is None
    assert conclusions([found])[0].startswith(
        "No verdict on new and old: new takes 2 times as much time as old"
    )
    assert conclusions([found])[0].endswith(" Make 3 runs of new and old, better 5.")
    assert held(runs(n=2), runs()).verdict == "no interval: fewer than 3 runs"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"mesh": "m3"}, "no ratio: different meshes"),
        ({"problem": "bar"}, "no ratio: different problems"),
        ({"storage": "sym"}, f"no ratio: different values of storage{BOTH}"),
        ({"ranks": 2}, "no ratio: different numbers of ranks"),
        ({"mesh": "m3", "ranks": 2, "storage": "sym"}, "no such case on the other side"),
    ],
)
def test_different_questions_have_no_ratio_and_it_says_why(other, reason):
    problem = {"problem": {"name": other.get("problem", "corner-load")}} if "problem" in other else {}
    mesh, ranks = other.get("mesh", "m2"), other.get("ranks", 1)
    fields = {k: v for k, v in other.items() if k == "storage"}
    b = [replace(r, **problem) for r in runs(mesh, ranks, n=1, **fields)]
    found = held(runs(n=1), b)
    assert not found.pairs
    assert [r["reason"] for r in rows(found, "not_compared")] == [reason] * 2
    assert conclusions([found]) == ["No case of new has a ratio to one of old: see Not compared."]


def test_a_case_is_told_against_its_nearest_relative_though_that_one_has_a_partner():
    alone = runs(n=1, storage="csr")
    found = held(
        [*alone, *runs(n=1, storage="sym")], [*runs(n=1, storage="sym"), *runs("m3", n=1, storage="sym")]
    )
    assert {(r["mesh"], r["method"], r["reason"]) for r in rows(found, "not_compared")} == {
        ("m2", "csr", f"no ratio: different values of storage{BOTH}"),
        ("m3", "sym", "no ratio: different meshes"),
    }


def test_results_without_a_ratio_name_the_command_that_makes_comparable_ones(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    save(*runs("m1", n=1), old / "runs")
    save(*runs("m2", n=1), new / "runs")
    (old / "campaign.toml").write_text("")
    typed = f"`fembench sweep {old / 'campaign.toml'} --results FOLDER`"
    assert fembench.compare(old, new).conclusions()[-1] == f"To compare, run the same campaign: {typed}."
    assert len(fembench.compare(new, old).conclusions()) == 1


def test_equal_and_weighted_runs_are_sent_to_a_report_which_says_the_gain():
    equal = runs(ranks=2, n=1)
    weighted = [replace(r, case=r.case.with_(shares="2,1")) for r in equal]
    reasons = {r["reason"] for r in rows(held(equal, weighted), "not_compared")}
    assert reasons == {"no ratio: different shares; `fembench report` of a folder with both says the gain"}


def test_the_same_question_is_paired_whatever_hosts_library_commit_or_number_of_sets():
    other = replace(environment(1), mpi="another MPI", commit="f00", versions={"numpy": "3"})
    b = runs(n=3, sets=7, environment=other)
    found = held(runs(n=3), b)
    assert len(found.pairs) == 1
    differ = {r["what"]: (r["base"], r["other"]) for r in rows(found, "differences")}
    assert differ["MPI library"][1] == "another MPI"
    assert differ["version of numpy"] == ("2.4.0", "3")
    assert "hosts" not in differ


def test_invalid_runs_never_enter_a_ratio():
    a, b = runs(), [*runs(seed=1), wrong(lasting(make_record("m2", **ONE_RANK), 9.0))]
    found = held(a, b)
    assert found.pairs[0].runs == (5, 5)
    assert "new: 1 run INVALID, left out" in rows(found, "comparison")[0]["remarks"]
    found = held(a, [wrong(r) for r in runs(seed=1)])
    assert (found.pairs, found.left[0].reason, found.left[0].where) == ((), "all runs INVALID", "new")


def test_runs_of_absurd_times_alone_are_refused_by_the_name_of_their_side():
    absurd = [wrong(lasting(r, 1e300)) for r in runs()]
    with pytest.raises(
        InputError, match=r"^new: .*: some of its times or counts are not within 0 to 1e\+15$"
    ):
        held(runs(), absurd)
    assert held(runs(), [*runs(), *absurd]).pairs[0].runs == (5, 5)


def test_runs_without_timed_sets_are_not_called_invalid():
    timed, untimed = runs(), [lasting(r, 0.0) for r in runs(seed=1)]
    found = held(timed, untimed)
    assert (found.pairs, found.left[0].reason) == ((), "no run has timed sets")
    found = held(timed, [*runs(seed=1), *untimed[:2]])
    assert "new: 2 runs without timed sets, left out" in rows(found, "comparison")[0]["remarks"]


def test_of_two_kinds_of_runs_on_one_side_the_newest_count():
    old = runs(n=3, environment=replace(environment(1), commit="0ld"), factor=3.0)
    new = [replace(r, id=f"new-{r.id}", created=r.created.replace("2026", "2027")) for r in runs(n=4)]
    found = held([*old, *new], runs(seed=1))
    assert found.pairs[0].runs == (4, 5)
    assert "old: 3 older runs left out: commit differs" in rows(found, "comparison")[0]["remarks"]


def test_a_case_is_named_by_its_newest_run_that_is_not_invalid():
    old = runs(n=1, environment=replace(environment(1), commit="0ld"))
    new = [replace(r, id=f"new-{r.id}", created=r.created.replace("2026", "2027")) for r in runs(n=3)]
    bad = wrong(replace(old[0], id="bad", created=new[0].created.replace("2027", "2028")))
    found = held([*old, *new, bad, *runs("m1")], [*runs(), *runs("m1")])
    assert [p.a.name for p in found.pairs] == ["m1 · csr, one rank", "m2 · csr, one rank"]  # of one kind


def test_the_runs_of_a_round_are_one_sample_of_the_geometric_mean():
    """Cases that scatter together know no more than one of them; independent ones know more."""
    rng = np.random.default_rng(3)
    a, b = np.exp(0.01 * rng.standard_normal((2, 8)))
    alone = ratio_unpaired(b, a).interval
    together = mean_ratio([(a, b), (2 * a, 2 * b)], 0.95).interval
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), rel=1e-9)
    c, d = np.exp(0.01 * rng.standard_normal((2, 8)))
    apart = mean_ratio([(a, b), (c, d)], 0.95).interval
    assert apart.high - apart.low < 0.9 * (alone.high - alone.low)
    assert mean_ratio([(a, 2 * a), (b, 8 * b)], 0.95).value == pytest.approx(4)


def test_intervals_widen_with_the_number_of_cases_so_that_all_hold_together():
    a, b = runs(), runs(seed=1)
    (one,) = held(a, b).pairs
    many = held([*a, *runs("m1"), *runs("m3")], [*b, *runs("m1", seed=1), *runs("m3", seed=1)])
    same = next(p for p in many.pairs if p.a.result.mesh == "m2").ratio.interval
    assert same.high / same.low > one.ratio.interval.high / one.ratio.interval.low


def test_several_cases_have_a_row_of_their_geometric_mean_and_the_slower_ones_are_named():
    a = [*runs("m1"), *runs("m2"), *runs("m3")]
    b = [*runs("m1", seed=1), *runs("m2", seed=1), *runs("m3", seed=1, factor=1.2)]
    found = held(a, b)
    *cases, mean = rows(found, "comparison")
    product = np.prod([row["ratio"] for row in cases])
    assert (mean["mesh"], mean["ratio"]) == ("3 cases", pytest.approx(product ** (1 / 3)))
    assert any(
        line.startswith("Slower in 1 of 3 cases: m3 · csr, one rank (") for line in conclusions([found])
    )


def test_of_what_is_not_judged_only_cases_are_counted_not_their_mean():
    """Of the first three runs of all cases, which make the mean, none differs from another."""
    same = runs("m1", n=1) * 3
    a = [replace(one, id=f"{k}", created=f"2026-01-0{k + 1}T00:00:00+00:00") for k, one in enumerate(same)]
    b = [*(lasting(one, 1.0) for one in runs(n=1) * 3), lasting(runs(n=1)[0], 1.01)]
    b = [replace(one, id=f"b{k}", created=f"2026-01-0{k + 1}T00:00:00+00:00") for k, one in enumerate(b)]
    other = [replace(one, id=f"{one.id}-other") for one in (*a, *b, *runs("m3", n=1))]
    found = fembench.compare(Runs([*a, *b, *runs("m3")]), Runs(other), fail_above=0.05)
    skipped = [test.name for test in found.tests if test.skipped]
    assert "geometric mean" in skipped
    assert len(skipped) == 3
    assert found.conclusions()[0].endswith("with its whole interval; 2 cases not judged.")


def test_provisional_runs_are_counted_in_a_sentence():
    a, b = runs(ranks=2), runs(ranks=2, seed=1)
    doubted = [replace(one, verdict=replace(one.verdict, status="PROVISIONAL")) for one in b]
    assert f"{len(b)} of {len(a + b)} runs PROVISIONAL: `fembench check` says why." in conclusions(
        [held(a, doubted)]
    )
    assert not any("PROVISIONAL" in line for line in conclusions([held(a, b)]))


def test_percentages_say_more_or_less_at_both_ends():
    assert (more(1.051), more(0.952)) == ("5.1 % more", "4.8 % less")
    assert (more(8.57), range_in_words(Interval(1.758, 46.07, 0.95))) == (
        "8.57 times as much",
        "1.76 to 46.1 times as much",
    )
    assert range_in_words(Interval(0.9, 2.5, 0.95)) == "10.0 % less to 2.5 times as much"
    assert range_in_words(Interval(1.03, 1.07, 0.95)) == "3.0 to 7.0 % more"
    assert range_in_words(Interval(0.93, 0.97, 0.95)) == "3.0 to 7.0 % less"
    assert range_in_words(Interval(0.98, 1.03, 0.95)) == "2.0 % less to 3.0 % more"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders of a case on two ranks: old; same; slow, by 20 %; once, a single run."""
    made = {"old": runs(ranks=2), "same": runs(ranks=2, seed=1), "slow": runs(ranks=2, seed=2, factor=1.2)}
    made["once"] = made["slow"][:1]
    for name, records in made.items():
        (tmp_path / name / "runs").mkdir(parents=True)
        for record in records:
            save(record, tmp_path / name / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_verb_fails_only_if_the_whole_interval_is_above_the_limit(folders, output, capsys):
    printed = output("compare", "old", "same", "--fail-above", "5%")
    assert printed.startswith(
        "Passed: nothing is slower by more than 5.0 % with its whole interval.\nNo difference"
    )
    assert main(["compare", "old", "slow", "--fail-above", "5%"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("FAILED above 5.0 %: m2 · csr, 2 ranks: slower by 1")
    assert "slow is slower than old: " in printed
    assert main(["compare", "old", "slow", "--fail-above", "19.9%"]) == 0, "the interval contains 19.9 %"
    assert main(["compare", "slow", "old", "--fail-above", "0%"]) == 0
    assert main(["compare", "old", "slow"]) == 0


@pytest.mark.parametrize("other", ["loud", "once"])
def test_if_nothing_can_be_judged_the_status_is_two_and_the_files_say_so(folders, capsys, other):
    for record in disturbed(runs(ranks=2, factor=9.0)):
        save(record, folders / "loud" / "runs")
    assert main(["compare", "old", other, "--fail-above", "5%", "-o", "a.xml", "-o", "a.md"]) == 2
    said = f"Not judged above 5.0 %: {other} against old: no case can be judged"
    assert capsys.readouterr().out.startswith(said)
    suite = ElementTree.parse("a.xml").getroot()
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert "\n* Not judged above 5.0 %: " in (folders / "a.md").read_text()
    assert main(["compare", "old", "same", other, "--fail-above", "5%"]) == 2, "one of them is not judged"
    assert main(["compare", "old", "slow", other, "--fail-above", "5%"]) == 1
    found = fembench.compare("old", other, fail_above=0.05)
    assert not found.judged
    assert "no case can be judged" in found.failed[0]


def test_in_place_of_a_record_a_folder_is_asked_for_as_nobody_can_repeat_one_run(folders, output):
    (path,) = (folders / "once" / "runs").glob("*.json")
    said = output("compare", "once", "old").splitlines()[0]
    assert said.endswith(" Make 3 runs of once, better 5.")
    alone = f" {path.name} is a single run: compare a folder of 3 runs instead, better 5."
    assert output("compare", str(path), "old").splitlines()[0].endswith(f"3 runs.{alone}")
    record = fembench.load(path)
    assert fembench.compare("old", record).conclusions()[0].endswith(f"3 runs.{alone}")


def test_a_selection_without_runs_is_refused(folders):
    runs_of = fembench.load("old")
    with pytest.raises(InputError, match="compare of no runs: expected at least one run"):
        fembench.compare(runs_of, runs_of.where(lambda record: False))


def test_what_cannot_be_read_is_one_line_and_status_two(folders, refusal):
    assert "expected a percentage such as 5%" in refusal("compare", "old", "slow", "--fail-above", "0.05")
    assert "unknown ending; expected one of .md, .json, .xml, .html" in refusal(
        "compare", "old", "slow", "-o", "all.pdf"
    )
    assert "none: no such file or folder" in refusal("compare", "old", "none")
    assert "expected two or more" in refusal("compare", "old")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_changes_neither_the_verdict_nor_the_files(folders, unbuffered):
    verb = f"{sys.executable} -m fembench compare old slow --fail-above 5% -o a.md | true"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    line = ["bash", "-c", f"set -o pipefail; {verb}"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert (folders / "a.md").read_text().startswith("# slow against old")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("old/runs", "unknown ending"),
        ("folder.json", "cannot write folder.json: Is a directory"),
        ("file/a.md", "cannot write file/a.md: file is not a folder"),
        ("full.html", "cannot write full.html: not a regular file"),
    ],
)
def test_a_file_that_cannot_be_written_is_one_line_and_status_two(folders, refusal, unrendered, place, said):
    (folders / "folder.json").mkdir()
    (folders / "file").touch()
    (folders / "full.html").symlink_to("/dev/full")
    assert said in refusal("compare", "old", "slow", "-o", place, "-o", "written.md")
    assert Path("written.md").exists() == ("ending" not in said)
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("ending", ["md", "json", "xml", "html"])
def test_of_a_file_that_does_not_fit_on_the_disk_nothing_stays(folders, full_disk, unrendered, ending):
    found, before = fembench.compare("old", "slow"), sorted(folders.iterdir())
    with full_disk(100), pytest.raises(InputError, match=rf"^cannot write a.{ending}: File too large$"):
        found.save(f"a.{ending}")
    assert sorted(folders.iterdir()) == before


@pytest.mark.parametrize("limit", [[], ["--fail-above", "5%"]])
def test_results_are_not_compared_with_themselves_by_another_name(folders, refusal, limit):
    (folders / "latest").symlink_to("slow")
    assert refusal("compare", "slow", "old", "latest", *limit).endswith(
        "latest: the same runs as slow; expected other ones\n"
    )
    assert "the same runs as old" in refusal("compare", "old", "./old/", *limit)
    with pytest.raises(InputError, match="the same runs as old"):
        fembench.compare("old", fembench.load("old"))


def test_invalid_cases_in_the_other_results_fail_the_check_too(folders, capsys):
    (folders / "bad" / "runs").mkdir(parents=True)
    for record in runs(ranks=2):
        save(wrong(record), folders / "bad" / "runs")
    assert main(["compare", "old", "bad", "--fail-above", "5%"]) == 1
    assert "all runs INVALID" in capsys.readouterr().out


def test_results_are_written_in_the_form_of_the_ending(folders, unrendered):
    words = ["--fail-above", "50%"]
    for name in ("a.md", "a.json", "a.xml", "a.html"):
        words += ["-o", name]
    assert main(["compare", "old", "slow", "once", *words]) == 2, "of `once`, nothing can be judged"
    assert (folders / "a.md").read_text().startswith("# slow, once against old\n\n* ")
    tables = json.loads((folders / "a.json").read_text())["tables"]
    assert [row["other"] for row in tables["comparison"]] == ["slow", "once"]
    suite = ElementTree.fromstring((folders / "a.xml").read_text())
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 3, "failures": 0, "errors": 1, "skipped": 1}
    page = (folders / "a.html").read_text()
    assert "<h1>slow, once against old</h1>" in page
    assert "tables/" not in page, "a page without other files links to none"
    assert page.count("<svg") == 2


def test_the_page_counts_only_runs_that_were_compared(folders, unrendered):
    (folders / "new" / "runs").mkdir(parents=True)
    for record in runs(ranks=2, seed=1):
        save(replace(record, id=f"new-{record.id}"), folders / "new" / "runs")
    for record in (*runs("m1", ranks=2), *disturbed([replace(runs(ranks=2)[0], id="loud")])):
        save(record, folders / "old" / "runs")
    found = fembench.compare("old", "new")
    assert len(found.records) == 10
    found.save("a.html")
    assert "<p>\n10 runs\n" in (folders / "a.html").read_text()
    assert len(fembench.compare("old", "same", "slow").records) == 15  # with runs of one name


def test_junit_reports_a_failure_with_its_reason(folders):
    found = fembench.compare("old", "slow", fail_above=0.05)
    found.save("junit.xml")
    suite = ElementTree.parse("junit.xml").getroot()
    assert suite.get("failures") == "1"
    case = suite.find("testcase")
    assert case.get("name") == "m2 · csr, 2 ranks"
    assert case.find("failure").get("message").startswith("slower by 1")


def test_junit_has_a_time_of_each_case_and_none_of_their_geometric_mean(folders):
    for name in ("old", "slow"):
        for record in runs("m1", ranks=2):
            save(record, folders / name / "runs")
    fembench.compare("old", "slow").save("junit.xml")
    cases = {case.get("name"): case.get("time") for case in ElementTree.parse("junit.xml").iter("testcase")}
    assert cases.pop("geometric mean") is None
    assert all(float(time) > 0 for time in cases.values())


def test_results_are_compared_from_python_and_shipped_ones_have_a_name(folders):
    found = fembench.compare(fembench.load("old"), "slow")
    assert [one.verdict for one in found.found] == ["slower"]
    assert found.summary()["ratio"] == pytest.approx([1.2], rel=0.03)
    assert text(found.summary()) in repr(found)
    assert fembench.compare("reference", folders / "old").found[0].base.name == "reference"
    with pytest.raises(InputError, match=r"by name, from .*results: .*reference"):
        fembench.compare("refrence", "old")


def test_the_verb_prints_json_with_the_sentences(folders, answer):
    found = answer("compare", "old", "slow", "--fail-above", "50%")
    assert found["conclusions"][0].startswith("Passed: nothing is slower by more than 50")
    assert found["conclusions"][1].startswith("slow is slower")
    assert found["tables"]["comparison"][0]["verdict"] == "slower"


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -0.01, 5.0])
def test_a_limit_is_a_fraction(folders, limit):
    with pytest.raises(InputError, match=r"fail_above = .*: expected a fraction, such as 0\.05 for 5 %"):
        fembench.compare("old", "same", fail_above=limit)


def test_results_that_may_join_the_repository_are_checked(folders, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "scripts")
    faults = importlib.import_module("check_results").faults
    found = faults(folders / "once")
    assert re.search(r"campaign\.toml: No such file or directory: others cannot repeat it$", found[0])
    assert "m2 · csr, 2 ranks: 1 run; expected 3 or more" in found
    assert "0 of 1 run VALID; expected two of three" in found
    assert faults(Path(__file__).parents[2] / "results" / "reference") == []
    (folders / "once" / "notes.txt").write_text("in /home/somebody")
    assert {"other files: notes.txt", "notes.txt: a path of a home folder"} <= set(faults(folders / "once"))


GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "compare.md"


def test_the_example_of_the_guide_runs_and_writes_its_page(folders, capsys, unrendered):
    (folders / "results").mkdir()
    (folders / "slow").rename(folders / "results" / "new")
    (folders / "old").rename(folders / "results" / "old")
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    exec(example, {})
    printed = capsys.readouterr().out
    assert printed.startswith("FAILED above 5.0 %: m2 · csr, 2 ranks: slower by 1")
    assert "new is slower than old: " in printed
    assert (folders / "comparison.html").exists()


def test_the_benchmark_finds_a_planted_phase_and_nothing_in_equal_results(
    from_benchmarks, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["compare.py", "--pairs", "2", "--records", "0"])
    assert from_benchmarks("compare").main() == 0
    assert "2 of 2" in capsys.readouterr().out


@pytest.mark.parametrize("disturbed", ["", "others used 50 %"])
def test_the_benchmark_times_both_verbs_on_many_records(from_benchmarks, monkeypatch, disturbed):
    benchmark = from_benchmarks("compare")
    for name, seconds in (("HISTORY", 60.0), ("COMPARE", 0.1), ("disturbance", lambda: lambda: disturbed)):
        monkeypatch.setattr(benchmark, name, seconds)
    found = [promise.verdict for promise in benchmark.timed(40, np.random.default_rng(1))]
    assert found == ["kept", "INVALID" if disturbed else "NOT KEPT"]
