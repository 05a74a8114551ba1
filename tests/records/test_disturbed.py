"""Profiles measured while others used the CPUs: all that follows from them is PROVISIONAL."""

import json

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_machine import planted_network
from planted_profile import planted_profile

from fembench.cli.main import main
from fembench.records.network import HostTaken
from fembench.records.profile import network_disturbed, provisional, save_profile
from fembench.report.profiles import network_text
from fembench.workflows.characterize import as_text


def profile(*, speeds=0.0, messages=0.0, stolen=0.0, notes=()):
    """Two ranks of one host; percent of the CPU time that was taken from each measurement."""
    made = on_hosts_with(planted_profile([1.0, 1.0]), others_percent=speeds, others_resolution=0.1)
    taken = HostTaken(others_percent=messages, others_resolution=0.1, steal_percent=stolen)
    return msgspec.structs.replace(made, network=planted_network(1, taken=(taken,), notes=notes))


@pytest.mark.parametrize(
    ("taken", "begins", "what"),
    [
        ({}, "", ""),
        ({"messages": 1.9}, "", ""),
        ({"speeds": 66.0}, "DISTURBED: others used up to 66 % of the CPU time on node8", "speeds"),
        ({"messages": 66.0}, "DISTURBED: others used up to 66 %", "costs of messages"),
        ({"stolen": 9.0}, "DISTURBED: the hypervisor took up to 9 %", "costs of messages"),
        (
            {"speeds": 9.0, "messages": 66.0},
            "DISTURBED: others used up to 66 %",
            "speeds and costs of messages",
        ),
        ({"notes": ("PROVISIONAL: too few sizes",)}, "PROVISIONAL: too few sizes", ""),
    ],
)
def test_a_profile_and_what_follows_from_it_begin_with_what_disturbed_it(taken, begins, what):
    made = profile(**taken)
    said = provisional(made)
    assert said.startswith(begins)
    assert (f": {what} may be far off; " in said) == bool(what)
    assert bool(said) == bool(begins)
    assert ("DISTURBED" in as_text(made)[:9]) == bool(what)
    assert repr(made).startswith("Profile(2 ranks of 1 host, measured 20")
    assert repr(made).endswith(", DISTURBED)") == bool(what)
    assert bool(network_disturbed(made)) == ("messages" in what)


@pytest.mark.parametrize("disturbed", [False, True])
def test_predictions_from_a_disturbed_profile_begin_with_it(disturbed, tmp_path, capsys):
    path, before = str(tmp_path / "machine.json"), tmp_path / "before.json"
    save_profile(profile(messages=66.0 * disturbed), path)
    words = ["predict", "m1", "--machine", path, "--ranks", "2"]
    assert main([*words, "-o", str(before)]) == 0
    assert capsys.readouterr().out.startswith("DISTURBED: others used up to 66 %") == disturbed
    assert bool(json.loads(before.read_text())["predicted"]["provisional"]) == disturbed
    for method in ("simulation", "analytic"):
        assert main([*words, "--json", "--method", method]) == 0
        (said,) = json.loads(capsys.readouterr().out)
        assert ("provisional" in said) == disturbed


@pytest.mark.parametrize("disturbed", [False, True])
def test_the_switch_of_the_protocol_is_marked_if_others_used_the_cpu(disturbed):
    made = profile(messages=66.0 * disturbed)
    text = network_text(made.network, disturbed=bool(network_disturbed(made)))
    assert (", DISTURBED |" in text) == disturbed
