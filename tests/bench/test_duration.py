"""The expected duration of runs."""

import pytest
from msgspec.structs import replace
from planted_records import planted

from fembench.bench import duration
from fembench.bench.duration import (
    ASSEMBLY,
    LAUNCH,
    RATE,
    SETUP,
    START,
    Expectations,
    equations_of,
    expected_seconds,
    stated_rate,
)
from fembench.mesh.presets import box_named
from fembench.records.case import Case

M = box_named("m").n_equations
SYM_BYTES = 240  # per equation: 15 blocks of 48 bytes per node, by hand
FIXED = {"mesh": "m", "iterations": 100, "sets": 10, "warmups": 2}


def record(mesh="m", seconds=0.5, *, ranks=2, once=1.0, **case):
    """A record of a run on a box whose sets took these seconds of CG, and nothing else."""
    made = planted((1.0,) * ranks, sets=3, noise=0.0, warmups=0, **{"iterations": 100, **case})
    box = box_named(mesh)
    cg = made.phases.index("cg")
    row = tuple(seconds if k == cg else 0.0 for k in range(len(made.phases)))
    times = {"seconds": (row,) * ranks, "total": (seconds,) * ranks}
    one = replace(made.sets[0], warmup=False, iterations=100, **times)
    return replace(
        made,
        case=made.case.with_(mesh=mesh),
        mesh=replace(made.mesh, name=mesh, n_equations=box.n_equations),
        sets=(one,) * 3,
        total=(once + 3 * seconds,) * ranks,
    )


def test_a_run_like_a_recorded_one_takes_as_long_per_set():
    case = Case.of(ranks=2, **FIXED)
    assert expected_seconds(case, [record()]) == pytest.approx(LAUNCH + 1.0 + 12 * 0.5)
    assert expected_seconds(case.with_(iterations=50), [record()]) == pytest.approx(LAUNCH + 1.0 + 12 * 0.25)


def test_emulated_ranks_take_as_long_as_the_slowest_for_its_share_and_rehearse_first():
    """Half the speed, twice the time: ten sets of 0.5 s at full speed are rehearsed in 5 s."""
    case = Case.of(ranks=2, emulate="1,0.5", **FIXED)
    rehearsed = LAUNCH + 1.0 + 5.0
    assert expected_seconds(case, [record()]) == pytest.approx(rehearsed + 12 * 1.0)
    weighted = case.with_(shares="2,1")
    assert expected_seconds(weighted, [record()]) == pytest.approx(rehearsed + 12 * 2 / 3)
    like = record(seconds=1.0, emulate="1,0.5")
    assert expected_seconds(case, [like]) == pytest.approx(rehearsed + 12 * 1.0)


def test_sets_are_added_until_their_time_is_filled():
    case = Case.of(ranks=2, seconds=10.2, **FIXED)
    assert expected_seconds(case, [record()]) == pytest.approx(LAUNCH + 1.0 + (21 + 2) * 0.5)


def test_sets_until_a_median_is_precise_take_the_part_of_the_time_that_a_like_run_took():
    """Six sets at least, of half a second; at most 13 s; 0.3 of what lies between, if nothing is known."""
    effort = {"precision": 2.0, "max_seconds": 13.0}
    case = Case.of(ranks=2, **FIXED | {"sets": 6}, **effort)
    plain = [record()]
    assert expected_seconds(case, plain) == pytest.approx(LAUNCH + 1.0 + (12 + 2) * 0.5)
    quick = record(**effort)  # three sets: as few as it could have
    assert expected_seconds(case, [quick]) == pytest.approx(LAUNCH + 1.0 + (6 + 2) * 0.5)
    slow = record(precision=2.0, max_seconds=1.5)
    assert expected_seconds(case, [slow]) == pytest.approx(LAUNCH + 1.0 + (12 + 2) * 0.5)


def test_expectations_are_computed_again_when_a_record_is_added():
    case, records = Case.of(ranks=2, **FIXED), []
    found = Expectations(records, 0, 0.0)
    (before,) = found([case])
    records.append(record())
    assert found([case, Case.of(mesh="part.vtu")]) == [pytest.approx(LAUNCH + 7.0), None]
    assert before != found([case])[0]
    assert Expectations(records, 0, 5.0)([case]) == [5.0]


def test_expectations_look_at_each_record_once_and_agree_with_all_of_them(monkeypatch):
    seen, cases = [], [Case.of(ranks=2, **FIXED | {"mesh": mesh}) for mesh in ("s", "m", "l")]
    records = [record("m1", 1e-3)]
    found = Expectations(records, 0, 0.0)
    monkeypatch.setattr(duration, "_usable", lambda one: seen.append(one) or True)
    for more in (record("m"), record("s", 0.7), record("m", 5.0, storage="csr")):
        records.append(more)
        assert len(found(cases)) == 3
    assert seen == records
    monkeypatch.undo()
    assert found(cases) == [expected_seconds(case, records) for case in cases]


def test_the_nearest_record_of_the_same_methods_is_scaled():
    near, far, other = record("m", 0.5), record("m1", 1e-3), record("m", 5.0, storage="csr")
    known, case = [far, near, other], Case.of(ranks=2, **FIXED)
    small, large = (expected_seconds(case.with_(mesh=mesh), known) for mesh in ("s", "l"))
    less, more = (box_named(mesh).n_equations / M for mesh in ("s", "l"))
    assert small == pytest.approx(LAUNCH + 1.0 + 12 * 0.5 * less)
    assert large == pytest.approx(LAUNCH + 1.0 + SETUP * M / 2 * (more - 1) + 12 * 0.5 * more)
    assert expected_seconds(case.with_(storage="csr"), known) > 12 * 5.0


def test_more_ranks_share_the_work():
    two, four = (expected_seconds(Case.of(ranks=n, **FIXED), [record()]) for n in (2, 4))
    assert two - four == pytest.approx(12 * 0.25, rel=0.1)


def test_without_records_a_run_is_priced_at_the_stated_rates():
    n = box_named("l").n_equations / 2
    iteration = n * (SYM_BYTES + 8 * 11) / RATE  # 11 vectors of the standard recurrence, at most
    large = FIXED | {"mesh": "l"}
    stated = expected_seconds(Case.of(ranks=2, **large))
    fixed = LAUNCH + START + SETUP * n + 12 * ASSEMBLY * n
    assert fixed + 12 * 100 * n * SYM_BYTES / RATE < stated <= fixed + 12 * 100 * iteration * 1.5
    assert expected_seconds(Case.of(ranks=2, dilate=3.0, **large)) > stated + 2 * 1200 * n * SYM_BYTES / RATE


def test_what_caches_hold_is_read_three_times_as_fast_and_stays_the_statement_of_auto():
    small, large = (Case.of(mesh=mesh, ranks=2) for mesh in ("s", "l"))
    assert [stated_rate(case, equations_of(case)) for case in (small, large)] == [3 * RATE, RATE]


def test_ranks_that_share_cores_take_turns():
    alone, shared = (expected_seconds(Case.of(ranks=4, **FIXED), cores=cores) for cores in (4, 2))
    assert shared - LAUNCH == pytest.approx(2 * (alone - LAUNCH))


def test_iterations_to_a_tolerance_grow_with_the_cube_root_of_the_equations_and_have_a_maximum():
    free = {"mesh": "m", "sets": 1, "warmups": 0}
    whole, few = (expected_seconds(Case.of(**free, max_iterations=most)) for most in (0, 10))
    fixed = expected_seconds(Case.of(**free, iterations=round(25.0 * M ** (1 / 3))))
    assert whole == pytest.approx(fixed, rel=1e-3)
    assert few == pytest.approx(expected_seconds(Case.of(**free, iterations=10)))
    converged = record(iterations=0)
    to_tolerance = expected_seconds(Case.of(mesh="m", ranks=2, sets=3, warmups=0), [converged])
    assert to_tolerance == pytest.approx(LAUNCH + 1.0 + 3 * 0.5)


def test_a_mesh_file_is_as_large_as_in_its_record_and_else_unknown():
    known = record()
    known = replace(known, case=known.case.with_(mesh="part.vtu"))
    assert equations_of(Case.of(mesh="part.vtu"), [known]) == M
    assert expected_seconds(Case.of(mesh="part.vtu")) is None
    assert expected_seconds(Case.of(ranks=2, **FIXED | {"mesh": "part.vtu"}), [known])


def test_a_solution_by_multigrid_is_expected_to_take_seconds_on_a_mesh_that_takes_plain_cg_a_minute():
    plain, multigrid = (Case.of(mesh="l", precond=name, sets=10) for name in ("none", "multigrid"))
    assert expected_seconds(plain) > 10 * expected_seconds(multigrid) > 200
