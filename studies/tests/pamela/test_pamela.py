"""Acceptance A7, A8, A12, A13 of thesis-000: compiling and evaluating PAMELA."""

from dataclasses import replace

import pytest
from thesis_000 import PI, pi_model, toy

from fembench.base.errors import InputError
from fembench.model.closed_form import TimeRange
from fembench_studies.pamela import pamela_text
from fembench_studies.pamela.bounds import Setting, predict
from fembench_studies.pamela.costs import Conditionals, as_text, count, seconds
from fembench_studies.pamela.farm_models import share_of_primes
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.pamela.pamela import Operation
from fembench_studies.pamela.terms import bound_terms, expression

TERMS = {  # App. A.4, without the printed summand 0 of T_COORD
    "T_net": "sum[p](send[COORD,p](codeSize(task[1,0])))"
    " + sum[p](sum[i](send[COORD,p](dataSizeIn(task[1,id]))))"
    " + sum[p](sum[i](send[p,COORD](dataSizeOut(task[1,id]))))",
    "T_COORD": "task[0,0](COORD) + task[2,0](COORD)",
    "T_comp": "max[p](sum[i](task[1,id](p)))",
    "T_0": "task[0,0](COORD) + sum[p](send[COORD,p](codeSize(task[1,0])))"
    " + max[p](max[i](send[COORD,p](dataSizeIn(task[1,id]))))"
    " + max[p](max[i](task[1,id](p) + send[p,COORD](dataSizeOut(task[1,id])))) + task[2,0](COORD)",
}


@pytest.mark.row("000:F24-25", "000:A1-A10,A12-A14")
def test_the_four_terms_of_the_appendix():
    assert bound_terms(pi_model()) == TERMS


@pytest.mark.row("000:A1-A10,A12-A14")
def test_the_cost_of_a_task_as_the_appendix_prints_it():
    line = next(t for t in expression(pi_model()).splitlines() if t.startswith("ProcessData="))
    assert "10000000*(7*inter_access+2*inter_compare+" in line
    assert line.endswith("max(inter_access+inter_assign_int+inter_sum_int,0))")


def toy_setting():
    text = PI.read_text().replace("100*W[p]", "3*W[p]")
    model = pamela_text.parse(text)
    bodies = {"DistributeData": "a", "ProcessData": "b", "GatherResults": "c"}
    parts = {**model.parts, **{k: Operation(v) for k, v in bodies.items()}}
    return Setting(replace(model, parts=parts), toy(), 2, {1: {1: 2, 2: 1}})


@pytest.mark.row("000:F30", "000:A1-A10,A12-A14")
def test_toy_application():
    found = predict(toy_setting())
    expected = {
        "T_0": (4.15, 5.55),
        "T_COORD": (0.75, 0.75),
        "T_comp_1": (2, 4),
        "T_comp_2": (3, 4),
        "T_net": (0.8, 1.6),
    }
    assert {k: (v.low, v.high) for k, v in found.terms.items()} == {
        k: pytest.approx(v, abs=1e-12) for k, v in expected.items()
    }
    assert (found.seconds.low, found.seconds.high) == pytest.approx((4.15, 5.55), abs=1e-12)
    assert found.bottleneck == "T_0"


def branch(policy, q=None):
    model = pamela_text.parse("L={delay(0);}\nF={ cond; if{then;} }")
    prices = {"cond": TimeRange(1, 1), "then": TimeRange(10, 12)}
    decided = Conditionals(policy, {} if q is None else {"": q})
    return seconds(count(model.parts["F"], model), prices.__getitem__, decided)


@pytest.mark.row("000:F26")
@pytest.mark.parametrize(
    ("policy", "q", "low", "high"),
    [("worst", None, 11, 13), ("q", 0.0825, 1.825, 1.99), ("mean", None, 6, 7), ("best", None, 1, 1)],
)
def test_conditionals(policy, q, low, high):
    assert (branch(policy, q).low, branch(policy, q).high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.row("000:Q(prim)")
def test_q_of_the_prime_intervals():
    assert share_of_primes(5e5) == pytest.approx(0.0825, abs=5e-5)
    assert share_of_primes(1e6) == pytest.approx(0.0780, abs=5e-5)


def test_q_that_is_not_given_is_an_error():
    with pytest.raises(InputError, match="expected a probability"):
        branch("q")


def test_a_conditional_prints_its_policy():
    model = pamela_text.parse("L={delay(0);}\nF={ if[prime]{a;}else{b;} }")
    cost = count(model.parts["F"], model)
    assert as_text(cost) == "max(inter_a,inter_b)"
    assert as_text(cost, Conditionals("q")) == "Q[prime]*(inter_a)+(1-Q[prime])*(inter_b)"


PHASES = "L={ par(i=1,10){ use(comp[1],delay1); } par(i=1,10){ use(net,delay1); } }"


@pytest.mark.row("000:T0,Tr,global,phase")
def test_the_global_bound_misses_half_of_two_phases():
    model = pamela_text.parse(PHASES.replace("delay1", "1"))
    setting = Setting(model, MachineModel({}), 1)
    assert predict(setting, "global").terms == {
        "T_0": TimeRange(2, 2),
        "T_comp_1": TimeRange(10, 10),
        "T_net": TimeRange(10, 10),
    }
    assert predict(setting, "global").seconds == TimeRange(10, 10)
    assert predict(setting, "phase").seconds == TimeRange(20, 20)


def test_loops_that_differ_from_turn_to_turn():
    model = pamela_text.parse("L={ seq(i=1,3){ use(r,i); } par(j=1,4){ delay(2*j); } n=5; delay(n); }")
    found = predict(Setting(model, MachineModel({}), 1))
    assert found.terms == {"T_0": TimeRange(19, 19), "T_r": TimeRange(6, 6)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L={ use(net); }", "expected use"),
        ("L={ seq(i=1){ a; } }", "expected seq"),
        ("L={ use(net,1);", "expected '}'"),
        ("M={ a; }", "no definition of L"),
        ("L={ a b; }", "cannot read 'a b'"),
    ],
)
def test_wrong_text_is_named(text, message):
    with pytest.raises(InputError, match=message):
        pamela_text.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L={ use(net,send[0,1](64)); }", "messages between machines 0 and 1"),
        ("L={ use(net,later); }", "undefined name 'later'"),
        ("L={ compute; }", "not a part of the model"),
        ("L={ use(COORD,task[0,0](COORD)); }", "task.0.: expected a line"),
    ],
)
def test_what_nobody_knows_is_an_error(text, message):
    with pytest.raises(InputError, match=message):
        predict(Setting(pamela_text.parse(text), MachineModel({}), 1))
