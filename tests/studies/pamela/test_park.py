"""Tier B of thesis-000: predictions tested on a virtual park of 32 machines, where the truth is known."""

import pytest

from fembench.studies.pamela import pamela_text
from fembench.studies.pamela.bounds import Setting
from fembench.studies.pamela.machine_model import MachineModel
from fembench.studies.pamela.park import experiment, pooled, sampled
from fembench.studies.pamela.virtual import execute


def by_version(outcomes):
    return [pooled([o for o in outcomes if o.version == v]) for v in "ABCD"]


def coverage(score):
    return score.hits / len(score.errors)


def executed(text):
    return execute(Setting(pamela_text.parse(text), MachineModel({}), 1), lambda resource, seconds: seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("L={ par(i=1,10){ use(comp[1],1); } par(i=1,10){ use(net,1); } }", 20),
        ("L={ par(i=1,10){ use(comp[1],1); use(net,1); } }", 11),
        ("L={ (delay(3)||{ use(a,1); use(b,1); }); n=2; seq(i=1,n){ use(a,i); } }", 6),
        ("L={ par(p=1,3){ par(i=1,p){ use(p,1); } } par(i=1,0){ delay(9); } }", 3),
    ],
)
def test_virtual_execution(text, seconds):
    assert executed(text) == seconds


def test_servers_work_side_by_side():
    setting = Setting(
        pamela_text.parse("L={ par(i=1,5){ use(cores,2); } }"), MachineModel({}), 1, servers={"cores": 2}
    )
    assert execute(setting, lambda resource, seconds: seconds) == 6


def test_samples_are_bounded_and_depend_on_the_seed_alone():
    assert all(len(s.samples) == 50 for s in sampled().series)
    assert sampled(3) == sampled(3) != sampled(4)


@pytest.mark.slow
def test_pi_is_predicted_in_every_version():
    outcomes = experiment("pi")
    assert max(s.mean_error for s in by_version(outcomes)) <= 0.023
    whole = pooled(outcomes)
    assert coverage(whole) >= 0.6875
    assert whole.half_width <= 0.08


@pytest.mark.slow
def test_matrices_need_the_bound_phase_by_phase():
    together, by_phase = experiment("mat"), experiment("mat", compose="phase")
    assert max(s.mean_error for s in by_version(together)) <= 0.042
    assert coverage(pooled(together)) >= 0.36
    assert max(s.mean_error for s in by_version(by_phase)) <= 0.02
    assert pooled(by_phase).middle_error < pooled(together).middle_error
    assert all(a.measured == b.measured for a, b in zip(together, by_phase))


@pytest.mark.slow
def test_primes_are_overestimated_until_q_is_given():
    worst, informed = pooled(experiment("prim")), pooled(experiment("prim", with_q=True))
    assert sum(e < 0 for e in worst.errors) == len(worst.errors) - worst.hits  # every miss
    assert coverage(worst) <= 0.10
    assert informed.mean_error <= worst.mean_error / 2
    assert coverage(informed) >= 0.5


@pytest.mark.slow
def test_selected_elements_too():
    assert pooled(experiment("rand")).mean_error > 0.05
    assert pooled(experiment("rand", with_q=True)).mean_error <= 0.05
