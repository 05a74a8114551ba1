"""The functions of `import fembench`: what the verbs do, from Python."""

import inspect
import json
import math
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_machine import planted_network
from planted_profile import planted_profile
from planted_records import planted
from planted_runs import run_of, study_of

import fembench
from fembench.base.errors import InputError, RunFailedError
from fembench.bench.campaign import held_against
from fembench.cli.main import main
from fembench.launch.run_job import JobEnd
from fembench.mesh.box import Box
from fembench.mesh.presets import PRESETS
from fembench.mesh.slicing import source_of_box, write_sliced
from fembench.records.profile import load_profile, save_profile
from fembench.records.store import load as load_record
from fembench.records.store import save
from fembench.records.verdict import Verdict
from fembench.records.weights import as_text, load_weights, loud_notes, shares_of
from fembench.workflows.cases import case_asked
from fembench.workflows.notebook import Runs
from fembench.workflows.tune import Tuned

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "howto" / "python.md").read_text(encoding="utf-8")
SCRIPT, WHOLE_LOOP = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("fresh")
        patch.chdir(path)
        yield path


@pytest.fixture(scope="module")
def runs(folder):
    told = []
    case = {"mesh": "m1", "ranks": [1, 2], "iterations": 20, "sets": 3, "emulate": ""}
    found = fembench.sweep(cases=[case], name="two", tell=told.append)
    told = [line for line in told if not line.startswith("note: ")]  # of this machine
    assert [line.partition(",")[0] for line in told] == ["sweep: 2 runs to come", "[1/2", "[2/2"]
    assert re.fullmatch(r"sweep: 2 runs to come, in about \d+:\d\d", told[0])
    return found


def test_a_sweep_returns_its_runs_and_goes_on_where_it_stopped(runs, folder):
    assert sorted(r.case.placement.ranks for r in runs) == [1, 2]
    assert runs.source == "results/two"
    again = fembench.sweep(cases=[{"mesh": "m1", "ranks": [1, 2], "iterations": 20, "sets": 3}], name="two")
    good = {r.created for r in runs if r.verdict.status != "INVALID"}  # others are run again
    assert good <= {r.created for r in again}
    assert {r.id for r in runs} <= {r.id for r in fembench.load("results/two")}


def test_other_cases_are_refused_in_the_folder_of_a_sweep_which_says_what_to_change(runs, folder):
    said = "differs from these cases: this folder holds another campaign; give another name or results folder"
    with pytest.raises(InputError, match=rf"^results/two/campaign\.toml {said}$"):
        fembench.sweep(cases=[{"mesh": "m1", "ranks": 2, "iterations": 10}], name="two")


def test_a_plan_is_given_to_a_function_and_nothing_runs(folder):
    plans = []
    cases = [{"mesh": "m1", "ranks": [1, 2]}]
    assert len(fembench.sweep(cases=cases, name="plan", planned=plans.append)) == 0
    assert [job.run.case.placement.ranks for job in plans[0].jobs] == [1, 2]
    assert not Path("results/plan").exists()


@pytest.mark.parametrize("dry", [True, False])
def test_a_refused_sweep_leaves_nothing_that_its_correction_meets(folder, dry):
    planned = (lambda plan: None) if dry else None
    case = {"mesh": "mm", "ranks": 1, "sets": 1, "warmups": 0}
    with pytest.raises(InputError, match=r"mesh 'mm': no such file, no preset \(.*; nearest 'm'\)"):
        fembench.sweep(cases=[case], name="mistyped", planned=planned)
    assert not Path("results/mistyped").exists()


@pytest.mark.alone
def test_shares_of_a_sweep_are_those_of_a_run(folder):
    emulated = fembench.run("s", ranks=2, iterations=10, sets=3, emulate="1,0.5", dilate=4)
    found = fembench.shares(emulated, path="w.json")
    assert 0.5 < found.ranks[0].share < 0.8
    again = fembench.run("s", ranks=2, iterations=10, sets=1, emulate="1,0.5", dilate=4, weights=found)
    cells = again[0].partition.cells
    assert cells[0] / sum(cells) == pytest.approx(found.ranks[0].share, abs=0.02)


@pytest.mark.parametrize("loud", [True, False])
def test_shares_of_disturbed_runs_say_so_to_the_caller_and_in_the_file(tmp_path, loud):
    made = replace(planted([1.0, 0.5]), verdict=Verdict("VALID", (), ()))
    facts = {"others_percent": 80.6, "others_resolution": 0.8} if loud else {}
    told = []
    fembench.shares(Runs([on_hosts_with(made, **facts)]), path=tmp_path / "w.json", tell=told.append)
    assert [line.partition(" of the")[0] for line in told] == [
        "note: DISTURBED: others used up to 80.6 %"
    ] * loud
    assert [f"note: {note}" for note in loud_notes(load_weights(tmp_path / "w.json"))] == told


def test_a_sliced_mesh_is_cut_by_its_ranks_and_a_case_has_the_storage_of_its_solver(folder):
    write_sliced(source_of_box(Box((4, 4, 8))), "bar.mesh")
    told = []
    (record,) = fembench.run("bar.mesh/", ranks=2, iterations=10, sets=1, tell=told.append)
    assert re.match(rf"run: {record.verdict.status}(, DISTURBED)? +bar\.mesh/ · sym · 2 ranks", told[-1])
    case = record.case
    assert (case.placement.partitioner, case.method.storage) == ("rcb", "sym")
    assert case_asked("m1", {"solver": "petsc"}).method.storage == "baij"


def test_values_of_a_case_may_be_those_of_numpy_ranges_and_paths(folder):
    plans = []
    case = {"mesh": Path("m1"), "ranks": range(1, 3), "sets": np.int64(3), "tolerance": np.float64(1e-3)}
    for ranks in (range(1, 3), np.array([1, 2]), (1, np.int32(2))):
        fembench.sweep(cases=[case | {"ranks": ranks}], name="plain", planned=plans.append)
        assert [job.run.case.placement.ranks for job in plans[-1].jobs] == [1, 2]
    asked = case_asked("m1", {"ranks": np.int64(2), "shares": np.array([2, 1.5])})
    assert (asked.placement.ranks, asked.placement.shares) == (2, "2,1.5")


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ([2, 1.5], {"2,1.5"}),
        (np.array([2, 1]), {"2,1"}),
        ([[2, 1], "1:1", (1, 3)], {"2,1", "1:1", "1,3"}),
        (["", "7:1"], {"", "7:1"}),
    ],
)
def test_shares_of_a_sweep_are_text_or_numbers_and_several_of_them_are_several_cases(folder, given, texts):
    plans = []
    case = {"mesh": "m1", "ranks": 2, "shares": given}
    fembench.sweep(cases=[case], name="shared", planned=plans.append)
    assert {job.run.case.placement.shares for job in plans[0].jobs} == texts


def test_shares_of_a_case_are_text_or_numbers():
    assert case_asked("m1", {"ranks": 2, "shares": [2, 1.5]}).placement.shares == "2,1.5"
    with pytest.raises(InputError, match="shares = 2: expected text"):
        case_asked("m1", {"ranks": 2, "shares": 2})


@pytest.mark.parametrize(
    ("mesh", "fields", "iterations"),
    [
        ("m", {}, 100),
        ("l", {"ranks": 4, "storage": "csr", "shares": "7:1:1:1"}, 50),
        ("m3", {}, 0),
        ("m", {"iterations": 0}, 0),
        ("m", {"tolerance": 1e-6}, 0),
        ("m", {"precond": "multigrid"}, 0),
        ("l", {"ranks": 4, "balance": "amortised"}, 0),
    ],
)
def test_large_presets_have_their_usual_work_unless_something_says_what_ends_a_solve(
    mesh, fields, iterations, monkeypatch
):
    asked = []
    monkeypatch.setattr("fembench.workflows.run.launch", lambda case, **_: asked.append(case) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fembench.run(mesh, **fields)
    assert asked[0].stop.iterations == iterations


def test_a_typed_run_of_a_large_preset_has_its_usual_work_too(monkeypatch):
    asked = []
    monkeypatch.setattr("fembench.workflows.run.launch", lambda case, **_: asked.append(case) or 1 / 0)
    for words in (["--ranks", "2"], ["--tolerance", "1e-6"]):
        with pytest.raises(ZeroDivisionError):
            main(["run", "m", *words])
    assert [case.stop.iterations for case in asked] == [100, 0]


def test_a_case_that_ran_is_asked_again_with_other_fields():
    case = case_asked("m1", {"solver": "petsc", "ranks": 2})
    again = case_asked(case, {"ranks": 4})
    assert again.placement.ranks == 4
    assert again.with_(ranks=2) == case


def test_a_verb_without_a_function_returns_what_it_prints_or_raises_what_it_says():
    assert json.loads(fembench.verb("timers", "--calls", "3", "--json"))
    with pytest.raises(RunFailedError, match=r"^fembench timers: unknown option '--rounds'"):
        fembench.verb("timers", "--rounds")


@pytest.mark.slow
@pytest.mark.alone
def test_tuning_finds_the_shares_of_unequal_ranks(folder):
    told = []
    found = fembench.tune(
        "m1", ranks=2, emulate="1,0.5", dilate=8, seconds=0.2, rounds=1, pairs=1, tell=told.append
    )
    assert found.weights.ranks[0].share > 0.55
    assert found.output.exists()
    assert all(line.startswith(("tune: ", "note: ")) for line in told)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda: fembench.run("m1", rank=2),
            InputError,
            "run: unknown field 'rank'; the nearest field is 'ranks'",
        ),
        (
            lambda: fembench.tune("m1", quickly=True),
            InputError,
            "tune: unknown field 'quickly'; expected one of",
        ),
        (lambda: fembench.run("m1", ranks=0), InputError, "ranks"),
        (
            lambda: fembench.run("m1", ranks=2, emulate=[1, 0.5]),
            InputError,
            'emulate = [1, 0.5]: expected text in quotes, as in "1,0.5"',
        ),
        (lambda: fembench.run("m1", solver="ours"), InputError, "solver = 'ours'"),
        (lambda: fembench.sweep("c.toml", cases=[{"mesh": "m1"}]), InputError, "expected one of them"),
        (lambda: fembench.sweep(cases=[{"mesh": "m1"}], name="a/b"), InputError, "name = 'a/b'"),
        (lambda: fembench.run("l", ranks=1, timeout=0.5), RunFailedError, "0.5 s"),
        (lambda: fembench.run("m1", timeout=-1), InputError, "timeout = -1: expected"),
        (lambda: fembench.run(Path("no.msh")), InputError, "cannot read mesh no.msh"),
        (lambda: fembench.sweep(cases=[3]), InputError, "sweep: cases = [3]: expected a list (each a dict)"),
        (lambda: fembench.sweep(cases=[]), InputError, "cases = []: expected a list of at least one"),
        (lambda: fembench.sweep(cases=3), InputError, "cases = 3: expected a list"),
        (lambda: fembench.sweep(""), InputError, "campaign = '': expected"),
        (lambda: fembench.sweep(name="mine"), InputError, "name and repetitions belong to cases"),
        (lambda: fembench.sweep("c.toml", repetitions=2), InputError, "name and repetitions belong to cases"),
        (lambda: fembench.sweep(cases=[{"mesh": "m1"}], repetitions=0), InputError, "repetitions"),
        (lambda: Runs([]).plot("phases"), InputError, "plot 'phases': expected at least one run"),
        (lambda: Runs([]).tables()["phasez"], InputError, "table 'phasez': expected one of "),
        (
            lambda: fembench.sweep(cases=[{}], settings={"map_byy": 1}),
            InputError,
            "settings = 'map_byy': exp",
        ),
        (lambda: Runs([]).where("VALID"), InputError, "where: condition = 'VALID': expected a function"),
        (lambda: Runs([]).speedup(2), InputError, "speedup: quantity = 2: expected text"),
        (lambda: fembench.sweep(cases=[{"mesh": "m1"}], repetitions="2"), InputError, "sweep: repetitions"),
        (lambda: fembench.sweep(cases=[{"mesh": "m1"}], minutes=math.nan), InputError, "minutes = nan"),
        (lambda: fembench.tune("m1", ranks=1), InputError, "tune: ranks = 1: expected at least 2"),
        (lambda: fembench.run("m1", ranks="2"), InputError, "ranks = '2': expected a whole number or None"),
        (lambda: fembench.tune("m1", ranks=2, rounds=0), InputError, "rounds = 0: expected"),
        (lambda: fembench.tune("m1", ranks=2, pairs=0), InputError, "pairs = 0: expected"),
        (lambda: fembench.machine(2, method="trips"), InputError, "method = 'trips': expected one of trains"),
        (lambda: fembench.machine(2, pairs="some"), InputError, "pairs = 'some': expected one of all"),
        (lambda: fembench.load(3), InputError, "load: path = 3: expected Runs or a path"),
        (lambda: fembench.load(None), InputError, "load: path = None: expected Runs or a path"),
        (lambda: fembench.load(""), InputError, "load: path = '': expected Runs or a path"),
        (lambda: fembench.shares(""), InputError, "shares: runs = '': expected Runs or a path"),
        (lambda: fembench.compare(Runs([]), ""), InputError, "compare: others = '': expected Runs or a path"),
        (lambda: fembench.predict("", "m1"), InputError, "machine = '': expected Profile or a path"),
        (lambda: fembench.predict("m.json", "m1", learn=""), InputError, "learn = '': expected a path or a"),
        (lambda: fembench.run("m1", results=""), InputError, "results = '': expected a path"),
        (lambda: fembench.run(None), InputError, "run: mesh = None: expected a preset, a box, a mesh"),
        (lambda: fembench.run(mesh=b"m1"), InputError, "run: mesh = b'm1': expected a preset, a box, "),
        (lambda: fembench.run("m1", results=1), InputError, "run: results = 1: expected a path"),
        (
            lambda: fembench.run("m1", weights=2.5),
            InputError,
            "weights = 2.5: expected Weights, Tuned, a path or None",
        ),
        (
            lambda: fembench.run("m1", weights=Runs([])),
            InputError,
            "run: weights is Runs: expected Weights, Tuned, a path or None",
        ),
        (lambda: fembench.run("m1", quick="no"), InputError, "run: quick = 'no': expected True or False"),
        (lambda: fembench.run("m1", tell="all"), InputError, "tell = 'all': expected a function or None"),
        (lambda: fembench.sweep({}), InputError, "sweep: campaign = {}: expected a path or None"),
        (lambda: fembench.sweep(cases=[{}], settings=3), InputError, "settings = 3: expected a dict or None"),
        (
            lambda: fembench.tune(2),
            InputError,
            "tune: mesh = 2: expected a preset, a box, a mesh file or a case",
        ),
        (lambda: fembench.machine(2, path=[]), InputError, "machine: path = []: expected a path"),
        (lambda: fembench.machine(True), InputError, "machine: ranks = True: expected a whole number"),
        (
            lambda: fembench.predict(None, "m1"),
            InputError,
            "predict: machine = None: expected Profile or a path",
        ),
        (lambda: fembench.predict("m.json", "m1", learn=[3]), InputError, "(each a path or Record)"),
        (lambda: fembench.predict("m.json", "m1", ranks="12"), InputError, "a whole number or a list"),
        (lambda: fembench.predict("m.json", "m1", iterations=-1), InputError, "iterations = -1: expected"),
        (lambda: fembench.predict(".", "m1"), InputError, ".: a folder; expected the file of a machine"),
        (lambda: fembench.page(7), InputError, "page: runs = 7: expected Runs or a path"),
        (lambda: fembench.shares(2), InputError, "shares: runs = 2: expected Runs or a path"),
        (lambda: fembench.shares("r"), InputError, "r: no such folder; expected a folder"),
        (lambda: fembench.doctor(hostfile=4), InputError, "doctor: hostfile = 4: expected a path"),
        (lambda: fembench.doctor("nope"), InputError, "cannot read nope: No such file or directory"),
        (lambda: fembench.verb("timers", 3), InputError, "verb: words = 3: expected text"),
        (lambda: fembench.verb(), InputError, "expected the name of a verb"),
        (lambda: fembench.machine(1), InputError, "network of 1 rank"),
        (lambda: fembench.machine(-1), InputError, "network of -1 ranks"),
        (lambda: fembench.run("m1", precond="jakobi"), InputError, ", auto, or one of an installed package"),
        (lambda: fembench.predict("m.json", "m1", method="graph"), InputError, "one of simulation, analytic"),
        (
            lambda: fembench.run("m1", ranks=2, shares="2,1", weights="w.json"),
            InputError,
            "weights = w.json and shares = 2,1: expected one of them",
        ),
        (lambda: fembench.machine(2, sizes="8,64K"), InputError, "sizes = 8,64K: expected at least three"),
        (lambda: fembench.machine(2, sizes="8,x,9"), InputError, "sizes = 8,x,9: "),
        (lambda: fembench.sweep(cases=[{"mesh": "m1"}], minutes=1e-9), InputError, "minutes = 1e-09: no"),
        (lambda: fembench.parts("m1"), InputError, "expected either shares = 2:1 or weights = FILE"),
        (
            lambda: fembench.parts("m1", shares=Tuned(Mock(), Mock(), Path("w.json"), Path("runs"))),
            InputError,
            "shares is Tuned: expected text or a list (each a number); give it as weights=",
        ),
    ],
)
def test_what_cannot_run_raises_one_line(folder, call, kind, said, capfd):
    with pytest.raises(kind) as caught:
        call()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value), "an option of the command line"
    assert capfd.readouterr() == ("", "")


def test_an_unknown_argument_is_told_by_python_and_the_functions_keep_their_signatures():
    with pytest.raises(TypeError, match="unexpected keyword argument 'paths'"):
        fembench.load(paths="x")
    assert inspect.signature(fembench.run).parameters["quick"].default is False
    assert {"ranks"} <= inspect.signature(fembench.run).parameters.keys()
    assert {"ranks"} <= inspect.signature(fembench.tune).parameters.keys()


@pytest.mark.parametrize("measured", [fembench.run, fembench.tune])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("input", InputError),
        ("unshared", fembench.errors.UnsharedError),
        ("revoked", fembench.errors.AllocationLostError),
        ("killed", RunFailedError),
    ],
)
def test_a_job_without_a_record_raises_the_same_exception_from_every_function(
    measured, kind, error, folder, monkeypatch
):
    outcome = JobEnd(None, kind, "the reason", 1, "what was printed")
    for module in ("run", "tune"):
        monkeypatch.setattr(f"fembench.workflows.{module}.launch", lambda *_, **__: outcome)
    with pytest.raises(error, match=r"^the reason$"):
        measured("m1", ranks=2, results="failed")


@pytest.mark.parametrize("measured", [partial(fembench.tune, "m1", ranks=2), partial(fembench.machine, 2)])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(measured, folder, monkeypatch):
    started = []
    for name in ("tune.launch", "characterize.measured_speeds"):
        monkeypatch.setattr(f"fembench.workflows.{name}", lambda *_, **__: started.append(True))
    (folder / "taken").mkdir(exist_ok=True)
    with pytest.raises(InputError, match=r"^cannot write taken: Is a directory$"):
        measured(path="taken")
    assert not started


def test_a_prediction_is_that_of_the_command_with_shares_by_the_speed_of_its_storage(folder, answer):
    slower = {("product", "csr"): [1.0, 0.25]}
    profile = planted_profile([1.0, 1.0], network=planted_network(), slower=slower)
    save_profile(profile, "planted.json")
    words = "predict m1 --machine planted.json --ranks 2 --storage csr --shares balanced"
    by_command = answer(*words.split())[0]["predicted"]["iteration"]
    found = fembench.predict("planted.json", "m1", ranks=[2], storage="csr", shares="balanced")
    assert found[0].predicted.iteration == by_command
    given = fembench.predict(profile, "m1", ranks=[2], storage="csr", shares="balanced")
    assert replace(given[0].predicted, created="") == replace(found[0].predicted, created="")
    for ranks in (2, np.int64(2), np.array([2]), range(2, 3)):
        alike = fembench.predict(profile, "m1", ranks=ranks, storage="csr", shares="balanced")
        assert alike[0].predicted.iteration == by_command
    (by_array,) = fembench.predict(profile, "m1", ranks=2, shares=np.array([4, 1]))
    assert by_array.predicted.case.placement.shares == "4,1"
    one, several = (fembench.predict(profile, "m1", machines=m) for m in ("fastest", ["fastest"]))
    assert one[0].predicted.iteration == several[0].predicted.iteration
    assert [*map(math.isnan, found.latest)] == [True], "without iterations, no time of a solution"
    for asked, said in (
        ({"ranks": [0]}, "ranks = 0"),
        ({"ranks": [1, 2], "shares": [2, 1]}, r"^shares = 2,1 with ranks = 1,2: expected equal or balanced"),
        ({"ranks": [9]}, r"or machines = add:NAME\*COUNT and link = SECONDS,BYTES/S \("),
        ({"machines": ["share:2"]}, r"^machines = share:N: .*; expected method = analytic$"),
        ({"method": "analytic", "solver": "petsc"}, "; method = simulation covers the others$"),
    ):
        with pytest.raises(InputError, match=said):
            fembench.predict("planted.json", "m1", **asked)


def test_a_profile_of_a_disturbed_machine_makes_its_predictions_provisional_from_python_too(folder, answer):
    one = planted_profile([1.0, 1.0], network=planted_network())
    save_profile(on_hosts_with(one, others_percent=60.0, others_resolution=0.8), "disturbed.json")
    told = []
    found = fembench.predict("disturbed.json", "m1", ranks=[1, 2], tell=told.append)
    assert repr(found).startswith("DISTURBED: others used up to 60 %")
    assert told[0] == f"note: {found[0].predicted.provisional}"
    by_command = answer("predict", "m1", "--machine", "disturbed.json", "--ranks", "1,2")
    assert [run["provisional"] for run in by_command] == [found[0].predicted.provisional] * 2


def test_a_prediction_of_a_case_is_that_of_its_fields(folder):
    profile = planted_profile([1.0, 1.0], network=planted_network())
    fields = {"storage": "csr", "precond": "jacobi"}
    case = case_asked("m1", fields | {"ranks": 2, "shares": "2,1", "iterations": 40})
    by_fields = fembench.predict(profile, "m1", ranks=[2], shares="2,1", iterations=40, **fields)
    found = fembench.predict(profile, case)
    assert found[0].predicted.case == case
    assert found[0].predicted.iteration == by_fields[0].predicted.iteration
    assert found.latest == by_fields.latest, "a case says how many iterations a solution has"
    (equal,) = fembench.predict(profile, case, ranks=[1], shares="equal", storage="sym")
    asked = equal.predicted.case
    assert (asked.placement.ranks, asked.placement.shares, asked.method.storage) == (1, "", "sym")


def test_a_sweep_takes_weights_and_a_profile_as_they_were_returned(folder):
    made = replace(planted([1.0, 0.5]), verdict=Verdict("VALID", (), ()))
    weights = fembench.shares(Runs([made]))
    profile = planted_profile([1.0, 1.0], network=planted_network())
    plans = []
    cases = [{"mesh": "m1", "ranks": [1, 2]}]
    fembench.sweep(cases=cases, name="by", weights=weights, machine=profile, planned=plans.append)
    assert [job.run.case.placement.shares for job in plans[0].jobs] == ["", as_text(weights)]
    with pytest.raises(InputError, match=r"^Weights\(shares .*\): weights of 2 ranks fit no case"):
        fembench.sweep(cases=[{"mesh": "m1"}], name="by", weights=weights, planned=plans.append)


def test_what_tune_returned_stands_for_its_weights(folder, monkeypatch):
    weights = fembench.shares(Runs([replace(planted([1.0, 0.5]), verdict=Verdict("VALID", (), ()))]))
    tuned = Tuned(weights, Mock(), Path("w.json"), Path("runs"))
    asked, plans = [], []
    monkeypatch.setattr("fembench.workflows.run.launch", lambda case, **_: asked.append(case) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fembench.run("m1", ranks=2, weights=tuned)
    fembench.sweep(cases=[{"ranks": 2}], name="tuned", weights=tuned, planned=plans.append)
    cases = [*asked, plans[0].jobs[0].run.case]
    assert [case.placement.shares for case in cases] == [as_text(weights)] * 2
    assert fembench.parts("m1", weights=tuned).partition.targets == pytest.approx(shares_of(weights))
    profile = planted_profile([1.0, 1.0], network=planted_network())
    (found,) = fembench.predict(profile, "m1", ranks=2, weights=tuned)
    assert found.predicted.case.placement.shares == as_text(weights)


def test_a_prediction_takes_the_weights_of_a_run_and_warns_of_them_alike(folder, answer):
    made = replace(planted([1.0, 0.5]), verdict=Verdict("VALID", (), ()))
    loud = on_hosts_with(made, others_percent=80.6, others_resolution=0.8)
    weights, told = fembench.shares(Runs([loud]), path="loud.json"), []
    save_profile(planted_profile([1.0, 1.0], network=planted_network()), "planted.json")
    (found,) = fembench.predict("planted.json", "m1", ranks=2, weights="loud.json", tell=told.append)
    assert told[0].startswith("fembench: warning: weights: DISTURBED: others used up to 80.6 %")
    words = "predict m1 --machine planted.json --ranks 2 --weights loud.json"
    (by_command,) = answer(*words.split())
    assert by_command["predicted"]["iteration"] == found.predicted.iteration
    for asked, said in (
        ({"ranks": 1}, r"^Weights\(.*\): weights of 2 ranks; the case has 1$"),
        ({"ranks": 2, "shares": "balanced"}, r"^weights = .* and shares = balanced: expected one of them$"),
    ):
        with pytest.raises(InputError, match=said):
            fembench.predict("planted.json", "m1", weights=weights, **asked)


def test_shares_follow_from_a_folder_as_from_its_runs(tmp_path):
    save(planted([1.0, 0.5]), tmp_path / "runs")
    assert fembench.shares(tmp_path).ranks == fembench.shares(fembench.load(tmp_path)).ranks


@pytest.mark.parametrize("loud", [True, False])
def test_a_machine_whose_measurement_was_disturbed_says_so(folder, monkeypatch, loud):
    facts = {"others_percent": 60.0, "others_resolution": 0.8} if loud else {}
    made = on_hosts_with(planted_profile([1.0, 1.0]), **facts)
    monkeypatch.setattr("fembench.workflows.characterize.measured_speeds", lambda *_: made)
    told = []
    found = fembench.machine(2, network=False, tell=told.append)
    assert [line[:38] for line in told[1:]] == ["note: DISTURBED: others used up to 60 "] * loud
    assert repr(found).endswith(", DISTURBED)") == loud


def test_a_profile_as_it_was_returned_gets_a_network(folder, monkeypatch):
    known = planted_profile([1.0, 1.0])
    monkeypatch.setattr("fembench.workflows.characterize.with_network", lambda profile, *_: profile)
    assert fembench.machine(add_to=known) == known
    fembench.machine(add_to=known, path="with.json")
    assert load_profile("with.json") == known


def test_a_reference_is_a_record_or_its_file(monkeypatch):
    record = load_record(ROOT / "tests/data/record.json")
    asked = []
    monkeypatch.setattr("fembench.workflows.run.held_against", lambda _, given: asked.append(given) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fembench.run("m1", reference=record)
    assert asked == [record]
    with pytest.raises(InputError, match=rf"^reference {record.id}: .*, 2 ranks; expected a record of one"):
        held_against(record.case, record)


def test_nothing_is_learned_from_invalid_runs(folder):
    save_profile(planted_profile([1.0, 1.0], network=planted_network()), "planted.json")
    record = load_record(ROOT / "tests/data/record.json")
    invalid = replace(record, verdict=replace(record.verdict, status="INVALID"))
    with pytest.raises(InputError, match="1 record, all INVALID"):
        fembench.predict("planted.json", "m1", ranks=[1], learn=[invalid])


def test_a_prediction_from_disturbed_runs_is_marked_as_one_from_a_disturbed_profile(tmp_path):
    profile = planted_profile([1.0, 1.0], network=planted_network())
    cases = [case_asked("m1", {"ranks": ranks}) for ranks in (1, 2)]
    quiet, other = (run_of(study_of(profile), case, id=f"p{k}")[0] for k, case in enumerate(cases))
    loud = on_hosts_with(other, others_percent=60.0, others_resolution=0.8)
    for runs, said in (
        ([quiet, other], ", corrected by 2 runs; "),
        ([quiet, loud], ", corrected by 2 runs, 1 of them DISTURBED; "),
        ([loud], ", corrected by 1 run, DISTURBED; "),
    ):
        told = []
        found = fembench.predict(profile, "m1", ranks=2, learn=Runs(runs), tell=told.append)
        why = found[0].predicted.provisional
        assert said in repr(found)
        assert ("times learned may be far off" in why) == (loud in runs)
        assert repr(found).startswith(why or "m1: 630 equations")
        assert [line for line in told if "DISTURBED" in line] == [f"note: {why}"] * (loud in runs)


def test_runs_to_learn_from_may_be_one_folder(tmp_path):
    profile = planted_profile([1.0, 1.0], network=planted_network())
    save(run_of(study_of(profile), case_asked("m1", {"ranks": 2}))[0], tmp_path / "runs")
    for given in (tmp_path, str(tmp_path), [tmp_path], fembench.load(tmp_path)):
        (found,) = fembench.predict(profile, "m1", ranks=2, learn=given)
        assert found.predicted.learned == ("planted",)


INTERRUPTED = """
import json, os, signal, threading, time
from pathlib import Path
import fembench

processes = []

def interrupt():
    while not (found := list(Path("runs").glob(".job-*/started.json"))):
        time.sleep(0.05)
    processes.extend(process for host, process in json.loads(found[0].read_bytes())["ranks"])
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    fembench.run("m1", ranks=2, iterations=10**9, results=".")
except KeyboardInterrupt:
    end = time.monotonic() + 10  # until the system has cleared the ranks away
    while time.monotonic() < end and any(Path(f"/proc/{p}").exists() for p in processes):
        time.sleep(0.05)
    print(len(processes), [p for p in processes if Path(f"/proc/{p}").exists()])
"""


def test_ctrl_c_ends_the_job_and_raises_keyboard_interrupt(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "2 []\n", done.stderr
    assert not list((tmp_path / "runs").glob(".job-*"))


def test_importing_the_package_names_the_functions_and_imports_none():
    code = "import sys, fembench; print(sorted(fembench.__all__), 'numpy' in sys.modules, *dir(fembench))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{fembench.__all__} False")
    assert done.stdout.split("False ")[1].split() == sorted([*fembench.__all__, "__version__"])
    with pytest.raises(AttributeError, match=r"no attribute 'runn'$"):
        fembench.runn  # noqa: B018
    with pytest.raises(AttributeError, match=r"`fembench report` is fembench\.page$"):
        fembench.__getattr__("report")  # before anything imports the package of this name
    errors = {getattr(fembench.errors, name) for name in fembench.errors.__all__}
    assert all(issubclass(error, fembench.errors.FembenchError) for error in errors)


def test_the_guide_names_every_preset():
    assert [name for name in PRESETS if f"`{name}`" not in GUIDE] == []


def test_the_script_of_the_guide_runs_as_it_stands(tmp_path, monkeypatch, capfd, unrendered):
    monkeypatch.chdir(tmp_path)
    script = {}
    exec(SCRIPT, script)
    assert {"assembly", "cg.loop"} <= {row[-8] for row in script["rows"]}
    rules = [rule for record in (*script["runs"], *script["run"]) for rule in record.verdict.rules]
    assert all(rule.ok for rule in rules if rule.id == "C3"), "too short for the clock"
    (compared,) = script["found"].found
    assert (compared.base.name, compared.other.name) == ("script", "other")
    told = capfd.readouterr()
    assert [line for line in told.err.splitlines() if not line.startswith("note: ")] == []
    assert told.out.splitlines()[-1] == "results/script/report/index.html"


@pytest.mark.slow
@pytest.mark.alone
def test_thirty_lines_go_from_a_check_of_the_machine_to_a_prediction(
    tmp_path, monkeypatch, capfd, unrendered
):
    """The script of the guide in a fresh folder, with 10 s of measuring, and messages too small to be
    measured after computing."""
    assert len([line for line in WHOLE_LOOP.split("\n") if line]) <= 30
    assert "subprocess" not in WHOLE_LOOP
    monkeypatch.setattr("fembench.characterize.jobs.QUICK_SECONDS", 10.0)
    monkeypatch.chdir(tmp_path)
    exec(WHOLE_LOOP.replace("quick=True", "quick=True, sizes='8,16,32'"), {})
    printed = capfd.readouterr().out
    made = {"tuned.json", "machine.json", "residuals.svg", "results/loop/report/index.html"}
    assert made - {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")} == set()
    assert printed.endswith("index.html\n")
    predicted = re.findall(r"^([12]) ([\d.e-]+) ([\d.e-]+)$", printed, re.MULTILINE)
    assert [ranks for ranks, low, high in predicted if float(low) < float(high)] == ["1", "2"]


STRICT = """disallow-any-generics disallow-subclassing-any disallow-untyped-calls disallow-untyped-defs
disallow-incomplete-defs check-untyped-defs disallow-untyped-decorators warn-unused-ignores warn-return-any
strict-equality extra-checks"""


@pytest.mark.slow
def test_a_program_that_uses_the_package_passes_strict_checks_of_types(tmp_path):
    """Those of `mypy --strict`, in a session that finds the package checked, as tests/run.sh leaves it."""
    (tmp_path / "loop.py").write_text(f"# mypy: {', '.join(STRICT.split())}\n{WHOLE_LOOP}")
    command = [sys.executable, "-m", "mypy", str(tmp_path / "loop.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("Success"), done.stdout
    assert (ROOT / "fembench" / "py.typed").exists()  # else the types of an installed package do not count


def test_what_a_notebook_echoes_is_short(runs):
    found = runs[0].verdict
    assert repr(runs[0]) == f"<Record {runs[0].id}: {found.status}>"
    assert repr(replace(found, status="VALID", reasons=(), rules=())) == "<Verdict VALID>"
    broken = next(rule for rule in found.rules if rule.id == "D1")  # three sets are too few
    assert repr(replace(found, status="PROVISIONAL", rules=(replace(broken, ok=False),))).count("D1") == 1
    assert repr(runs.tables()).startswith(f"{len(runs.tables())} tables: headline, ")
    assert repr(fembench.doctor()).startswith("| item ")


def test_a_plot_is_found_by_its_name(runs, unrendered):
    picture = runs.plot("residuals")
    assert picture._repr_svg_().startswith("<svg")
    with pytest.raises(InputError, match=r"plot 'colour': expected one of .*residuals"):
        runs.plot("colour")
    with pytest.raises(InputError, match=r"cannot save as a\.png; expected a name that ends in \.svg"):
        picture.save("a.png")
    assert not Path("a.png").exists()


def test_a_page_is_built_from_what_a_sweep_returns(runs, folder, unrendered):
    assert "<h1>" in fembench.page(runs).read_text()
    one = fembench.load(f"results/two/runs/{runs[0].id}.json")
    assert fembench.page(one) == Path("results/two/report/index.html")
    with pytest.raises(InputError, match="expected a folder of results, or runs of one"):
        fembench.page(runs[0].id)


def test_a_page_of_selected_runs_shows_these_alone(runs, folder, unrendered):
    one = runs.where(lambda r: r.case.placement.ranks == 2)
    made = fembench.page(one)
    assert "<h1>two: 1 of 2 runs</h1>" in made.read_text()
    rules = made.with_name("tables") / "rules.csv"
    assert {line.partition(",")[0] for line in rules.read_text().splitlines()[1:]} == {one[0].id}
    assert "<h1>two</h1>" in fembench.page(runs).read_text()
    with pytest.raises(InputError, match=r"^page of no runs: expected at least one$"):
        fembench.page(runs.where(lambda r: False))


def test_runs_that_were_loaded_are_loaded_already(runs):
    assert fembench.load(runs) is runs
