"""`predict --now` asks every host of the profile, or those of a host file, and names those not reached."""

import json
import platform

import pytest
from planted_profile import planted_profile

from fembench.base.errors import InputError, RunFailedError
from fembench.characterize import load_now
from fembench.characterize.load_now import loads_of
from fembench.cli.main import main
from fembench.records.network import HostLoad
from fembench.records.profile import save_profile

HERE = platform.node()
SLOWER = {HERE: 2.0, "b": 3.0, "c": 5.0}  # host -> time of the kernels over their processor time


@pytest.fixture
def asked(monkeypatch):
    """Hosts that say how loaded they are, instead of ranks started there; 'gone' cannot be reached."""
    names = []

    def load(host):
        names.append(host)
        if host == "gone":
            raise RunFailedError("ssh: connect to host gone: no route")
        return HostLoad(host, SLOWER[host], 1.0)

    monkeypatch.setattr(load_now, "measured_here", lambda: [load(HERE)])
    monkeypatch.setattr(load_now, "measured_on", lambda host, scratch: [load(host)])
    return names


@pytest.fixture
def iteration(tmp_path, capsys):
    """Predicts one rank's iteration on a host that is as loaded as now; returns what is printed."""

    def predict(host, *more):
        save_profile(planted_profile([1.0, 1.0], hosts=(host, "c")), tmp_path / f"{host}.json")
        words = ["predict", "m1", "--machine", str(tmp_path / f"{host}.json"), "--link", "1e-5,1e9"]
        status = main([*words, "--ranks", "1", "--json", *more])
        return status, capsys.readouterr()

    return predict


@pytest.mark.row("001:F4c")
def test_every_host_is_asked_once_and_those_not_reached_are_named(asked, tmp_path):
    told = []
    found = loads_of((HERE, "gone", "c"), tmp_path, told.append)
    assert [now.host for (now,) in found] == [HERE, "c"]
    assert asked == [HERE, "gone", "c"]
    assert told == ["gone: not reached, keeps the speeds of the profile: ssh: connect to host gone: no route"]
    with pytest.raises(InputError, match="none of gone could be reached"):
        loads_of(("gone",), tmp_path, told.append)


def test_ranks_of_every_host_are_as_slow_as_it_says(asked, iteration):
    (usual,), (now,) = (json.loads(iteration(HERE, *more)[1].out) for more in ((), ("--now",)))
    assert now["predicted"]["iteration"] == pytest.approx(2 * usual["predicted"]["iteration"], rel=1e-6)
    status, text = iteration("b", "--now")
    assert status == 0
    assert (
        "b: computing takes 3.00 times as long now as in the profile, by the clock (3.00 to 3.00 in 1 sample)"
        in text.err
    )
    assert "message costs are those of the profile: underestimated under load" in text.err
    assert asked == [HERE, "c", "b", "c"]


def test_the_range_of_the_samples_widens_the_predicted_interval(asked, iteration, monkeypatch):
    """Samples of half, once and twice their median: the interval reaches twice as far to each side."""
    samples = [HostLoad(HERE, s, 1.0) for s in (1.0, 2.0, 4.0)]
    monkeypatch.setattr(load_now, "measured_here", lambda: samples)
    (usual,), (now,) = (json.loads(iteration(HERE, *more)[1].out) for more in ((), ("--now",)))
    low, high = (now["predicted"][end] / usual["predicted"][end] / 2 for end in ("low", "high"))
    assert (low, high) == pytest.approx((0.5, 2.0), rel=1e-6)


def test_this_host_is_sampled_several_times_at_intervals(monkeypatch):
    pauses = []
    monkeypatch.setattr(load_now.time, "sleep", pauses.append)
    monkeypatch.setattr(load_now, "kernel_times", lambda *_: [])
    found = load_now.measured_here()
    assert len(found) == len(pauses) == load_now.SAMPLES > 2
    assert pauses[0] == 0
    assert min(pauses[1:]) > 0


def test_a_host_file_decides_who_is_asked(asked, iteration, tmp_path):
    (tmp_path / "hosts").write_text("c slots=2\n")
    assert iteration("b", "--now", "--hostfile", str(tmp_path / "hosts"))[0] == 0
    assert asked == ["c"]
    (tmp_path / "hosts").write_text("rank 0=c slot=0\n")
    assert iteration("b", "--now", "--hostfile", str(tmp_path / "hosts"))[0] == 0
    assert asked == ["c", "c"]
    (tmp_path / "hosts").write_text("d\n")
    status, text = iteration("b", "--now", "--hostfile", str(tmp_path / "hosts"))
    assert status == 2
    assert "the profile has no host d; expected one of b, c" in text.err
    assert asked == ["c", "c"]
