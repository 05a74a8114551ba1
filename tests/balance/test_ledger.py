"""The ledger in records, tables and plots; records from before it are still read."""

import inspect

import numpy as np
import pytest
from msgspec.structs import replace
from planted_records import FROZEN
from scipy.stats import ttest_ind

from fembench.balance.control import Settings, policy_of
from fembench.balance.observation import Tuning
from fembench.base.errors import InputError
from fembench.methods.policies import POLICIES
from fembench.records.case import new_case
from fembench.records.ledger import BalanceFacts, Candidate, Ledger, Look, Move, accounts, bill
from fembench.records.store import load, save
from fembench.records.validity import judge
from fembench.report.balance_tables import balance_tables, prediction_errors, spread
from fembench.report.page import build
from fembench.report.table import to_json


def look(iteration, times, moves=(), *, predicted, measured, superstep, unmoved=0.41, cost=0.01):
    return Look(
        iteration=iteration,
        alpha=2,
        next_alpha=1 if moves else 4,
        rank_time=times,
        superstep=superstep,
        balanced=not moves,
        reachable=True,
        n_candidates=len(moves),
        candidates=tuple(Candidate(m.block, m.source, m.target, 0.1, 0.0, 0.02) for m in moves),
        moves=tuple(moves),
        predicted=predicted,
        remaining=100,
        look_seconds=cost / 2,
        move_seconds=cost / 2,
        measured=measured,
        unmoved=unmoved,
    )


def ledger():
    move = Move(block=1, source=0, target=1, bytes=1000)
    back = Move(block=1, source=1, target=0, bytes=1000)
    return Ledger(
        looks=(
            look(10, (0.4, 0.2), [move], predicted=0.31, measured=0.3, superstep=0.41, cost=0.5),
            look(20, (0.3, 0.3), predicted=0.3, measured=0.3, superstep=0.3),
            look(60, (0.2, 0.4), [back], predicted=0.25, measured=0.45, superstep=0.4, unmoved=0.5, cost=0.5),
        ),
        owner=(0, 0, 1, 1),
        iterations=100,
        seconds=35.0,
    )


def balanced_record(**fields):
    facts = BalanceFacts(
        policy="amortised",
        owner=(0, 0, 1, 1),
        block_cells=(5, 5, 5, 5),
        block_bytes=(1000,) * 4,
        second_per_byte=1e-9,
        ledgers=(ledger(),),
    )
    old = load(FROZEN)
    case = old.case.with_(ranks=2, balance="amortised", blocks_per_rank=2)
    record = replace(old, case=case, balance=facts, **fields)
    return replace(record, verdict=judge(record))


def test_a_ledger_is_written_and_read_back_and_a_record_from_before_it_is_read(tmp_path):
    record, old = balanced_record(), load(FROZEN)
    assert load(save(record, tmp_path)) == record
    assert (old.balance, old.case.balancing.balance) == (None, "")


@pytest.mark.row("002:ledger")
def test_what_was_paid_and_when_it_breaks_even():
    first, second = accounts(ledger())
    assert first.gain == pytest.approx(0.11)
    assert first.break_even == 5  # 0.5 s at 0.11 s an iteration
    assert second.break_even == -1


def test_the_gain_is_the_time_saved_against_every_block_staying_where_it_began():
    paid = bill(ledger())
    assert paid.cost == pytest.approx(0.5 + 0.01 + 0.5)
    gain = 0.11 * 10 + 0.1 * 40 + 0.05 * 40
    assert paid.gain == pytest.approx(gain)
    assert (paid.net, paid.paid_back) == (pytest.approx(gain - 1.01), "yes")


def test_without_the_time_of_unmoved_blocks_it_is_not_known_whether_moves_paid_back():
    looks = tuple(replace(look, unmoved=-1.0) for look in ledger().looks)
    old = bill(replace(ledger(), looks=looks))
    assert (old.net, old.paid_back) == (None, "not known")


def test_a_look_without_a_window_after_it_is_in_no_account():
    looks = (replace(ledger().looks[0], measured=-1.0),)
    assert accounts(replace(ledger(), looks=looks)) == []
    assert prediction_errors(replace(ledger(), looks=looks)) == []


def test_max_min_mean_and_deviation_of_the_ranks():
    assert spread(ledger().looks[0]) == pytest.approx((0.4, 0.2, 0.3, 0.1))


def test_tables_say_paid_back_yes_or_no():
    runs, _, looks = balance_tables([balanced_record()])
    row = dict(zip((c.head for c in runs.columns), runs.rows[0]))
    assert (row["moves"], row["moved"], row["paid back"]) == (2, 2000, "yes")
    assert "paid back" not in [c.head for c in looks.columns]  # of a run, not of a look
    assert [r[-1] for r in looks.rows] == [5, None, None]  # breaks even after


def taking(seconds, policy, id):
    """A run of one set that takes `seconds`."""
    record = balanced_record(id=id)
    facts = replace(record.balance, policy=policy, ledgers=(replace(ledger(), seconds=seconds),))
    return replace(record, case=record.case.with_(balance=policy), balance=facts)


def gains(records):
    return to_json(balance_tables(records)[1])


def test_a_policy_stands_beside_the_run_without_moves():
    (row,) = gains([taking(50.0, "none", "still"), taking(35.0, "amortised", "moved")])
    assert (row["run"], row["gain_fraction"]) == ("moved", pytest.approx(0.3))
    assert row["gain_low_fraction"] is None  # of single runs


def test_a_run_without_moves_of_other_blocks_is_no_base():
    still = taking(50.0, "none", "still")
    still = replace(still, case=still.case.with_(blocks_per_rank=4))
    assert gains([still, taking(35.0, "amortised", "moved")]) == []


def test_the_gain_of_a_policy_is_over_runs():
    """30 % gained in every turn, both scattering: Welch's interval of the ratio, about 0.7."""
    still = [taking(t, "none", f"still-{t}") for t in (50.0, 52.0, 48.0)]
    moved = [taking(0.7 * t, "amortised", f"moved-{t}") for t in (50.0, 52.0, 48.0)]
    (row,) = gains([*still, *moved])
    assert (row["runs_none"], row["runs"], row["gain_fraction"]) == (3, 3, pytest.approx(0.3))
    logs = (np.log([r.balance.ledgers[0].seconds for r in group]) for group in (moved, still))
    low, high = ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    gain = row["gain_low_fraction"], row["gain_high_fraction"]
    assert gain == pytest.approx((1 - np.exp(high), 1 - np.exp(low)))


def test_the_report_has_the_tables_of_rebalancing_and_the_time_line(tmp_path):
    save(balanced_record(), tmp_path / "runs")
    text = build(tmp_path).read_text(encoding="utf-8")
    for part in ("Rebalancing: every look", "Rebalancing: cost and gain", "deviation", "alpha", "rank 1"):
        assert part in text


def test_the_verb_shows_a_ledger_and_refuses_a_run_without_one(tmp_path, output, refusal):
    path = save(balanced_record(), tmp_path)
    assert "paid back" in output("balance", str(path))
    assert "without --balance" in refusal("balance", str(FROZEN))


@pytest.mark.row("002:scen")
def test_the_verb_runs_a_scenario_with_every_policy(output, refusal):
    def scenario(policies):
        return ["balance", "--virtual", "slow-host", "--policies", policies]

    out = output(*scenario("amortised,greedy"))
    assert output(*scenario("amortised,greedy,none,greedy")) == out
    assert "VIRTUAL" in out
    assert "| amortised" in out
    assert "greedy" in refusal(*scenario("gready"))


@pytest.fixture
def looks_of(answer):
    """A function: (iteration, alpha) of each look of migbsp++ in a scenario whose band is out of reach."""

    def looks(*options):
        (scenario,) = answer("balance", "--virtual", "slow-host", "--policies", "migbsp++", *options)
        return [(look["iteration"], look["alpha"]) for look in scenario["runs"]["migbsp++"]["looks"]]

    return looks


def test_rules_of_the_interval_and_of_the_band_are_options(looks_of):
    usual = looks_of()
    assert {alpha for _, alpha in usual[1:]} == {1}
    assert {alpha for _, alpha in looks_of("--interval", "step", "--first-look", "3")} == {3}  # the least
    assert len(looks_of("--widen-after", "2")) < len(usual)  # balanced in the wider band
    assert len(looks_of("--band", "0.3")) < len(usual)


@pytest.mark.row("002:F4", "002:opt2")
def test_every_option_of_a_case_reaches_the_balancer():
    given = {"balance": "migbsp", "first_look": 3, "look_every": 7, "interval": "step", "widen_after": 4}
    given |= {"cooldown": 5, "ageing": 0.5, "band": 0.2, "origin": "mean", "net": True, "hysteresis": 0.01}
    settings = Settings.of(new_case(given, "case").balancing)
    tuning = Tuning(band=0.2, origin="mean", net=True, hysteresis=0.01)
    assert settings == Settings("migbsp", 3, 7, "step", 4, 5, 0.5, tuning)


@pytest.mark.row("002:F19")
def test_a_case_knows_every_policy():
    for name in POLICIES:
        assert new_case({"balance": name, "ranks": 2}, "case").balancing.balance == name
        assert [*inspect.signature(policy_of(name).choose).parameters][:2] == ["stats", "tuning"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"balance": "amortised", "recurrence": "pipelined"}, "standard"),
        ({"balance": "amortised", "precond": "chebyshev"}, "jacobi"),
        ({"balance": "amortised", "solver": "petsc", "storage": "aij"}, "own"),
        ({"balance": "amortised", "blocks_per_rank": 0}, "at least 1"),
        ({"balance": "amortised", "band": 1.0}, "between 0 and 1"),
        ({"balance": "amortised", "hysteresis": 1.0}, "at most 0.99"),
        ({"balance": "amortised", "ageing": 1.5}, "at most 1"),
        ({"balance": "amortised", "cooldown": -1}, "at least 0"),
        ({"balance": "amortised", "origin": "men"}, "'strict' or 'mean'"),
        ({"hot_spot": "1:1x2"}, "expected a policy"),
        ({"drain": "1@10"}, "expected a policy"),
        ({"balance": "best"}, "best"),
    ],
)
def test_a_case_that_cannot_be_balanced_is_refused(fields, word):
    with pytest.raises(InputError, match=word):
        new_case(fields, "case")
