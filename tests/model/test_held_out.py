"""What may teach a prediction, what it may be held against, and when a grid of runs is worth making."""

import json

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_machine import planted_machine
from planted_records import accounted, lasting, on_ranks, planted, wrong
from planted_runs import run_of

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.fem.problem import PRESETS, resolved
from fembench.model.grid import check_cases
from fembench.model.predictor import open_study
from fembench.records import prediction
from fembench.records.case import Case
from fembench.records.phases import NAMES
from fembench.records.prediction import load_prediction
from fembench.records.profile import save_profile
from fembench.records.store import load, save

EARLIER, LATER = "2026-01-01T00:00:00+00:00", "2199-01-01T00:00:00+00:00"
WRONG = wrong(planted([1.0])).verification


def made_run(machine_file, case, created, id="planted"):
    """A run that took what the profile says, and computed the problem that it names."""
    run, _ = run_of(open_study(machine_file), case, created=created, id=id)
    return msgspec.structs.replace(run, problem=resolved(PRESETS[case.question.problem]))


def runs_of(machine_file, meshes, ranks, created, folder):
    for mesh in meshes:
        for p in ranks:
            run = made_run(machine_file, Case.of(mesh=mesh, ranks=p), created, f"{mesh}-p{p}")
            save(run, folder / "runs")


def invalid_run(machine_file, mesh, ranks, folder):
    """A run that took ten times as long, and is INVALID."""
    run = made_run(machine_file, Case.of(mesh=mesh, ranks=ranks), LATER, f"bad-{mesh}-p{ranks}")
    save(wrong(accounted(lasting(run, 10))), folder / "runs")


@pytest.fixture
def held_against(tmp_path, machine_file):
    """A prediction of m1 on 2 ranks, and a function: the words that hold a changed run against it."""
    before = tmp_path / "before.json"
    words = ["predict", "m1", "--machine", machine_file, "-o", str(before)]
    assert main([*words, "--ranks", "2"]) == 0
    run = made_run(machine_file, Case.of(mesh="m1", ranks=2), LATER)

    def against(**changes):
        case = run.case.with_(**changes.pop("case", {}))
        cut = on_ranks(run, case.placement.ranks)
        return [*words, "--against", str(save(msgspec.structs.replace(cut, case=case, **changes), tmp_path))]

    return against


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"case": {"storage": "csr"}}, "storage is 'csr', predicted was 'sym'"),
        ({"case": {"shares": "3:1"}}, "shares is '0.75:0.25', predicted was '0.5:0.5'"),
        ({"case": {"seed": 1}}, "seed is '1', predicted was '0'"),
        ({"case": {"emulate": "1,0.5"}}, "emulate is '1,0.5', predicted was ''"),
        ({"case": {"balance": "amortised"}}, "balance is 'amortised', predicted was ''"),
        ({"case": {"ranks": 1}}, "ranks is '1', predicted was '2'"),
        ({"created": EARLIER}, "expected a run made after the prediction"),
        (
            {"total": (40e9, 40e9), "setup": ((40e9, *(0.0,) * (len(NAMES) - 1)),) * 2},
            "expected a run made after the prediction",  # it began 1268 years before
        ),
        ({"problem": {"name": "corner-load", "material": {"E": 1.0}}}, "has changed since the prediction"),
        ({"verification": WRONG}, "any number of ranks (A5) not met"),
    ],
)
def test_a_run_of_another_case_older_or_invalid_is_not_held_against_the_prediction(
    refusal, held_against, change, message
):
    words = held_against(**change)
    assert message in refusal(*words)
    assert load_prediction(words[words.index("-o") + 1]).observed == ()


def test_what_does_not_decide_the_time_of_an_iteration_may_differ(output, held_against):
    free = {"shares": "2:2", "tolerance": 1e-9, "iterations": 40, "sets": 9, "label": "x", "clock": "tsc"}
    words = held_against(case={"mesh": "./m1.msh", **free})
    assert output(*words)
    assert len(load_prediction(words[words.index("-o") + 1]).observed) == 1


@pytest.mark.parametrize(("longer", "where"), [(1, "inside"), (10, "OUTSIDE")])
def test_a_run_held_against_its_prediction_is_said_to_be_inside_its_interval_or_not(
    output, held_against, machine_file, longer, where
):
    run = accounted(lasting(made_run(machine_file, Case.of(mesh="m1", ranks=2), LATER), longer))
    text = output(*held_against(sets=run.sets))
    assert f"\nthe run is {where} the predicted interval, " in text


@pytest.mark.parametrize("taken", [0.0, 30.0])
def test_disturbances_of_profile_and_run_are_said_where_a_run_is_held_against_its_prediction(
    tmp_path, output, taken
):
    file, before = str(tmp_path / "machine.json"), str(tmp_path / "before.json")
    facts = {"others_percent": taken, "others_resolution": 0.1, "steal_percent": 0.0}
    save_profile(on_hosts_with(planted_machine([1.0, 1.0]), **facts), file)
    words = ["predict", "m1", "--machine", file, "-o", before]
    assert main([*words, "--ranks", "2"]) == 0
    run = on_hosts_with(made_run(file, Case.of(mesh="m1", ranks=2), LATER), **facts)
    text = output(*words, "--against", str(save(run, tmp_path)))
    for said in (
        "\nprediction: DISTURBED: others used up to 30 % of the CPU time on node8: speeds may be far off",
        "\nrun: DISTURBED: others used up to 30 % of the CPU time on ",
    ):
        assert (said in text) == bool(taken)


def test_a_run_in_the_second_of_its_prediction_counts_as_later():
    later = prediction.is_later
    assert later("2026-01-01T00:00:09.200+00:00", "2026-01-01T00:00:10+00:00")  # known to the second
    assert not later("2026-01-01T00:00:09+00:00", "2026-01-01T00:00:10+00:00")
    assert later("2026-01-01T01:00:00+00:00", "2026-01-01T01:30:00+01:00")  # other zones


def test_invalid_runs_teach_no_prediction(tmp_path, capsys, machine_file):
    runs_of(machine_file, ["m1"], [1, 2], EARLIER, tmp_path / "train")
    words = ["predict", "m2", "--machine", machine_file, "--learn", str(tmp_path / "train"), "--json"]
    assert main(words) == 0
    told = capsys.readouterr()
    said = json.loads(told.out)[0]["predicted"]
    assert "INVALID" not in told.err
    invalid_run(machine_file, "m1", 4, tmp_path / "train")
    assert main(words) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)[0]["predicted"]["iteration"] == said["iteration"]
    assert "1 of 3 records are INVALID and were left out" in told.err


def test_a_deadline_is_not_judged_by_runs_of_another_mesh(tmp_path, capsys, machine_file):
    runs_of(machine_file, ["m1"], [1, 2], EARLIER, tmp_path / "train")
    words = ["predict", "m2", "--machine", machine_file, "--learn", str(tmp_path / "train")]
    said = "fembench: --deadline needs --iterations, or --learn with a run of this mesh that converged\n"
    assert main([*words, "--deadline", "9"]) == 2
    assert capsys.readouterr().err.endswith(said)


def test_invalid_runs_neither_teach_nor_judge_in_a_grid(tmp_path, capsys, machine_file, grid_file):
    runs_of(machine_file, ["m1"], [1, 2], EARLIER, tmp_path / "train")
    invalid_run(machine_file, "m1", 1, tmp_path / "train")
    assert main(["validate", grid_file, "--cases", str(tmp_path / "held.toml")]) == 0
    assert "training: 1 of 3 records are INVALID and were left out" in capsys.readouterr().err
    runs_of(machine_file, ["m2", "m3"], [4], LATER, tmp_path / "held")
    invalid_run(machine_file, "m2", 4, tmp_path / "held")
    assert main(["validate", grid_file, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["fembench"]["p90"] < 0.05
    assert "held_out: 1 of 3 records are INVALID and were left out" in told.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "m2", "--machine", "MACHINE", "--learn", "."], "1 record, all INVALID"),
        (["place", "RUN", "--machine", "MACHINE"], "INVALID"),
        (["simulate", "graph.json", "--against", "RUN"], "INVALID"),
    ],
)
def test_an_invalid_run_alone_teaches_nothing_is_not_placed_and_judges_no_graph(
    tmp_path, refusal, machine_file, monkeypatch, words, said
):
    monkeypatch.chdir(tmp_path)
    invalid_run(machine_file, "m1", 2, tmp_path)
    names = {"MACHINE": machine_file, "RUN": "runs/bad-m1-p2.json"}
    assert main(["trace", names["RUN"], "-o", "graph.json"]) == 0
    assert said in refusal(*(names.get(word, word) for word in words))


def test_runs_of_another_case_are_not_judged_by_a_prediction(tmp_path, capsys, machine_file, grid_file):
    runs_of(machine_file, ["m1"], [1, 2], EARLIER, tmp_path / "train")
    assert main(["validate", grid_file, "--cases", str(tmp_path / "held.toml")]) == 0
    runs_of(machine_file, ["m2", "m3"], [4], LATER, tmp_path / "held")
    run = load(tmp_path / "held" / "runs" / "m2-p4.json")
    moved = {"case": run.case.with_(balance="greedy")}
    remeshed = {"mesh": msgspec.structs.replace(run.mesh, hash="0" * 64)}
    for k, change in enumerate([moved, remeshed]):
        save(msgspec.structs.replace(run, id=f"other-{k}", **change), tmp_path / "held" / "runs")
    capsys.readouterr()
    assert main(["validate", grid_file, "--json"]) == 0
    told = capsys.readouterr()
    assert len(json.loads(told.out)["cells"]) == 4  # two configurations by two methods
    assert "2 of 4 held-out runs left out: not predicted before they began" in told.err


@pytest.mark.parametrize(
    ("meshes", "ranks", "message"),
    [
        ('["m2", "m3"]', "4", "2 of 6 cells held out; expected at least 40 %"),
        ('["m1", "m2", "m3"]', "4", "meshes m1"),
        ('["m2", "m3"]', "[2, 4]", "ranks [2]"),
    ],
)
def test_a_grid_that_would_be_refused_is_refused_before_it_is_run(
    tmp_path, refusal, machine_file, grid_file, meshes, ranks, message
):
    runs_of(machine_file, ["m1", "s"], [1, 2], EARLIER, tmp_path / "train")
    (tmp_path / "held.toml").write_text(f'name = "held"\n[[cases]]\nmesh = {meshes}\nranks = {ranks}\n')
    assert message in refusal("validate", grid_file, "--cases", str(tmp_path / "held.toml"))
    assert not (tmp_path / "said").exists()


@pytest.mark.parametrize("placement", [{"hosts": "n2"}, {"per_node": 1}])
def test_cases_that_choose_hosts_are_not_predicted(placement):
    with pytest.raises(InputError, match="predictions take the profile's hosts in order"):
        check_cases([], [Case.of(mesh="m1", ranks=2, **placement)])


def test_a_mesh_that_was_edited_is_predicted_again(tmp_path, output, machine_file, grid_file):
    runs_of(machine_file, ["m1"], [1], EARLIER, tmp_path / "train")
    mesh = tmp_path / "mine.msh"
    (tmp_path / "held.toml").write_text(f'name = "held"\n[[cases]]\nmesh = "{mesh}"\nranks = 2\n')
    for box, written in (("3x3x3", 2), ("3x3x3", 0), ("3x3x4", 2)):
        output("mesh", "box", box, "-o", str(mesh))
        text = output("validate", grid_file, "--cases", str(tmp_path / "held.toml"))
        assert f"{written} predictions written" in text
