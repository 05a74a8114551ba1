"""Whether a machine changed after the training of a prediction, from planted readings of its speed."""

import json

import msgspec
import numpy as np
import pytest
from planted_machine import planted_machine
from planted_runs import run_of

from fembench.cli.main import main
from fembench.fem.problem import PRESETS, resolved
from fembench.model.drifted import ALPHA, LEAST, changes, readings_of, stale, state_text
from fembench.model.predictor import open_study
from fembench.records.case import Case
from fembench.records.prediction import load_prediction
from fembench.records.profile import save_profile
from fembench.records.record import StateReading
from fembench.records.store import save

SPREAD = 0.03  # of one reading


def planted_state(n, *, seed, memory=1.0, spread=SPREAD, wander=0.0):
    """The states of host a at n moments; `memory`: its speed; `wander`: correlation of neighbours in time."""
    rng = np.random.default_rng(seed)
    found = []
    for what, speed in (("core", 1e11), ("memory", 2e10 * memory)):
        noise = rng.standard_normal(n)
        for k in range(1, n):
            noise[k] = wander * noise[k - 1] + (1 - wander**2) ** 0.5 * noise[k]
        found.append([reading(what, speed * np.exp(spread * x)) for x in noise])
    return [one for pair in zip(*found) for one in pair]


def reading(what, speed, n_bytes=1 << 14, host="a", ranks=1):
    return StateReading(host=host, what=what, ranks=ranks, n_bytes=n_bytes, speed=float(speed))


def called_stale(n_training, n_new, times=200, **planted):
    """Fraction of sessions in which the machine is said to have changed."""
    memory = planted.pop("memory", 1.0)
    found = [
        stale(
            changes(
                planted_state(n_training, seed=2 * k, **planted),
                planted_state(n_new, seed=2 * k + 1, memory=memory, **planted),
            )
        )
        for k in range(times)
    ]
    return sum(map(bool, found)) / times


@pytest.mark.parametrize(("n_training", "n_new"), [(6, 1), (48, 1), (48, 3), (48, 72), (8, 72)])
def test_an_unchanged_machine_is_rarely_called_changed(n_training, n_new):
    assert called_stale(n_training, n_new) <= 3 * ALPHA


def test_a_machine_whose_speed_wanders_for_a_few_runs_is_rarely_called_changed():
    assert called_stale(48, 72, wander=0.6) <= 4 * ALPHA


@pytest.mark.parametrize(("memory", "n_new"), [(0.95, 72), (1.05, 72), (0.95, 24), (0.8, 1)])
def test_a_change_of_one_host_that_its_spread_does_not_explain_is_found(memory, n_new):
    assert called_stale(48, n_new, memory=memory) >= 0.95


def test_a_certain_but_small_change_does_not_matter():
    assert called_stale(500, 500, memory=1 - LEAST / 2, times=20) == 0


def test_the_reason_is_one_line_with_the_host_the_change_and_the_spread():
    found = changes(planted_state(48, seed=1), planted_state(72, seed=2, memory=0.9))
    assert stale(found).startswith("memory bandwidth of one rank on a is ")
    assert "% below that of the training (spread " in stale(found)
    assert stale(found).endswith("%): measure the profile again")
    assert "\n" not in stale(found)
    assert state_text(found) == f"INVALID: {stale(found)}"
    assert abs(found[1].ratio - 0.9) < 0.02


def test_other_hosts_and_too_few_readings_leave_the_state_unknown():
    other = [reading("memory", 1e10, host="b")] * 3
    assert state_text(changes(other, planted_state(9, seed=1))).startswith("state of the machine: not known")
    assert changes(planted_state(2, seed=1), planted_state(9, seed=2)) == []
    assert changes([], planted_state(9, seed=2)) == []


def with_triads(record, blocks, speed, seed):
    """The record as if its parts had these blocks, with triads of all ranks at this speed (of bytes)."""
    rng = np.random.default_rng(seed)
    rows = speed(40 * blocks) * np.exp(SPREAD * rng.standard_normal((record.case.placement.ranks, 8)))
    return msgspec.structs.replace(
        record,
        partition=msgspec.structs.replace(record.partition, blocks=(blocks,) * len(rows)),
        solve=msgspec.structs.replace(record.solve, triads=tuple(map(tuple, rows.tolist()))),
    )


@pytest.mark.parametrize(("slower", "changed"), [(1.0, False), (0.93, True)])
def test_triads_of_other_sizes_are_compared_along_their_curve(a_run, slower, changed):
    """The speed drops to a third from the smallest to the largest array; held-out sizes lie between."""

    def curve(n_bytes):
        return 1e11 * (n_bytes / 50_000) ** -0.7

    run = a_run("m1", 2)

    def with_sizes(sizes, factor, seed):
        return [with_triads(run, n, lambda x: factor * curve(x), seed + k) for k, n in enumerate(sizes)]

    training = with_sizes([1200, 1600, 2000, 2500, 3200, 4000, 5000, 6000] * 3, 1.0, 0)
    held = with_sizes([1400, 1800, 2200, 2800, 3600, 4500, 5500] * 3, slower, 100)
    found = changes(readings_of(training), readings_of(held))
    assert [c.what for c in found] == ["matrix"]
    assert bool(stale(found)) == changed


@pytest.fixture
def a_run(machine_file):
    """A function: a run that took what the profile says."""

    def run(mesh, ranks, created="2026-01-01T00:00:00+00:00", id="planted"):
        case = Case.of(mesh=mesh, ranks=ranks)
        made, _ = run_of(open_study(machine_file), case, created=created, id=id)
        return msgspec.structs.replace(made, problem=resolved(PRESETS[case.question.problem]))

    return run


def in_state(record, state):
    return msgspec.structs.replace(record, solve=msgspec.structs.replace(record.solve, state=tuple(state)))


@pytest.fixture
def validated(tmp_path, capsys, a_run, grid_file):
    """A function: (text, JSON of the state) of validate with exit status `expected`.

    Held-out runs have memory at this speed, or, with None, no readings.
    """

    def one(memory, expected):
        cases = ["validate", grid_file, "--cases", str(tmp_path / "held.toml")]
        for k, ranks in enumerate((1, 2)):
            run = a_run("m1", ranks, f"2026-01-0{k + 1}T00:00:00+00:00", f"train-{ranks}")
            save(in_state(run, planted_state(2, seed=k) if memory else ()), tmp_path / "train")
        assert main(cases) == 0
        for k, mesh in enumerate(("m2", "m3")):
            state = planted_state(2, seed=9 + k, memory=memory) if memory else ()
            run = a_run(mesh, 4, "2199-01-01T00:00:00+00:00", f"held-{mesh}")
            save(in_state(run, state), tmp_path / "held")
        told = []
        for more in ([], ["--json"]):
            capsys.readouterr()
            assert main(["validate", grid_file, *more]) == expected
            told.append(capsys.readouterr().out)
        return told[0], json.loads(told[1])["state"]

    return one


def test_validate_is_invalid_if_the_memory_became_slower_after_the_training(validated):
    text, state = validated(0.7, 1)
    assert "INVALID: these errors do not test the predictions" in text
    assert "\nINVALID: memory bandwidth of one rank on a is 3" in text
    assert "median │error│" in text  # still printed
    assert state["stale"].startswith("memory bandwidth")
    assert {c["what"] for c in state["changes"]} == {"core", "memory"}


@pytest.mark.parametrize(("memory", "said"), [(1.0, "as in the training"), (None, "not known")])
def test_validate_says_so_if_the_machine_did_not_change_or_nothing_recorded_its_state(
    validated, memory, said
):
    text, _ = validated(memory, 0)
    assert f"state of the machine: {said}" in text
    assert "INVALID" not in text


@pytest.mark.parametrize(("memory", "status"), [(1.0, 0), (0.7, 1)])
def test_a_run_in_another_state_does_not_score_its_prediction(
    tmp_path, capsys, a_run, machine_file, memory, status
):
    profile = planted_machine([1, 1], ("node1",) * 2, noise=0.02, state=tuple(planted_state(8, seed=1)))
    save_profile(profile, machine_file)
    before = str(tmp_path / "before.json")
    words = ["predict", "m1", "--machine", str(machine_file), "--ranks", "2", "-o", before]
    assert main(words) == 0
    run = in_state(a_run("m1", 2, "2199-01-01T00:00:00+00:00"), planted_state(1, seed=2, memory=memory))
    path = save(run, tmp_path)
    capsys.readouterr()
    assert main([*words, "--against", str(path)]) == status
    told = capsys.readouterr().out
    assert ("INVALID: memory bandwidth of one rank on a is" in told) == bool(status)
    assert ("that of the profile (spread" if status else "state of the machine: as in the profile; ") in told
    assert "training" not in told
    kept = load_prediction(before)
    assert len(kept.predicted.state) == 16
    assert bool(kept.observed[0].stale) == bool(status)
