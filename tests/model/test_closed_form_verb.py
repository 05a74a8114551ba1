"""The closed form that the verb answers with: lessons of runs, numbers of iterations, text and JSON."""

import dataclasses
import json
import math

import msgspec
import pytest
from planted_profile import planted_profile
from planted_records import FROZEN
from planted_runs import study_of

from fembench.base.errors import InputError
from fembench.model.answers import expected_iterations
from fembench.model.closed_form_prices import ClosedFormCorrection, bounded, in_closed_form, learn_closed_form
from fembench.records.case import Case
from fembench.records.hlogp import GivenLink
from fembench.records.prediction import ANALYTIC, load_prediction, save_prediction
from fembench.records.profile import save_profile
from fembench.records.store import load


@pytest.fixture
def study():
    return study_of(planted_profile([1.0, 0.5], hosts=("a", "b"), noise=0.02), link=GivenLink(2e-5, 1e9))


@pytest.fixture
def words(study, tmp_path):
    """The words of an analytic prediction by that profile, but for the link."""
    save_profile(study.profile, tmp_path / "machine.json")
    return ["predict", "m3", "--machine", str(tmp_path / "machine.json"), "--method", "analytic"]


def run_that_took(study, case, factor, iterations=40):
    """A record of a case whose iteration took `factor` times the closed form's."""
    work = study.workload(case)
    record = load(FROZEN)
    seconds = factor * bounded(study, work, 100).expected.iteration * iterations
    row = [0.0] * len(record.phases)
    row[record.phases.index("cg")] = seconds
    one = msgspec.structs.replace(
        record.sets[-1], warmup=False, iterations=iterations, seconds=(tuple(row),) * case.placement.ranks
    )
    mesh = msgspec.structs.replace(record.mesh, hash=work.mesh_hash, n_equations=work.n_equations)
    return msgspec.structs.replace(
        record,
        case=case,
        mesh=mesh,
        partition=work.parts,
        sets=(one,),
        solve=msgspec.structs.replace(record.solve, iterations=iterations, converged=True),
    )


def test_runs_scale_the_iteration_and_widen_its_interval(study):
    cases = [Case.of(mesh=mesh, ranks=2) for mesh in ("m1", "m2", "m3")]
    lessons = learn_closed_form(study, [run_that_took(study, c, f) for c, f in zip(cases, (1.25, 1.3, 1.35))])
    assert lessons.scale == pytest.approx(1.3)
    assert 0.04 < lessons.half_width < 0.4
    work = study.workload(cases[0])
    plain, taught = (bounded(study, work, 10, correction=x) for x in (ClosedFormCorrection(), lessons))
    assert taught.expected.iteration == pytest.approx(1.3 * plain.expected.iteration, rel=1e-6)
    taught = taught.iteration
    assert math.sqrt(taught.low * taught.high) == pytest.approx(1.3 * plain.expected.iteration, rel=1e-6)
    assert taught.high / taught.low == pytest.approx(math.exp(2 * lessons.half_width), rel=1e-6)


def test_one_run_scales_and_says_nothing_of_the_width(study):
    lessons = learn_closed_form(study, [run_that_took(study, Case.of(mesh="m2", ranks=2), 0.9)])
    assert lessons == ClosedFormCorrection(pytest.approx(0.9), 0.0)
    assert learn_closed_form(study, []) == ClosedFormCorrection()


def test_iterations_are_given_known_fitted_or_the_most_allowed(study):
    work = study.workload(Case.of(mesh="m3", ranks=2))
    coarse = [
        run_that_took(study, Case.of(mesh=mesh, ranks=2), 1.0, n) for mesh, n in (("m1", 60), ("m2", 90))
    ]
    same = run_that_took(study, Case.of(mesh="m3", ranks=2), 1.0, 137)
    assert expected_iterations(7, work, [same]) == (7, "as given")
    assert expected_iterations(0, work, [*coarse, same])[0] == 137
    fitted, source = expected_iterations(0, work, coarse)
    assert 90 < fitted < 300
    assert "2 coarser meshes" in source
    assert expected_iterations(0, work, coarse[:1])[0] == 10 * work.n_equations
    limited = dataclasses.replace(work, case=Case.of(mesh="m3", ranks=2, max_iterations=500))
    assert expected_iterations(0, limited, []) == (500, "the maximum allowed, an upper bound")


def test_what_is_said_is_sealed_with_its_method(study, tmp_path):
    said = in_closed_form(study, ClosedFormCorrection(), [], Case.of(mesh="m1", ranks=2))
    path = tmp_path / "said.json"
    save_prediction(said, path)
    assert load_prediction(path).predicted.method == ANALYTIC
    assert said.predicted.low < said.predicted.iteration < said.predicted.high
    whole = json.loads(path.read_text())
    for change in ({"method": "simulation"}, {"iteration": 1.1 * said.predicted.iteration}):
        path.write_text(json.dumps(whole | {"predicted": whole["predicted"] | change}))
        with pytest.raises(InputError, match="has been changed since"):
            load_prediction(path)


def test_the_verb_answers_with_expression_interval_and_terms(words, answer, output):
    words = [*words, "--link", "2e-8,1e12,1e-8", "--ranks", "2", "--iterations", "50"]
    text = output(*words)
    assert "T = max(" in text
    assert "T_nic[h] = sum[p on h](n*halo[p])" in text
    assert "T_core_1" in text
    assert "middle" not in text  # of an interval: no term is expected there
    (found,), (edited,) = (answer(*words, *more) for more in ((), ("--machines", "fastest")))
    low, high = found["seconds"]
    assert found["assembly"][0] + 50 * found["iteration"][0] == pytest.approx(low)
    assert low < high
    assert set(found["terms"]) >= {"T_0", "T_core_0", "T_core_1", "T_nic_0"}
    assert edited["iteration"][1] < 0.7 * found["iteration"][1]


def test_several_numbers_of_ranks_make_a_table_and_a_deadline(words, output):
    words = [*words, "--link", "2e-5,1e9", "--ranks", "1,2", "--shares", "balanced"]
    text = output(*words, "--iterations", "9", "--deadline", "9")
    assert "deadline 9 s: 1 rank suffices" in text
    assert "T = max(" not in text
