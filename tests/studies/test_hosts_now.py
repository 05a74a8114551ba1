"""`predict --now` asks every host of the profile, or those of a host file, and names those not reached."""

import platform

import pytest
from planted_profile import planted_profile

from fembench.base.errors import InputError, RunFailedError
from fembench.characterize.load_now import HostLoad
from fembench.records.network import RankLoad
from fembench.studies.thesis_001 import hosts_now
from fembench.studies.thesis_001.hosts_now import slower_now

HERE = platform.node()
# host -> times that code took there over the time it was served
SLOWER = {HERE: 2.0, "b": 3.0, "c": 5.0}


@pytest.fixture
def asked(monkeypatch):
    """Hosts that say how loaded they are, instead of ranks started there; 'gone' cannot be reached."""
    names = []

    def load(host):
        names.append(host)
        if host == "gone":
            raise RunFailedError("ssh: connect to host gone: no route")
        return HostLoad(host, RankLoad(rank=0, queue=1.0, load=0.0), SLOWER[host], 1.0)

    monkeypatch.setattr(hosts_now, "measured_here", lambda: load(HERE))
    monkeypatch.setattr(hosts_now, "measured_on", lambda host, scratch: load(host))
    return names


def test_ranks_of_every_host_are_as_slow_as_it_says(asked, tmp_path):
    profile = planted_profile([1.0] * 4, hosts=(HERE, HERE, "b", "c"))
    told = []
    assert slower_now("clock", profile, (), tmp_path, told.append) == {0: 2.0, 1: 2.0, 2: 3.0, 3: 5.0}
    assert asked == [HERE, "b", "c"]
    assert any("messages cost what the profile says" in line for line in told)


def test_hosts_that_cannot_be_reached_are_named_and_stay(asked, tmp_path):
    profile = planted_profile([1.0] * 3, hosts=("gone", "b", "c"))
    told = []
    assert slower_now("clock", profile, (), tmp_path, told.append) == {1: 3.0, 2: 5.0}
    assert any("gone: not reached, stays as in the profile: ssh" in line for line in told)
    assert "--now clock: gone not brought up to date" in told
    with pytest.raises(InputError, match="none of gone could be reached"):
        slower_now("clock", profile, ("gone",), tmp_path, told.append)


def test_a_host_file_decides_who_is_asked(asked, tmp_path):
    profile = planted_profile([1.0] * 3, hosts=(HERE, "b", "c"))
    assert slower_now("clock", profile, ("c",), tmp_path, lambda text: None) == {2: 5.0}
    assert asked == ["c"]
    with pytest.raises(InputError, match="the profile has no host c"):
        slower_now("clock", planted_profile([1.0], hosts=("b",)), ("c",), tmp_path, lambda text: None)
