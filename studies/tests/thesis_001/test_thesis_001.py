"""The study thesis-001: its time lines, costs of messages, and a page from planted runs, without MPI."""

import csv
import dataclasses

import msgspec
import numpy as np
import pytest
from planted_calibration import planted_calibration
from planted_environment import on_hosts_with
from planted_machine import planted_machine

from fembench.records.network import Network, PairSamples
from fembench_studies.attempts import Attempts
from fembench_studies.page import publish
from fembench_studies.programs import kept
from fembench_studies.programs.cases import case_of, predicted
from fembench_studies.programs.compared_messages import ComparedTime, Refused
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import save_app
from fembench_studies.scheduling.execute import makespan
from fembench_studies.thesis_001 import (
    grid_live,
    grid_messages,
    grid_plan,
    grid_real,
    grid_study,
)
from fembench_studies.thesis_001.grid_live import GridBench

UNIT, TRANSFER = 3e-2, 1e-4


def network():
    row = (1e-6,) * 5
    samples = tuple(
        PairSamples(measure=0, mirror=1, m=m, os_measure=row, or_mirror=row, os_mirror=row, or_measure=row,
                    rtt=(1e-5 + m * 1e-9,) * 5, mode=mode)
        for m in (64, 1024, 65536) for mode in ("isend", "send")
    )  # fmt: skip
    return Network(
        send_mode="isend",
        pairs="all",
        sites=("a",),
        classes=(),
        pair_class=((0,),),
        samples=samples,
        polling=1.1,
    )


def calibration(case):
    speeds = [float(s) for s in case.emulate.split(",")]
    samples = {"unit": tuple((UNIT / s,) * 3 for s in speeds)}
    return planted_calibration(case, samples, {"8": ((), *[(TRANSFER,)] * (len(speeds) - 1))})


def planted(case, *, id, scratch, predicted=None, calibrate=0):
    """Replaces a launch: a calibration, or a run that takes 2 % longer than HLogP predicts."""
    record = calibration(case)
    if calibrate:
        return msgspec.structs.replace(record, id=id)
    units = [row[0] for row in record.samples["unit"]]
    computed = sum(units[0] * case.size for t in case.order if case.host[t] == 0 and t not in case.idle)
    return msgspec.structs.replace(
        record, id=id, samples={}, messages={}, predicted=predicted,
        seconds=(1.02 * (predicted.low + predicted.high) / 2,) * 3,
        busy=((computed,) * 3, *[(0.0,) * 3] * (case.ranks - 1)),
    )  # fmt: skip


def bench_of(folder):
    return GridBench(ProgramRuns(folder / "runs"), grid_live.QUICK, 2)


def attempts():
    return Attempts(lambda line: None)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "launch", planted)
        found = grid_live.measure(bench_of(folder), attempts())
    return folder, found


def rows(page, name):
    with open(page.parent / "tables" / f"{name}.csv", newline="") as stream:
        return {r["platform"]: r for r in csv.DictReader(stream)}


def test_every_experiment_is_run(study):
    _, found = study
    assert [r.graph for r in found] == ["diamond"] * 3 + ["fork-join"] * 3
    assert {r.record.case.ranks for r in found} == {10}
    for run in found:
        assert len(run.record.case.costs) == len(run.record.case.edges)


@pytest.mark.row("001:F12f")
def test_what_heft_promises_under_hlogp_is_what_hlogp_executes(study):
    _, found = study
    by_name = {(r.graph, r.name): r for r in found}
    for graph in grid_plan.GRAPHS:
        known = by_name[graph, "HEFT, HLogP"]
        assert known.expected * 1.02 == pytest.approx(known.measured, rel=0.03)
        latency = by_name[graph, "HEFT, latency"]
        assert latency.expected < 0.97 * latency.measured  # it ignores that overheads occupy processors


def test_a_schedule_is_executed_as_the_record_predicts(study):
    _, found = study
    run = next(r for r in found if (r.graph, r.name) == ("diamond", "HEFT, HLogP"))
    case, record = run.record.case, calibration(run.record.case)
    graph = grid_plan.GRAPHS["diamond"]()
    task = tuple(case.size * row[0] for row in record.samples["unit"])
    platform = grid_plan.platform(task, run.scale, TRANSFER)
    again = makespan(graph, platform, case.order, case.host)
    assert predicted(case, record).low == pytest.approx(again, rel=1e-9)


def test_what_is_there_is_not_measured_again(study, monkeypatch):
    folder, found = study

    def never(*_, **__):
        raise AssertionError("a run was made again")

    monkeypatch.setattr(kept, "launch", never)
    again = grid_live.measure(bench_of(folder), attempts())
    assert [r.record for r in again] == [r.record for r in found]


@pytest.mark.row("001:A7")
def test_errors_of_rings_forks_and_joins_stand_beside_those_of_the_thesis():
    errors = {real.name: real.thesis_error for real in grid_real.RUNS if real.thesis_error is not None}
    assert errors == {
        "real-ring-65536-isend": pytest.approx(0.21, abs=0.005),
        "real-ring-2097152-isend": pytest.approx(0.45, abs=0.005),
        "real-ring-2097152-send": pytest.approx(2.35, abs=0.005),
        "real-fork-4194304-send": pytest.approx(0.008, abs=0.001),
        "real-join-4194304-send": pytest.approx(0.17, abs=0.005),
    }


def test_the_page_has_both_numbers(study, unrendered):
    folder, found = study
    page = publish(folder, "study", grid_study.outcome(found, [], network()))
    schedules = rows(page, "schedules")
    assert float(schedules["diamond: HEFT, latency"]["thesis_error_percent"]) == pytest.approx(
        17.81, abs=0.01
    )
    assert {p.stem for p in (page.parent / "plots").iterdir()} == {"schedules", "messages"}
    assert page.read_text(encoding="utf-8").count('<p class="finding">') == 2
    assert "SYNTHETIC" in page.with_name("report.md").read_text()


@pytest.mark.row("001:E11")
def test_laws_of_h_are_off_by_what_their_tables_say():
    found = {row[0]: float(str(row[1])) for row in grid_messages.slowness_table().rows}
    assert found == {
        "queue (4.1)": pytest.approx(14.4, abs=0.1),
        "load (4.2)": pytest.approx(7.4, abs=0.1),
        "clock (4.3)": pytest.approx(4.8, abs=0.1),
    }


@pytest.mark.row("001:E14")
def test_load_lengthens_latency_and_leaves_overheads():
    found = {row[0]: [float(str(v)) for v in row[1:]] for row in grid_messages.loaded_table().rows}
    assert found["Os"][0] == pytest.approx(1.0, abs=0.05)
    assert found["Or"][0] == pytest.approx(1.0, abs=0.05)
    assert 6 < found["L"][0] < 8
    assert found["L"][2] > 100


def profile_of(slower=1.0, seconds=60.0, others=0.0):
    """Large messages whose MPI_Send takes `slower` times as long as MPI_Isend; others used the host."""
    samples = tuple(
        msgspec.structs.replace(
            s, m=m, rtt=tuple((slower if s.mode == "send" else 1.0) * m * 1e-9 for _ in range(5))
        )
        for m in (1 << 17, 1 << 19, 1 << 21, 1 << 22)
        for s in network().samples[:2]
    )
    small = msgspec.structs.replace(network().samples[1], rtt=(1.0,) * 5)  # below the size that is judged
    found = msgspec.structs.replace(network(), samples=(*samples, small))
    made = planted_machine([1.0, 1.0], ("a", "a"), network=found, seconds=seconds)
    return on_hosts_with(made, others_percent=others, others_resolution=0.1)


@pytest.mark.row("001:3.2", "001:B2", "000:C9")
def test_large_messages_take_as_long_in_either_way_of_sending_and_calibrations_are_short():
    def verdicts(**planted):
        return [c.verdict for c in grid_messages.claims(profile_of(**planted))]

    assert verdicts() == verdicts(slower=1.04) == ["yes", "yes"]
    assert verdicts(slower=1.06) == verdicts(slower=0.94) == ["NO", "yes"]
    assert verdicts(seconds=181.0) == ["yes", "NO"]
    assert all(v.startswith("INVALID: others used 9 %") for v in verdicts(others=9.0))
    made = grid_messages.claims(profile_of(slower=1.06))
    assert not grid_study.outcome([], [], network(), ["messages"], made).good


@pytest.mark.row("001:E16")
def test_messages_are_listed_with_both_libraries_of_the_thesis():
    made = grid_messages.message_table(network())
    first = dict(zip((c.key for c in made.columns), made.rows[0]))
    # L is half of the round trip without its four overheads
    assert first["latency_us"] == pytest.approx((10 + 0.064 - 4) / 2)
    assert (first["thesis_g2_send_overhead_us"], first["thesis_lam_latency_us"]) == (12, 4)
    (row,) = grid_messages.waiting_table(network()).rows
    assert np.allclose(row, (1.1, 1296882 / 695600, 690290 / 689600), rtol=1e-3)


def test_calibrations_are_of_the_tasks_that_run(tmp_path):
    bench = GridBench(ProgramRuns(tmp_path, only_kept=True), grid_live.QUICK, 2)
    case = case_of(bench.settings(), None)
    assert case.size == round(1.2 * grid_plan.TASK)
    record = calibration(case)
    save_app(record, tmp_path / f"calibrated-hosts-{case.size}.json")
    assert bench.calibration() == record
    assert grid_live.scale_of(record) == pytest.approx(case.size * UNIT / grid_plan.TASK)


@pytest.mark.row("001:E19", "001:E20")
def test_claims_limit_hlogp_and_its_lead_over_the_latency_model(study):
    _, found = study
    claims = {c.what: c for c in grid_study.claims(found)}
    assert len(claims) == 2 * 2
    assert {c.verdict for c in claims.values()} == {"yes"}
    assert claims["HLogP, diamond: HEFT, HLogP"].limit == 10.0
    assert claims["HLogP, diamond: less than the latency model"].limit > 3
    late = [slower(run, 1.15) if run.graph == "diamond" else run for run in found]
    verdicts = [c.verdict for c in grid_study.claims(late)]
    assert "NO" in verdicts
    assert not grid_study.outcome(late, [], None).good
    assert grid_study.outcome(found, [], None).good


def test_a_disturbed_run_with_emulated_messages_judges_no_claim(study):
    _, found = study
    heft = next(r for r in found if r.name == "HEFT, HLogP")
    record = on_hosts_with(heft.record, others_percent=9.0, others_resolution=1.0)
    (claim,) = grid_study.claims([dataclasses.replace(heft, record=record)])
    assert claim.verdict.startswith("INVALID: others used 9 % of the ranks' processor time on ")


@pytest.mark.parametrize(("graph", "method"), [("diamond", "HEFT, HLogP"), ("diamond", "HEFT, latency")])
def test_hlogp_does_not_lead_where_the_machine_changed_more_than_the_latency_model_is_off(
    study, graph, method
):
    _, found = study
    (limit,) = {
        c.limit for c in grid_study.claims(found) if c.what == f"HLogP, {graph}: less than the latency model"
    }
    for change, verdict in ((0.9, "yes"), (1.1, "INVALID: this machine did a task in ")):
        moved = [
            learned(r, 1 + change * limit / 100) if (r.graph, r.name) == (graph, method) else r for r in found
        ]
        verdicts = {c.what: c.verdict for c in grid_study.claims(moved)}
        assert verdicts.pop(f"HLogP, {graph}: less than the latency model").startswith(verdict)
        assert set(verdicts.values()) == {"yes"}


def learned(run, factor):
    """The run, around which a unit of work took `factor` times as long as the median of its calibration."""
    units = {"unit": ((factor * UNIT,) * 2,) * 10}
    spread = {"unit": ((UNIT, 0.5 * UNIT, 2 * UNIT),) * 10}
    return dataclasses.replace(
        run,
        record=msgspec.structs.replace(run.record, learned=units),
        calibration=msgspec.structs.replace(run.calibration, learned=spread),
    )


def slower(run, factor):
    record = run.record
    return dataclasses.replace(
        run, record=msgspec.structs.replace(record, seconds=tuple(factor * t for t in record.seconds))
    )


def real(error, reason=""):
    score = ComparedTime("makespan", 1.0, 1 + error, 1.0, 0.99, 1.01, reason, 15.0)
    return grid_real.RealRun(grid_real.RUNS[0], (), ((score,), (score._replace(what="messages"),)))


def test_messages_are_right_if_nine_in_ten_runs_are_and_few_are_disturbed():
    def verdict(*bad):
        return grid_real.claims([*bad, *[real(0.1)] * (10 - len(bad))])[0].verdict

    off, disturbed = real(0.2), real(0.0, "others used 9 %")
    assert verdict() == verdict(off) == verdict(off, disturbed, disturbed).replace("NO", "yes") == "yes"
    assert verdict(off, off) == "NO"
    assert verdict(disturbed, disturbed, disturbed) == (
        "INVALID: 30 % of the runs test nothing; most often: others used 9 %"
    )
    short = real(0.5, Refused("refused: a message takes 1 µs"))
    assert verdict(*[short] * 8) == "yes"  # short messages are not promised
    assert verdict(*[short] * 10).startswith("INVALID: 100 % of the runs test nothing")
    assert grid_real.claims([]) == []
