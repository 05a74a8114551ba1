"""fembench place, from a record to a launcher's file."""

import json
from pathlib import Path

import msgspec
import pytest
from planted_profile import planted_profile

from fembench.cli.main import main
from fembench.model.hosts_for_parts import measured, one_a_core
from fembench.records.network import CurvePiece, HostTaken, Network, PairClass
from fembench.records.profile import save_profile
from fembench.records.store import load, save

RECORD = str(Path(__file__).parent.parent / "data" / "record.json")


def test_parts_that_talk_stay_on_one_host(tmp_path, capsys):
    out = tmp_path / "tasks"
    assert main(["place", RECORD, "--hosts", "a:2:2:1,b:2:1:0.5", "--format", "slurm", "-o", str(out)]) == 0
    assert out.read_text() == "a\na\n"
    assert "--distribution=arbitrary -n 2" in capsys.readouterr().out


def test_hosts_of_one_slot_part_them(output):
    found = json.loads(output("place", RECORD, "--hosts", "a:1,b:1:1:0.5", "--json"))
    assert sorted(found["hosts"]) == ["a", "b"]
    # one message each way and two all-reduces over a link of 50 microseconds
    assert found["iteration_seconds"] == pytest.approx(3 * 50e-6 + 2 * 7e-6, rel=0.15)


def test_ranks_that_shared_a_core_are_faster_on_cores_of_their_own(tmp_path, capsys):
    record = load(RECORD)
    found = []
    for cores in (2, 1):
        (host,) = record.environment.hosts
        environment = msgspec.structs.replace(
            record.environment, hosts=(msgspec.structs.replace(host, cores=cores),)
        )
        path = save(msgspec.structs.replace(record, environment=environment), tmp_path / str(cores))
        assert main(["place", str(path), "--hosts", "a:2:2", "--inside", "0,1e99", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["iteration_seconds"])
    assert found[0] == pytest.approx(2 * found[1], rel=1e-6)


@pytest.fixture
def profile():
    """Two hosts of one rank, the second of half the speed; messages take nothing inside, 50 us between."""
    far = PairClass(
        name="far",
        send=(CurvePiece(first=0, coefficients=(0.0,)),),
        latency=(CurvePiece(first=0, coefficients=(50e-6,)),),
        receive=(CurvePiece(first=0, coefficients=(0.0,)),),
    )
    near = msgspec.structs.replace(far, name="near", latency=(CurvePiece(first=0, coefficients=(0.0,)),))
    network = Network(
        send_mode="isend", pairs="all", sites=("x", "x"), classes=(near, far), pair_class=((0, 1), (1, 0))
    )
    return planted_profile([1.0, 0.5], hosts=("a", "b"), network=network)


def test_a_profile_gives_hosts_and_messages(profile, tmp_path, capsys, output, refusal):
    save_profile(profile, tmp_path / "machine.json")
    found = json.loads(output("place", RECORD, "--machine", str(tmp_path / "machine.json"), "--json"))
    assert sorted(found["hosts"]) == ["a", "b"]
    assert found["iteration_seconds"] == pytest.approx(3 * 50e-6 + 2 * 7e-6, rel=0.15)
    assert "provisional" not in found
    taken = (HostTaken(others_percent=66.0, others_resolution=0.1, steal_percent=0.0),) * 2
    disturbed = msgspec.structs.replace(profile.network, taken=taken)
    save_profile(msgspec.structs.replace(profile, network=disturbed), tmp_path / "disturbed.json")
    assert main(["place", RECORD, "--machine", str(tmp_path / "disturbed.json")]) == 0
    assert capsys.readouterr().out.startswith("PROVISIONAL: others used 66.0 %")
    save_profile(msgspec.structs.replace(profile, network=None), tmp_path / "bare.json")
    assert "characterize --network" in refusal("place", RECORD, "--machine", str(tmp_path / "bare.json"))


@pytest.mark.row("001:7.3.7")
def test_no_core_gets_two_ranks_where_waiting_ranks_keep_it(profile, tmp_path, capsys):
    """Host a has two slots on one core, and messages to the slow host b take long."""
    near, far = profile.network.classes
    far = msgspec.structs.replace(far, latency=(CurvePiece(first=0, coefficients=(1.0,)),))
    made = planted_profile([1.0, 1.0, 0.1], hosts=("a", "a", "b"), network=profile.network)
    hosts = tuple(msgspec.structs.replace(h, cores=1) for h in made.environment.hosts)
    made = msgspec.structs.replace(made, environment=msgspec.structs.replace(made.environment, hosts=hosts))

    def placed(polling):
        network = msgspec.structs.replace(profile.network, classes=(near, far), polling=polling)
        save_profile(msgspec.structs.replace(made, network=network), tmp_path / "machine.json")
        assert main(["place", RECORD, "--machine", str(tmp_path / "machine.json"), "--json"]) == 0
        return sorted(json.loads(capsys.readouterr().out)["hosts"])

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


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ("a:2:x", "cannot read 'a:2:x'"),
        ("a:1", "2 ranks on hosts with 1 slot"),
        ("a:2:2:0", "cannot read"),
        ("a:1,a:1", "a is given twice"),
        ("a:1:1:nan,b:1", "cannot read 'a:1:1:nan'"),
        ("a:1:1:inf,b:1", "cannot read 'a:1:1:inf'"),
        ("a:1:1:-1,b:1", "cannot read 'a:1:1:-1'"),
        ("a:1:1:1:1,b:1", "cannot read 'a:1:1:1:1'"),
        (":1,b:1", "cannot read ':1'"),
        ("a:²,b:1", "cannot read"),
        ("a:" + "9" * 5000, "cannot read 'a:999"),
    ],
)
def test_wrong_hosts_are_named(hosts, message, capsys):
    assert main(["place", RECORD, "--hosts", hosts]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told) < 200


@pytest.mark.parametrize(
    "link", ["nan,1e9", "1e-6,nan", "inf,1e9", "1e-6,inf", "-1,1e9", "1e-6,0", "1", "1,2,3"]
)
def test_links_are_finite_numbers(link, refusal):
    for option in ("--link", "--inside"):
        assert f"link '{link}': expected" in refusal(
            "place", RECORD, "--hosts", "a:1,b:1", f"{option}={link}"
        )
