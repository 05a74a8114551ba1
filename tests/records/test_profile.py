"""Profiles: what is kept of a machine, and what a file must hold to be one."""

import json

import msgspec
import numpy as np
import pytest
import spoil
from planted_profile import planted_profile

from fembench.base.errors import InputError
from fembench.records.network import CurvePiece, Network, PairClass, class_of, value_at
from fembench.records.profile import (
    load_profile,
    save_profile,
    speed_matrix,
    speed_of,
)


def test_the_speed_is_the_median_and_its_interval_that_of_order_statistics():
    # n = 6: the extremes cover the median with 1 - 2/64 >= 95 %
    assert speed_of([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (3.5, 1.0, 6.0)
    assert speed_of([1.0, 2.0, 3.0, 4.0, 5.0]) == (3.0, None, None)


def test_the_matrix_holds_the_speeds_of_all_ranks_of_each_host_at_once():
    profile = planted_profile([1.0, 1.0, 0.5], hosts=("a", "a", "b"))
    matrix = speed_matrix(profile, "L3")
    assert matrix.names == ("assembly", "product sym", "product csr", "updates")
    assert matrix.units == ("cells", "blocks", "blocks", "dofs")
    # two at once on a share its memory: 1/sqrt(2) each; b has one rank
    expected = 1e7 * np.array([0.5**0.5, 0.5**0.5, 0.5])
    assert matrix.speed[:, 0] == pytest.approx(expected)
    assert matrix.low[:, 0] == pytest.approx(expected)


def test_what_was_not_measured_is_not_a_number():
    profile = planted_profile([1.0, 0.5])
    kept = tuple(s for s in profile.speeds if s.rank == 0 or s.phase != "assembly")
    matrix = speed_matrix(msgspec.structs.replace(profile, speeds=kept))
    assert np.isfinite(matrix.speed[0]).all()
    assert np.isnan(matrix.speed[1, 0])
    assert np.isfinite(matrix.speed[1, 1:]).all()


def spoiled(**changes):
    tree = msgspec.to_builtins(planted_profile([1.0, 0.5]))
    tree["speeds"][0].update(changes.pop("speed", {}))
    return json.dumps({**tree, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "not a profile"),
        ("[]", "expected a table, found a list"),
        ("no json", "not valid JSON"),
        (spoiled(device="tpu"), "device 'tpu': expected cpu, gpu or opencl"),
        (spoiled(device="gpu,cpu"), "environment.devices: expected one of each of 2 ranks"),
        (spoiled(emulate="1,fast"), "emulate '1,fast': expected a positive speed for each of 2 ranks"),
        (spoiled(emulate="1"), "emulate '1': expected a positive speed for each of 2 ranks"),
        (spoiled(schema=8), "schema 8 of a profile; expected 7: it is newer"),
        (spoiled(schema=6), "schema 6 of a profile; expected 7: measure again"),
        (spoiled(colour="red"), "colour"),
        (spoiled(speed={"speed": -1.0}), "expected positive"),
        (spoiled(speed={"rank": 2}), "ranks below 2"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "machine.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        load_profile(path)
    assert "machine.json" in str(error.value)
    assert "\n" not in str(error.value)


def lines(*firsts):
    return tuple(CurvePiece(first=first, coefficients=(1e-6, 1e-9)) for first in firsts)


def network(pair_class, *, sites=("s", "s"), latency=(0,)):
    one = PairClass(name="all", send=lines(0), latency=lines(*latency), receive=lines(0, 64))
    return Network(send_mode="isend", pairs="classes", sites=sites, classes=(one,), pair_class=pair_class)


@pytest.mark.row("001:7.2")
def test_a_network_survives_its_file_and_is_looked_up_by_pair_and_size(tmp_path):
    profile = planted_profile([1.0, 0.5], hosts=("a", "b"), network=network(((0, 0), (0, 0))))
    save_profile(profile, tmp_path / "machine.json")
    again = load_profile(tmp_path / "machine.json")
    assert again == profile
    found = class_of(again.network, 0, 1)
    assert value_at(found.receive, 63) == pytest.approx(1e-6 + 63e-9)
    assert value_at(found.receive, 65) == pytest.approx(1e-6 + 1e-9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (network(((0,),)), "expected 2, and a class for each pair"),
        (network(((0, 0), (0, 1))), "expected classes below 1"),
        (network(((0, 0), (0, 0)), latency=(64, 0)), "ascending"),
        (network(((0, 0), (0, 0)), latency=()), "latency of class 'all'"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(tmp_path, wrong, message):
    profile = planted_profile([1.0, 0.5], hosts=("a", "b"), network=wrong)
    save_profile(profile, tmp_path / "machine.json")
    with pytest.raises(InputError, match=message):
        load_profile(tmp_path / "machine.json")


@pytest.mark.parametrize("host", [-1, 2, 2**62])
def test_a_rank_on_a_host_that_is_not_listed_is_refused(tmp_path, host):
    save_profile(planted_profile([1.0, 0.5], hosts=("a", "b")), tmp_path / "machine.json")
    text = (tmp_path / "machine.json").read_text()
    path = spoil.spoiled(text, tmp_path / "spoiled.json", "environment.rank_host.1", host)
    with pytest.raises(InputError, match=f"environment.rank_host: host {host}; expected 0 to 1"):
        load_profile(path)
