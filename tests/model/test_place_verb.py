"""fembench place, from a record to a launcher's file."""

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_machine import flat_class, line, planted_machine, planted_network
from planted_records import FROZEN

from fembench.records.network import HostTaken
from fembench.records.profile import save_profile
from fembench.records.store import load
from fembench.workflows.place import measured, one_a_core

RECORD = str(FROZEN)


@pytest.fixture
def profile():
    """Two hosts of one rank, the second of half the speed; messages take nothing inside, 50 us between."""
    near, far = (flat_class(name, 0.0, latency, 0.0) for name, latency in (("near", 0.0), ("far", 50e-6)))
    return planted_machine([1.0, 0.5], ("a", "b"), network=planted_network(2, near=near, far=far))


def test_a_profile_gives_hosts_and_messages(profile, tmp_path, answer, output, refusal):
    def words(name, network):
        save_profile(msgspec.structs.replace(profile, network=network), tmp_path / name)
        return ["place", RECORD, "--machine", str(tmp_path / name)]

    found = answer(*words("machine.json", profile.network))
    tasks = tmp_path / "tasks"
    told = output(*words("machine.json", profile.network), "--format", "slurm", "-o", str(tasks))
    assert "--distribution=arbitrary -n 2" in told
    assert sorted(tasks.read_text().splitlines()) == ["a", "b"]
    assert sorted(found["hosts"]) == ["a", "b"]
    assert found["iteration_seconds"] == pytest.approx(3 * 50e-6 + 2 * 7e-6, rel=0.15)
    assert "provisional" not in found
    taken = (HostTaken(others_percent=66.0, others_resolution=0.1, steal_percent=0.0),) * 2
    disturbed = words("disturbed.json", msgspec.structs.replace(profile.network, taken=taken))
    assert output(*disturbed).startswith("DISTURBED: others used up to 66 %")
    assert "characterize --network" in refusal(*words("bare.json", None))


@pytest.mark.row("001:7.3.7")
def test_no_core_gets_two_ranks_where_waiting_ranks_keep_it(profile, tmp_path, answer):
    """Host a has two slots on one core, and messages to the slow host b take long."""
    near, far = profile.network.classes
    far = msgspec.structs.replace(far, latency=line(1.0))
    three = planted_machine([1.0, 1.0, 0.1], ("a", "a", "b"), network=profile.network)
    made = on_hosts_with(three, cores=1)

    def placed(polling):
        network = msgspec.structs.replace(profile.network, classes=(near, far), polling=polling)
        save_profile(msgspec.structs.replace(made, network=network), tmp_path / "machine.json")
        return sorted(answer("place", RECORD, "--machine", str(tmp_path / "machine.json"))["hosts"])

    assert placed(1.0) == placed(None) == ["a", "a"]  # waiting ranks sleep, or it is unknown
    assert placed(1.86) == ["a", "b"]
    assert one_a_core(msgspec.structs.replace(made, network=None), [2, 1], 2) == [2, 1]
    polls = msgspec.structs.replace(made, network=msgspec.structs.replace(profile.network, polling=1.86))
    assert one_a_core(polls, [2, 1], 3) == [2, 1]  # there is no room for three


def test_hosts_are_as_fast_as_they_are_with_the_storage_of_the_run(profile):
    record = load(RECORD)
    product = f"product {record.case.method.storage}"
    slowed = [
        msgspec.structs.replace(s, speed=s.speed / 8) if s.rank and s.name == product else s
        for s in profile.speeds
    ]
    plain, other = (
        measured(record, p).hosts for p in (profile, msgspec.structs.replace(profile, speeds=tuple(slowed)))
    )
    assert [h.slowness for h in plain] == pytest.approx([1.0, 2.0])
    assert other[0].slowness == 1.0
    assert 4.0 < other[1].slowness < 16.0
