"""Profiles measured while others used the CPUs: all that follows from them is PROVISIONAL."""

import json

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_machine import planted_network
from planted_profile import planted_profile

from fembench.cli.main import main
from fembench.records.network import HostTaken
from fembench.records.profile import network_disturbed, provisional, save_profile, speeds_disturbed
from fembench.report.profiles import network_text


def profile(*, speeds=0.0, messages=0.0, stolen=0.0, notes=()):
    """Two ranks of one host; percent of the CPU time that was taken from each measurement."""
    made = on_hosts_with(planted_profile([1.0, 1.0]), others_percent=speeds, others_resolution=0.1)
    taken = HostTaken(others_percent=messages, others_resolution=0.1, steal_percent=stolen)
    return msgspec.structs.replace(made, network=planted_network(1, taken=(taken,), notes=notes))


@pytest.mark.parametrize(
    ("taken", "line"),
    [
        ({}, ""),
        ({"messages": 1.9}, ""),
        ({"speeds": 66.0}, "others used 66.0 % of the CPU time of node8 while speeds were measured"),
        ({"messages": 66.0}, "others used 66.0 % of the CPU time of node8 while messages were measured"),
        ({"stolen": 9.0}, "the hypervisor took 9.0 % of the CPU time of node8 while messages were measured"),
        ({"notes": ("PROVISIONAL: too few sizes",)}, "too few sizes"),
    ],
)
def test_a_disturbed_measurement_makes_a_profile_provisional(taken, line):
    made = profile(**taken)
    assert provisional(made).startswith(f"PROVISIONAL: {line}" if line else "")
    assert bool(provisional(made)) == bool(line)
    assert repr(made).startswith("Profile(2 ranks of 1 host, measured 20")
    assert bool(speeds_disturbed(made)) == ("speeds" in line)
    assert bool(network_disturbed(made)) == ("messages" in line)


@pytest.mark.parametrize("disturbed", [False, True])
def test_predictions_from_a_disturbed_profile_say_provisional(disturbed, tmp_path, capsys):
    path, before = str(tmp_path / "machine.json"), tmp_path / "before.json"
    save_profile(profile(messages=66.0 * disturbed), path)
    words = ["predict", "m1", "--machine", path, "--ranks", "2"]
    assert main([*words, "-o", str(before)]) == 0
    assert capsys.readouterr().out.startswith("PROVISIONAL: others used 66.0 %") == disturbed
    assert bool(json.loads(before.read_text())["predicted"]["provisional"]) == disturbed
    for method in ("simulation", "analytic"):
        assert main([*words, "--json", "--method", method]) == 0
        (said,) = json.loads(capsys.readouterr().out)
        assert ("provisional" in said) == disturbed


@pytest.mark.parametrize("disturbed", [False, True])
def test_the_switch_of_the_protocol_is_provisional_if_others_used_the_cpu(disturbed):
    made = profile(messages=66.0 * disturbed)
    text = network_text(made.network, disturbed=network_disturbed(made))
    assert text.startswith("PROVISIONAL: others used 66.0 %") == disturbed
    assert (", PROVISIONAL |" in text) == disturbed
