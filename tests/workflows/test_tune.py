"""The closed loop on machines whose speeds are known."""

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_records import lasting
from planted_tuning import FROZEN, planted

from fembench.base.errors import InputError, RunFailedError
from fembench.base.progress import telling
from fembench.base.units import percent
from fembench.records.case import Case
from fembench.records.quiet import disturbance
from fembench.records.validity import SETS, WARMUPS
from fembench.records.verdict import Rule, Verdict
from fembench.records.weights import UNDECIDED, loud_notes, shares_of
from fembench.stats.compare import median_ratio
from fembench.weights.advice import BOTH, ON_CORES, ON_DEVICES, advise, choose_kind
from fembench.weights.host_speed import host_speeds
from fembench.weights.observe import run_seconds
from fembench.weights.proof import prove
from fembench.weights.proof_text import as_tree, conclusions, tables
from fembench.weights.stale import doubts, first_costs, warning
from fembench.workflows.tune import EFFORT, Tuned, close_the_loop, proven


def looped(run, ranks=2, **options):
    """The trail of the closed loop over these runs."""
    return close_the_loop(Case.of(mesh="m1", ranks=ranks, iterations=50), run, **options)


def as_text(proof, weights, everything=False):
    """What the verb prints."""
    return "\n\n".join([*conclusions(proof, weights), tables(proof, weights, everything)])


def tuned(*speeds, **options):
    """(trail, proof) of ranks with these speeds."""
    trail = looped(planted(speeds, **options), len(speeds), rounds=2, pairs=7)
    return trail, prove(trail)


@pytest.mark.parametrize("speeds", [(1, 0.5), (1, 1, 0.5, 0.5), (1, 0.7), (1, 0.13)])
def test_planted_speeds_are_found_and_their_gain_is_captured(speeds):
    trail, proof = tuned(*speeds)
    ideal = [s / sum(speeds) for s in speeds]
    assert shares_of(trail.weights) == pytest.approx(ideal, rel=0.02)
    assert proof.advice.kind == "use"
    assert proof.captured.value >= 0.95
    assert proof.weighted <= 1.02 * proof.ideal
    assert proof.equal == pytest.approx(proof.ideal * sum(speeds) / len(speeds) / min(speeds), rel=0.03)
    assert proof.imbalance[1] < 0.02 < proof.imbalance[0]
    assert proof.e_het == pytest.approx((len(speeds) * min(speeds) / sum(speeds), 1.0), rel=0.02)
    assert len(trail.equal) == len(trail.weighted) == 7
    compared = {id(r) for r in trail.equal + trail.weighted}
    assert not compared & {id(record) for record, _ in trail.rounds}  # not those of the weights
    assert warning(trail.weights, trail.weighted[0]) == ""
    text = as_text(proof, trail.weights)
    assert f"verdict: use these weights: {100 * (1 - proof.weighted / proof.equal):.0f}"[:-1] in text
    assert "captured gain" in text
    assert as_text(proof, replace(trail.weights, synthetic="emulated speeds")).startswith("SYNTHETIC")


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        ((1, 0.5), "shares: 0.667 : 0.333\n"),
        ((1,) * 6 + (0.5,) * 4, "shares: node8 0.750 on 6 ranks, node00 0.250 on 4 ranks (--all: by rank)\n"),
    ],
)
def test_the_shares_are_printed_those_of_many_ranks_by_host(speeds, said):
    hosts = ("node8",) * 6 + ("node00",) * 4 if len(speeds) > 2 else PAIR
    trail = looped(planted(speeds, hosts=hosts, noise=0.0), len(speeds), rounds=1, pairs=2)
    assert said in as_text(prove(trail), trail.weights)


def test_a_machine_that_drifts_is_held_against_the_ideal_of_each_run():
    trail, steady = tuned(1, 0.5, noise=1e-4)
    slower = np.linspace(1.0, 2.0, len(trail.equal))
    for records, factors in ((trail.equal, slower), (trail.weighted, slower[::-1])):
        records[:] = [lasting(record, factor) for record, factor in zip(records, factors)]
    drifting = prove(trail)
    assert drifting.over_ideal == pytest.approx(steady.over_ideal, rel=1e-3)
    assert drifting.captured.value == pytest.approx(steady.captured.value, rel=0.01)
    assert drifting.captured.interval.low > 0.95


def test_no_run_is_warned_of_weights_that_proved_their_gain():
    trail, proof = tuned(1, 0.5)
    doubtful = replace(trail.weights, notes=("PROVISIONAL: D1 not met", "DISTURBED: others"))
    notes = proven(doubtful, proof).notes
    assert notes == ("gain proven by pairs of runs; PROVISIONAL: D1 not met", "DISTURBED: others")
    assert proven(doubtful, tuned(1, 1)[1]) is doubtful


def test_equal_ranks_have_no_detectable_gain():
    _, proof = tuned(1, 1)
    assert proof.advice.kind == "no gain"
    assert proof.speeds.slow == []
    worse = advise([1.0] * 8, [1.25] * 8, (0.6, 0.4), proof.owners)
    assert worse.text == "no detectable gain (equal shares take 20.0 % less time, n = 8)"


@pytest.mark.parametrize(("pairs", "speeds"), [(1, (1, 1)), (3, (1, 1)), (7, (1, 1)), (1, (1, 0.6))])
def test_a_mesh_too_small_to_tell_speeds_is_said_to_be_and_its_ranks_are_not_called_equal(pairs, speeds):
    brief = [100 * speed for speed in speeds]  # an iteration takes 18 µs instead of 1.8 ms
    trail = looped(planted(brief), pairs=pairs)
    proof, least = prove(trail), min(speeds)
    text = as_text(proof, trail.weights)
    assert proof.advice.kind == as_tree(proof, trail.weights)["verdict"] == "too short"
    why = r"ranks compute for [\d.]+ µs in an iteration, expected at least 50 µs; use a larger mesh"
    assert re.search(f"verdict: too short to tell: {why}", text)
    assert "found no slow one" not in text
    assert ("slowest rank in the equal runs: too short to tell" in text) == (least == 1 or pairs == 1)
    assert tuned(100, 50)[1].advice.kind == "use"  # a proven gain counts on a small mesh, too


def with_room(run, *most):
    """Runs that are refused while the part of a rank is more of the mesh than its device holds."""

    def refusing(case, word, **where):
        n = case.placement.ranks
        shares = (
            [float(s) for s in case.placement.shares.split(",")] if case.placement.shares else [1 / n] * n
        )
        for rank, (share, room) in enumerate(zip(shares, most)):
            if share > 1.001 * room:
                cells = f"room for {round(1e6 * room)} of its {round(1e6 * share)} cells"
                raise InputError(
                    f"device of rank {rank}: its part needs 2 GiB, G has 1 GiB, {cells}: give it less"
                )
        return run(case, word, **where)

    return refusing


def test_equal_shares_that_devices_cannot_hold_give_way_to_the_most_equal_that_they_hold():
    trail = looped(with_room(planted((0.1, 0.2, 1, 1)), 0.1, 0.2), 4, rounds=1, pairs=2)
    cases = [record.case.placement.shares for record in trail.equal]
    assert cases == ["0.1,0.2,0.35,0.35"] * 2
    found = Tuned(trail.weights, prove(trail), Path("w.json"), Path("runs"))
    assert found.conclusions()[0] == (
        "equal parts do not fit into the memory of the devices; runs called equal have shares "
        "0.1 : 0.2 : 0.35 : 0.35, the most equal that fit"
    )
    assert not any(note.startswith("equal parts") for note in tuned(1, 0.5)[0].weights.notes)


def test_a_mesh_that_all_devices_together_cannot_hold_is_refused_as_the_run_was():
    with pytest.raises(InputError, match="room for 400000 of its 600000 cells"):
        looped(with_room(planted((1, 1)), 0.4, 0.4))


def test_a_device_with_room_for_next_to_nothing_is_refused_in_its_own_words():
    with pytest.raises(InputError, match="room for 9 of its 500000 cells: give it less"):
        looped(with_room(planted((1, 1)), 9e-6))


def test_shares_are_called_the_most_equal_that_fit_once_a_run_has_taken_them():
    """The device holds less of the part that it then gets than it held of the first."""
    rooms, lines = iter(["400000 of its 500000", "300000 of its 400000"]), []

    def run(case, word, **where):
        if room := next(rooms, ""):
            raise InputError(f"device of rank 0: its part needs 2 GiB, G has 1 GiB, room for {room} cells")
        return planted((1, 1))(case, word, **where)

    with telling(lines.append):
        looped(run, rounds=1, pairs=1)
    (said,) = [line for line in lines if "the most equal that fit" in line]
    assert said.endswith("runs called equal have shares 0.3 : 0.7, the most equal that fit")


def test_a_rank_that_cannot_help_is_to_be_left_out():
    _, proof = tuned(1, 1, 1, 0.02)
    assert proof.advice.kind == "leave out"
    assert "leave rank 3 out: adding it can gain at most 0.66 %" in proof.advice.text
    assert proof.speeds.unknown.startswith("4 ranks take turns on 2 cores")
    trail, proof = tuned(1, 1, 1, 0.005)  # it can add almost nothing: two turns show that
    assert (len(trail.equal), len(trail.weighted), proof.advice.kind) == (2, 2, "leave out")


PAIR = ["node8", "node00"]


def test_a_slow_host_that_helps_is_used_and_the_run_without_it_shown():
    trail, proof = tuned(1, 0.25, hosts=PAIR)
    assert (proof.left_out, len(trail.without)) == ("node00", 7)  # as many as turns
    assert {r.case.placement.ranks for r in trail.without} == {1}
    assert proof.without == pytest.approx(proof.ideal * 1.25, rel=0.02)
    assert proof.advice.kind == "use"
    assert proof.without / proof.weighted == pytest.approx(1.25, rel=0.01)
    more = median_ratio(run_seconds(trail.without), run_seconds(trail.weighted)) - 1
    assert f"without node00 {percent(more)} more" in proof.advice.text
    assert "weighted, without node00" in as_text(proof, trail.weights)
    assert as_tree(proof, trail.weights)["without_seconds"] == proof.without


def test_a_slow_host_that_costs_more_to_talk_to_than_it_computes_is_to_be_left_out():
    _, proof = tuned(1, 0.25, hosts=PAIR, message=0.4)  # ideal: 0.69 s of 0.86 alone
    assert proof.advice.kind == "leave out"
    assert "leave node00 out: adding it can gain at most 20 % (without node00" in proof.advice.text
    assert "less time" in proof.advice.text


def test_hosts_that_are_needed_or_cannot_be_left_out_are_not():
    assert tuned(1, 0.5, hosts=PAIR)[0].without == []  # can save 33 %
    trail = looped(planted((1, 0.25), hosts=PAIR), can_do_without=lambda host: False)
    assert (trail.without, trail.left_out) == ([], "")


def test_an_emulated_rank_is_left_out_with_its_speed_and_its_share():
    case = Case.of(mesh="m1", ranks=3, iterations=50, emulate="1,0.5,0.25")
    ran = []

    def run(case, word, *, without=""):
        ran.append((case.synthetic.emulate, without))
        return planted([float(s) for s in case.synthetic.emulate.split(",")])(case, word)

    trail = close_the_loop(case, run, pairs=1)
    assert trail.left_out == "rank 2"
    assert ran[-1] == ("1,0.5", "")
    first, second = map(float, trail.without[0].case.placement.shares.split(","))
    assert first / second == pytest.approx(2.0, rel=0.03)


def test_the_order_within_turns_is_reversed_in_every_second_one():
    words, run = [], planted((1, 0.25), hosts=PAIR)

    def noted(case, word, **options):
        words.append(word)
        return run(case, word, **options)

    looped(noted, rounds=1, pairs=2)
    turns = [word.partition(", ")[2] for word in words if word.startswith("pair")]
    assert turns == ["equal", "weighted", "without node00", "without node00", "weighted", "equal"]


def test_the_default_is_enough_turns_to_prove_a_gain():
    trail = looped(planted((1, 0.5)))
    assert len(trail.equal) == len(trail.weighted) == 6
    assert prove(trail).advice.kind == "use"


LOUD = {"others_percent": 80.6, "others_resolution": 0.8}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (LOUD, "others used up to 80.6 % of the CPU time on node8, node00 in 2 of 14 runs: "),
        (
            {"steal_percent": 5.0},
            "the hypervisor took up to 5 % of the CPU time on node8, node00 in 2 of 14 runs: ",
        ),
        ({"throttled_percent": 40.0, "quota_group": "slurm/job"}, ""),  # the job's own: a slow host
        ({"throttled_percent": 40.0, "quota_group": "fembench.pair/node00"}, ""),
        ({"others_percent": 3.0, "others_resolution": 2.0}, ""),
        ({"steal_percent": 2.0, "others_percent": 1.0}, ""),
    ],
)
def test_shares_from_runs_that_lost_cpu_time_are_said_to_be_doubtful_and_what_to_do(facts, said):
    count, run = [], planted((1, 0.5), hosts=PAIR)

    def disturbed(case, word, **options):  # the runs of the weights: none of the comparison
        count.append(word)
        return on_hosts_with(run(case, word), **facts) if len(count) <= 2 else run(case, word)

    trail = looped(disturbed, rounds=2)
    assert len(trail.records) == len(count) == 14
    proof = prove(trail)
    assert proof.disturbed.startswith(f"DISTURBED: {said}" if said else "")
    assert bool(proof.disturbed) == bool(said)
    assert as_tree(proof, trail.weights)["disturbed"] == proof.disturbed
    head, _, tables = as_text(proof, trail.weights, everything=True).partition("| rank")
    assert head.startswith("DISTURBED" if said else "verdict: ")
    assert ("speeds and shares may be far off" in head) == bool(said)
    assert "DISTURBED" not in tables
    assert trail.weights.notes[0].startswith("DISTURBED") == bool(said)


def loud_in(loud, speeds=(1, 0.5), beside=(1, 0.5), pairs=8):
    """A tuning in which the runs named `loud`, or all, were made beside foreign work, at the other speeds."""
    quiet, busier = planted(speeds, hosts=PAIR), planted(beside, hosts=PAIR)

    def run(case, word, **options):
        if loud == "all" or word in loud:
            return on_hosts_with(busier(case, word, **options), **LOUD)
        return quiet(case, word, **options)

    return looped(run, pairs=pairs)


def test_nothing_follows_from_runs_beside_foreign_work_and_the_verdict_says_so():
    trail = loud_in("all", beside=(1, 0.01))  # without foreign work: leave node00 out
    proof = prove(trail)
    text = as_text(proof, trail.weights)
    assert (proof.advice.kind, proof.advice.leave_out) == ("disturbed", ())
    assert "verdict: none: DISTURBED: nothing follows from these runs" in text
    assert "slowest host in the equal runs: not available: DISTURBED" in text
    assert text.count("others used up to 80.6 % of the CPU time on node8, node00") == 1
    assert proof.speeds.slow == []


@pytest.mark.parametrize(
    ("loud", "pairs"),
    [
        ("all", ["pair 1/2: DISTURBED; 1 pair to come, in about 0:00", "pair 2/2: DISTURBED"]),
        (["pair 2/2, weighted"], ["1 pair to come, in about 0:00", "pair 2/2: DISTURBED"]),
        ([], ["1 pair to come, in about 0:00"]),
    ],
)
def test_a_tuning_says_after_its_first_run_and_after_each_pair_that_it_is_disturbed_and_how_long_it_takes(
    loud, pairs
):
    told = []
    with telling(told.append):
        loud_in(loud, pairs=2)
    notes = [line for line in told if line.startswith("note: ")]
    assert told[: len(notes)] == notes
    ends = "then repeat; until then, no verdict is possible: stop this one with Ctrl-C"
    assert [line.endswith(ends) for line in notes] == [True] * (loud == "all")
    assert [line for line in told if "pair" in line] == [f"tune: {text}" for text in pairs]


@pytest.mark.parametrize(("loud", "doubted"), [("all", True), ([], False)])
def test_weights_that_nothing_follows_from_are_marked_as_such(tmp_path, loud, doubted):
    """In the line of their file, and in the file, also if the runs that they are from were quiet."""
    trail = loud_in(loud)
    proof = prove(trail)
    quiet = loud_in([]).weights
    weights = proven(quiet, proof)
    assert [note for note in loud_notes(weights) if note == proof.disturbed] == [proof.disturbed] * doubted
    assert (weights.notes[:1] == (f"{UNDECIDED}: every pair of runs was DISTURBED",)) == doubted
    assert proven(weights, proof).notes == weights.notes
    found = Tuned(weights, proof, tmp_path / "w.json", tmp_path)
    assert found.where == f"{tmp_path / 'w.json'}" + WARNED * doubted


WARNED = " (no verdict: every pair of runs was DISTURBED)"


def test_turns_beside_foreign_work_are_left_out_of_the_comparison():
    trail = loud_in(["pair 2/8, equal", "pair 5/8, weighted"], beside=(1, 0.02))
    proof, quiet = prove(trail), prove(loud_in([]))
    assert (proof.advice.kind, proof.advice.comparison.n) == ("use", 6)
    assert proof.advice.text.endswith("; 2 pairs beside foreign work left out")
    assert proof.equal == pytest.approx(quiet.equal, rel=0.01)
    assert proof.disturbed.startswith("DISTURBED: others used up to 80.6 %")


def test_a_host_is_not_left_out_for_a_share_that_was_measured_beside_foreign_work():
    trail = loud_in(["equal", "round 1"], speeds=(1, 1), beside=(1, 0.01), pairs=2)
    assert shares_of(trail.weights)[1] < 0.02
    assert prove(trail).advice.kind != "leave out"


def test_shares_that_no_turn_shows_to_be_faster_are_not_to_be_proven_and_may_be_those_of_disturbed_runs():
    loud = loud_in(["equal", "round 1"], pairs=2)
    first = "the shares come from DISTURBED runs: repeat tune; "
    assert prove(loud).advice.text.startswith(f"{first}not proven: weighted was faster in 2 of 2 turns")
    assert "DISTURBED" not in prove(loud_in(["equal", "round 1"])).advice.text  # the gain is proven
    left = loud_in(["equal", "round 1", "pair 1/4, equal"], pairs=4)
    lines = as_text(prove(left), left.weights)
    assert "not available" not in lines  # three quiet runs are enough for speeds
    few = loud_in(["pair 1/3, equal"], pairs=3)
    said = (
        "not available: 2 runs on these hosts (1 more DISTURBED), and an interval needs 3; repeat the runs\n"
    )
    assert said in as_text(prove(few), few.weights)


def test_a_rank_whose_speed_scatters_from_run_to_run_is_not_named():
    """In the sets of each run it is surely another one; over the runs, none."""
    number = iter(range(99))

    def run(case, word, **options):
        return planted([1, 0.8 if next(number) % 3 else 1.3])(case, word, **options)

    trail = looped(run)
    proof = prove(trail)
    assert proof.speeds.slow == []
    assert (
        "slowest rank in the equal runs: none: 6 runs found no slow one among 2 ranks (intervals"
        in as_text(proof, trail.weights)
    )


def test_a_slow_host_is_named_with_the_interval_and_the_cause_that_every_table_prints():
    trail, proof = tuned(1, 0.5, hosts=PAIR)
    quota = {"cpu_quota": 0.5, "throttled_percent": 40.0}
    trail.equal[:] = [on_hosts_with(run, only="node00", **quota) for run in trail.equal]
    proof = prove(trail)
    (slow,) = proof.speeds.slow
    assert slow == host_speeds(None, trail.equal).of("node00")
    assert slow.low < slow.speed < slow.high
    assert slow.speed == pytest.approx(0.5, rel=0.02)
    cause = "a quota of 0.5 CPUs withheld 40 % of its CPU time"
    assert (slow.cause, as_tree(proof, trail.weights)["speeds"][1]["cause"]) == (cause, cause)
    line = "slowest host in the equal runs: node00, 50 % of the typical host (95 %: "
    assert line in as_text(proof, trail.weights)


@pytest.mark.parametrize(
    ("pairs", "gain", "noise", "captured", "verdict"),
    [
        (
            1,
            [
                "gain",
                "unknown",
                "1 - median over pairs of weighted / equal, interval unknown (needs at least 6 pairs)",
            ],
            ["noise, A/A", "unknown", "needs at least 2 pairs"],
            ["unknown", "interval unknown (needs at least 3 pairs); at the speeds of each run"],
            "none: noise unknown (needs at least 2 pairs); repeat with --pairs 6",
        ),
        (
            2,
            [
                "gain",
                "33.1 %",
                "1 - median over pairs of weighted / equal, interval unknown (needs at least 6 pairs)",
            ],
            ["noise, A/A", "0.5 %", "n = 2 pairs"],
            ["1.00", "interval unknown (needs at least 3 pairs); at the speeds of each run"],
            "not proven: weighted was faster in 2 of 2 turns (33.1 % less time, captured gain 1.00); 2",
        ),
    ],
)
def test_too_few_pairs_leave_gain_noise_and_verdict_unknown(pairs, gain, noise, captured, verdict):
    trail = looped(planted((1, 0.5)), pairs=pairs)
    text = as_text(prove(trail), trail.weights)
    rows = {cells[0]: cells for line in text.splitlines() if (cells := _cells(line))}
    assert (rows["gain"], rows["noise, A/A"], rows["captured gain"][1:]) == (gain, noise, captured)
    assert f"verdict: {verdict}" in text
    assert "inf" not in text.replace("interface", "")


def _cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def test_settled_shares_need_no_further_round():
    trail = looped(planted((1, 0.5), noise=1e-6), rounds=9, pairs=1)
    assert len(trail.rounds) == 2
    assert trail.weights is trail.rounds[0][1]


def test_a_second_round_that_makes_it_worse_is_not_taken():
    def run(case, word, **options):  # who has little to do seems twice as fast as it is
        light = case.placement.shares and float(case.placement.shares.split(",")[1]) < 0.3
        made = planted((1, 0.25), noise=1e-3)(case, word, **options)
        sets = tuple(replace(s, seconds=hidden(s.seconds)) for s in made.sets)
        return replace(made, sets=sets) if light else made

    def hidden(seconds):
        (fast, slow), index = seconds, FROZEN.phases.index
        light = list(slow)
        light[index("cg.spmv_interior")] /= 2
        return (fast, tuple(light))

    trail = looped(run, rounds=2, pairs=2)
    assert [shares_of(w)[1] for w, _ in trail.tried] == pytest.approx([0.2, 0.31], rel=0.05)
    assert shares_of(trail.weights)[1] == pytest.approx(0.2, rel=0.05)
    assert {r.case.placement.shares for r in trail.weighted} == {trail.tried[0][1].case.placement.shares}


def test_a_run_that_fails_ends_the_tuning():
    def run(case, word, **options):
        raise RunFailedError("rank 1 was ended by signal 9")

    with pytest.raises(RunFailedError, match="signal 9"):
        looped(run)


def test_the_text_says_that_runs_are_provisional_how_gain_is_paired_and_who_is_slow():
    few = Rule(id="D1", ok=False, value="1 warm-up", threshold="2 warm-ups", note="more sets")
    drift = Rule(id="D3", ok=False, value="drift = 0.3", threshold="<= 0.05")
    trail, _ = tuned(1, 0.5)
    for first, turns in ((1, trail.equal), (0, trail.weighted)):
        turns[first:] = [replace(one, verdict=Verdict("VALID", (), ())) for one in turns[first:]]
    trail.equal[0] = replace(trail.equal[0], verdict=Verdict("PROVISIONAL", (), (few, drift)))
    assert [record.verdict.status for record in trail.records].count("PROVISIONAL") == 3  # two of the rounds
    proof = prove(trail)
    text = as_text(proof, trail.weights)
    assert "PROVISIONAL (3 of 16 runs): 1 warm-up (D1), and 2 more reasons; more sets\n" in text
    assert "median over pairs" in text
    line = "slowest rank in the equal runs: rank 1, 50 % of the typical rank (95 %: 50 to 50 %)"
    assert f"{line}\n" in text
    assert "speeds changed" not in text
    swapped = replace(trail.weights, ranks=trail.weights.ranks[::-1])
    assert "rank 1 was faster in the runs that the weights come from" in as_text(proof, swapped)


def test_shares_of_ranks_that_shared_cores_are_marked_before_the_verdict_and_where_they_are_used():
    def crowded(case, word, **options):
        made = run(case, word, **options)
        return replace(made, environment=replace(made.environment, oversubscribed=True))

    run = planted((1, 0.5))
    trail = looped(crowded)
    proof = prove(trail)
    first, second, *_ = filter(None, as_text(proof, trail.weights).splitlines())
    assert first.startswith("OVERSUBSCRIBED in 14 of 14 runs: more ranks than cores")
    assert second.startswith("verdict: ")
    (note,) = (note for note in loud_notes(trail.weights) if note.startswith("OVERSUBSCRIBED"))
    assert f"weights: {note}" in doubts(trail.weights, "")


def test_every_gain_is_that_of_pairs_on_a_machine_that_drifts():
    alone = {BOTH: (1.0, 2.0, 4.0), ON_DEVICES: (1.25, 2.5, 5.0), ON_CORES: (2.0, 2.5, 40.0)}
    text = choose_kind(alone).text
    assert "20.0 % less time than device alone" in text
    assert f"50.0 % less than {ON_CORES}" in text  # medians: 20.0 %


def test_a_run_of_the_default_effort_has_as_many_sets_as_rule_d1_asks_for():
    case = Case.of(mesh="m1", ranks=2, **EFFORT)
    assert case.effort.warmups >= WARMUPS
    assert case.effort.sets >= SETS


def test_the_first_set_shows_what_a_cell_costs_on_each_host_whatever_its_share():
    record = planted((1, 1, 0.5), hosts=["a", "a", "b"], noise=0)(
        Case.of(mesh="m1", ranks=3, iterations=50, shares="1,2,3"), "first"
    )
    slower = lasting(record, 1, 9, *[1] * (len(record.sets) - 2))
    assert first_costs(slower) == pytest.approx({"a": 1e-6, "b": 2e-6}, rel=1e-4)


@pytest.mark.parametrize(
    ("speeds", "hosts", "said"),
    [
        ((1, 0.5 / 1.095), PAIR, ()),
        ((1, 0.5 / 1.105), PAIR, ("stale", "node00")),
        ((1, 1, 1), [*PAIR, "third"], ("weights for 2 ranks, the run has 3",)),
    ],
)
def test_weights_of_other_ranks_or_of_a_host_that_changed_by_a_tenth_are_stale(speeds, hosts, said):
    trail, _ = tuned(1, 0.5, hosts=PAIR, noise=0)
    found = warning(trail.weights, tuned(*speeds, hosts=hosts, noise=0)[0].equal[0])
    assert bool(found) == bool(said)
    assert all(word in found for word in said)


def test_weights_are_of_another_kernel_only_where_something_known_differs():
    trail, _ = tuned(1, 0.5, noise=0)
    of_profile = replace(trail.weights, precond="")
    assert warning(of_profile, trail.equal[0]) == ""
    other = planted((1, 0.5), noise=0)(
        Case.of(mesh="m1", ranks=2, iterations=50, storage="csr", precond="jacobi"), "first"
    )
    for weights, measured in ((of_profile, "sym"), (trail.weights, "sym, none")):
        said = f"the weights were measured with {measured}, the run has csr, jacobi; speeds differ by kernel"
        assert warning(weights, other) == said


def test_foreign_work_names_the_hosts_that_lost_most_and_counts_runs_where_there_are_several():
    made = tuned(1, 0.5)[0].equal[0].environment
    percent = {"a": 5.0, "b": 50.0, "c": 2.5, "d": 20.0, "e": 7.0}
    hosts = tuple(
        replace(made.hosts[0], name=name, others_percent=p, others_resolution=0.0)
        for name, p in percent.items()
    )
    loud, quiet = replace(made, hosts=hosts), replace(made, hosts=(replace(hosts[0], others_percent=2.0),))
    said = "DISTURBED: others used up to 50 % of the CPU time on b, d, e and 2 more"
    assert disturbance([loud]).startswith(f"{said}: speeds and shares may be far off; stop the other work")
    assert disturbance([loud, quiet], "times").startswith(f"{said} in 1 of 2 runs: times may be far off")
    unsure = replace(made, hosts=(replace(hosts[0], others_percent=1.0, others_resolution=3.0),))
    unknown = "in 1 of 3 runs; of 1 run it is not known what others used: times may be far off"
    assert disturbance([loud, quiet, unsure], "times").startswith(f"{said} {unknown}")
    assert disturbance([quiet]) == ""
    stolen = replace(quiet, hosts=(replace(quiet.hosts[0], steal_percent=17.2),))
    both = disturbance([loud, stolen, loud], "times", "old")
    taken = "the hypervisor took up to 17.2 % of the CPU time on a in 1 of 3 runs of old"
    assert both.startswith(
        f"{said} in 2 of 3 runs of old, {taken}: times may be far off; stop the other work"
    )


MIXED = ("gpu", "cpu", "cpu")


def mixed(*speeds, pairs=6, start=0.0, **options):
    """(trail, proof) of a device and two cores with these speeds."""
    run = planted(speeds, devices=MIXED, start=start, **options)
    case = Case.of(mesh="m1", ranks=3, iterations=50, device="gpu,2*cpu")
    trail = close_the_loop(case, run, pairs=pairs)
    return trail, prove(trail)


@pytest.mark.parametrize(
    ("speeds", "options", "kind", "second"),
    [
        ((4, 1, 1), {}, "use both", "device alone"),
        ((20, 1, 1), {"message": 0.1}, "device alone", "use both"),
        ((1, 1, 1), {"start": 1.0}, "CPU alone", "use both"),
    ],
)
def test_of_a_device_and_cores_the_fastest_choice_is_proven_by_runs_of_all_three(
    speeds, options, kind, second
):
    trail, proof = mixed(*speeds, **options)
    assert [len(runs) for runs in trail.alone.values()] == [6, 6]
    assert [trail.alone[name][0].case.devices for name in trail.alone] == [("gpu",), ("cpu", "cpu")]
    times = {"use both": proof.weighted, **proof.alone}
    assert min(times, key=times.get) == proof.advice.kind == kind
    saved = percent(1 - times[kind] / times[second])
    assert proof.advice.text.startswith(f"{kind}: {saved[:2]}")
    assert f"less time than {second} (95 %: " in proof.advice.text
    text = as_text(proof, trail.weights)
    assert "time per set, device alone" in text
    assert as_tree(proof, trail.weights)["alone_seconds"] == proof.alone


def test_devices_that_cannot_hold_the_mesh_are_not_run_alone_and_the_verdict_says_why():
    trail, proof = mixed(20, 1, 1, held=(0.5, 1, 1), message=0.4)  # alone it would be the fastest
    assert shares_of(trail.weights)[0] == pytest.approx(0.5, rel=1e-3)
    assert [*proof.alone] == [ON_CORES]
    assert proof.advice.kind in (BOTH, ON_CORES)
    assert proof.advice.text.endswith("; device alone was not run: memory for 50.0 % of the mesh")
    assert "was not run" not in mixed(20, 1, 1)[1].advice.text


def test_devices_alone_share_the_mesh_by_their_speeds_and_memories(tmp_path):
    devices, speeds = ("gpu", "gpu", "cpu"), (20, 20, 1)
    run = planted(speeds, devices=devices, held=(0.4, 0.7, 1), message=0.2)
    trail = close_the_loop(Case.of(mesh="m1", ranks=3, iterations=50, device="2*gpu,cpu"), run)
    proof, case = prove(trail), trail.alone[ON_DEVICES][0].case
    assert [float(share) for share in case.placement.shares.split(",")] == pytest.approx([0.4, 0.6], rel=1e-3)
    found = Tuned(trail.weights, proof, tmp_path / "w", tmp_path, case)
    typed = f"`fembench run m1 --ranks 2 --device gpu --shares {case.placement.shares}`"
    assert typed in found.conclusions()[-1]


def test_ranks_that_are_faster_alone_are_named_in_a_command(tmp_path):
    trail, proof = mixed(20, 1, 1, message=0.1)
    found = Tuned(trail.weights, proof, tmp_path / "w", tmp_path, trail.alone["device alone"][0].case)
    assert "`fembench run m1 --ranks 1 --device gpu`" in found.conclusions()[-1]


def test_a_choice_that_the_runs_do_not_prove_is_not_made():
    _, proof = mixed(4, 1, 1, pairs=5)
    assert proof.advice.kind == "not proven"
    assert proof.advice.text.endswith("; repeat with --pairs 6")
    both, gpu = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0], [1.01, 1.0, 1.0, 0.99, 1.02, 0.98]
    advice = choose_kind({"use both": both, "device alone": gpu, "CPU alone": [3.0] * 6})
    assert advice.kind == "no gain"
    assert "not proven: " in advice.text
    assert "66.7 % less than CPU alone" in advice.text


def test_a_device_that_cannot_help_gets_one_cell_and_the_weights_say_to_leave_it_out():
    weights = mixed(1, 1, 1, start=1.0, pairs=1)[0].rounds[1][1]
    assert weights.ranks[0].low is None
    assert any(note.startswith("leave rank 0 (Some GPU) out: its fixed time") for note in weights.notes)


def test_a_device_that_is_slow_on_small_parts_gets_the_share_of_its_line():
    """0.1 + N / 4e6 = (864000 - N) / 2e6 at N = 442667; at its speed in the equal run it gets 393700."""
    trail, _ = mixed(4, 1, 1, start=0.1, noise=0.001)
    assert shares_of(trail.rounds[0][1])[0] == pytest.approx(393_700 / 864_000, rel=0.01)
    assert shares_of(trail.rounds[1][1])[0] == pytest.approx(442_667 / 864_000, rel=0.01)


def test_ranks_that_run_alone_keep_their_hosts():
    hosts = ["a", "a", "b"]
    trail, _ = mixed(4, 1, 1, hosts=hosts, pairs=2)  # the runner compares them
    assert len(trail.alone["CPU alone"]) == 2
