"""Cases of programs, their predictions from a calibration, and the verbs."""

from types import SimpleNamespace

import msgspec
import pytest
from planted_calibration import planted_calibration
from planted_environment import on_hosts_with

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench_studies.pamela.program_models import machine_of
from fembench_studies.programs import calibrate, program_session
from fembench_studies.programs.cases import case_of, predicted
from fembench_studies.programs.program_session import untested
from fembench_studies.programs.program_text import as_text
from fembench_studies.programs.record import AppCase, AppPrediction, load_app, save_app
from fembench_studies.programs.settings import ProgramSettings


def calibration(samples, ranks=3, messages=None):
    case = AppCase(program="pi", ranks=ranks)
    return planted_calibration(case, samples, messages or {"8": ((),) + ((1e-3,),) * (ranks - 1)})


POINTS = {"pi_point": ((1e-8,), (1e-8, 1e-8, 1.1e-8), (2e-8, 2e-8, 2.2e-8))}


def options(program, **more):
    return ProgramSettings(program, **{"ranks": 3, "repetitions": 2, "samples": 5} | more)


@pytest.mark.row("001:F12e")
@pytest.mark.parametrize("method", ["heft", "latency-heft", "turn", "fastest"])
def test_every_scheduler_places_the_tasks_of_a_program(method):
    units = {"unit": ((0.1,), (0.1,), (0.2,))}
    case = case_of(options("diamond", tasks=3, size=1, schedule=method), calibration(units))
    assert sorted(case.order) == list(range(9))
    assert set(case.host) <= {0, 1, 2}
    for a, b in case.edges:
        assert case.order.index(a) < case.order.index(b)


def test_tasks_are_dealt_by_calibrated_speed():
    record = calibration(POINTS)
    assert machine_of(record).factors == {1: 1.0, 2: pytest.approx(0.5)}
    assert case_of(options("pi", tasks=99), record).dealt == (66, 33)
    assert case_of(options("pi", tasks=99), None).dealt == (50, 49)
    assert sum(case_of(options("pi", tasks=99, static=0.4), record).dealt) == 39


def test_a_farm_takes_as_long_as_its_slowest_worker():
    record = calibration(POINTS)
    case = case_of(options("pi", tasks=3, size=3_000_000), record)
    found = predicted(case, record)
    # two tasks of a million points at 1e-8 s beside one at 2e-8 s, three messages each way
    assert found.low == pytest.approx(0.02 + 3e-3 + 1e-3, rel=0.2)
    assert found.terms["T_net"] == pytest.approx((6e-3, 6e-3))
    assert found.model == "calibrated"


def test_a_conditional_counts_as_often_as_it_is_true():
    samples = {"power_10": ((1.0,),) * 3, "element": ((0.01,),) * 3}
    record = calibration(samples)
    case = case_of(options("partial", tasks=2, size=10), record)
    found = predicted(case, record)
    assert found.low == pytest.approx(1 + 0.25, rel=0.01)
    assert found.conditionals == "q"


def test_graphs_are_predicted_by_hlogp():
    record = calibration({"unit": ((0.1,), (0.1,), (0.2,))})
    case = case_of(options("ring", size=10), record)
    found = predicted(case, record)
    assert found.low == pytest.approx(1 + 1 + 2 + 3e-3)
    assert found.high == pytest.approx(found.low + 3 * 2e-4)  # seen at once, or 0.2 ms later
    assert case.host == (0, 1, 2, 0)
    scheduled = case_of(options("fork-join", size=10, schedule="heft"), record)
    turns = case_of(options("fork-join", size=10), record)
    assert predicted(scheduled, record).low < predicted(turns, record).low


def test_more_workers_than_calibrated_are_like_the_last():
    record = calibration(POINTS)
    case = case_of(options("pi", ranks=6, tasks=10, size=10_000_000), record)
    assert len(case.dealt) == 5
    assert predicted(case, record).low > 0.03


def test_a_record_comes_back(tmp_path):
    record = calibration(POINTS)
    save_app(record, tmp_path / "a.json")
    assert load_app(tmp_path / "a.json") == record
    (tmp_path / "b.json").write_bytes(msgspec.json.encode({"schema": 1}))
    with pytest.raises(InputError, match="not a record of a program; expected a file of fembench study app"):
        load_app(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ranks": 0}, "expected 1 or more"),
        ({"program": "fork", "tasks": 1}, "expected at least 2"),
        ({"program": "fork", "schedule": "heft"}, "a calibration"),
    ],
)
def test_wrong_cases_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        case_of(options(**{"program": "pi", **changes}), None)


def test_a_run_that_is_no_calibration_predicts_nothing():
    with pytest.raises(InputError, match="not a calibration"):
        machine_of(calibration({}))


SAID = AppPrediction(low=1.0, high=2.0, terms={}, model="m", compose="phase", conditionals="q")


def after(calibrated, case, cores=8, **changes):
    """A predicted run of the case on a host of these cores."""
    ran = {"case": case, "predicted": SAID, "seconds": (1.5, 1.6)}
    ran |= {"samples": {}, "messages": {}} | changes
    return msgspec.structs.replace(on_hosts_with(calibrated, cores=cores), **ran)


def test_ranks_that_share_cores_test_no_prediction_of_a_graph():
    calibrated = calibration({"unit": ((0.1,),) * 3})
    case = case_of(options("diamond", tasks=3, size=1, schedule="heft"), calibrated)
    assert set(case.host) == {0, 1, 2}
    crowded = after(calibrated, case, cores=2)
    assert untested(crowded, calibrated).startswith("3 ranks compute on the 2 cores of node8; the prediction")
    assert not untested(after(calibrated, case, cores=3), calibrated)
    assert not untested(msgspec.structs.replace(crowded, predicted=None), calibrated)


def test_the_coordinator_of_a_farm_needs_no_core():
    calibrated = calibration(POINTS)
    case = case_of(options("pi", tasks=99), calibrated)
    assert not untested(after(calibrated, case, cores=2), calibrated)  # the coordinator does not compute
    assert untested(after(calibrated, case, cores=1), calibrated).startswith("2 ranks compute on the 1 core")


@pytest.mark.row("000:C6")
@pytest.mark.parametrize(
    ("pace", "said"), [(1.1, ""), (1.3, "takes 1.30 times as long"), (0.7, "takes 0.70")]
)
def test_a_run_on_a_machine_that_changed_since_its_calibration_is_invalid_and_not_scored(pace, said):
    calibrated = msgspec.structs.replace(calibration(POINTS), pace=(1e-3,) * 3)
    ran = after(calibrated, case_of(options("pi", tasks=99), calibrated), pace=(1e-3 * pace,) * 3)
    why = untested(ran, calibrated)
    assert said in why
    assert bool(why) == bool(said)
    judged = msgspec.structs.replace(ran, invalid=why)
    assert ("INVALID: a unit of work" in as_text(judged)) == bool(said)
    assert ("mean error" in as_text(judged)) == (not said)


@pytest.mark.parametrize(("times", "invalid"), [(1.14, False), (1.16, True), (0.87, False), (0.86, True)])
def test_an_emulated_run_on_a_machine_of_another_speed_is_invalid_whatever_operation_is_slower(
    times, invalid
):
    points, squares = (1e-3,) * 3, ((1e-3, 1e-3),) * 3
    calibrated = calibration({"power_10": (points,) * 3, "element": (points,) * 3})
    calibrated = msgspec.structs.replace(calibrated, learned={"power_10": squares, "element": squares})
    case = case_of(options("partial", tasks=4, size=10, emulate="1,1,0.5", dilate=2.0), calibrated)
    calibrated = msgspec.structs.replace(calibrated, case=case)
    synthetic = msgspec.structs.replace(calibrated.environment, synthetic="emulated")
    slower = ((1e-3, times * 1e-3 + (times - 1) * 1e-3 / 25),) * 3  # one product, and 25 of 100 elements
    ran = after(calibrated, case, learned={"power_10": squares, "element": slower}, environment=synthetic)
    assert bool(untested(ran, calibrated)) == invalid
    assert not untested(msgspec.structs.replace(ran, learned={}), calibrated)  # of an older fembench


def test_a_rare_moment_of_a_faster_core_is_not_what_an_emulated_rank_learns():
    learned = {}

    def rehearsals(comm, seconds, among):
        yield
        learned["unit"] = among([1.0, *[2.0] * 30, 9.0])

    slowness = SimpleNamespace(rehearsals=rehearsals, share=lambda comm: None, learned=learned)
    worker = SimpleNamespace(slowness=slowness, comm=None, compute=lambda *_: None)
    assert calibrate.learn(worker, "ring", 1, 1) == {"unit": 2.0}


@pytest.mark.parametrize(("pace", "status"), [(1e-3, 0), (2e-3, 1)])
def test_the_verb_keeps_why_a_run_is_invalid_and_exits_with_1(pace, status, tmp_path, capsys, monkeypatch):
    calibrated = msgspec.structs.replace(calibration(POINTS), pace=(1e-3,) * 3)
    save_app(calibrated, tmp_path / "machine.json")

    def launch(case, *, id, predicted, **_):
        ran = after(calibrated, case, pace=(pace,) * 3, predicted=predicted)
        return msgspec.structs.replace(ran, id=id)

    monkeypatch.setattr(program_session, "launch", launch)
    words = ["study", "app", "pi", "--ranks", "3", "--tasks", "99", "--model", str(tmp_path / "machine.json")]
    assert main([*words, "--results", str(tmp_path), "-o", str(tmp_path / "run.json")]) == status
    assert bool(load_app(tmp_path / "run.json").invalid) == bool(status)
    assert ("INVALID: a unit of work takes 2.00 times as long" in capsys.readouterr().out) == bool(status)
