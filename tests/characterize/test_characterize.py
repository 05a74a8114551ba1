"""`fembench characterize` from end to end: what a short one finds, tells and refuses."""

import platform
from types import SimpleNamespace

import pytest
from planted_profile import planted_profile

from fembench.base.errors import RunFailedError
from fembench.base.progress import Doing, telling
from fembench.characterize import jobs
from fembench.characterize.probes import STORAGES
from fembench.cli.main import main
from fembench.launch.hosts import hostfile_of_names
from fembench.records.profile import BETWEEN, LEVELS, load_profile, save_profile
from fembench.report.profiles import profile_text
from fembench.weights.from_profile import by_profile
from fembench.workflows import characterize as workflow


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """(profile, stages, lines) of two ranks, the second at half speed, in a second of measuring."""
    patch = pytest.MonkeyPatch()
    patch.setattr(jobs, "QUICK_SECONDS", 1.0)
    stages, told = [], []
    patch.setattr(Doing, "tell", lambda _, stage: stages.append(stage))
    folder = tmp_path_factory.mktemp("characterize")
    with telling(told.append):
        job = jobs.speeds_job(2, quick=True, emulate="1,0.5", command="x")
        profile = workflow.measured_speeds(job, "", folder)
    patch.undo()
    assert list(folder.iterdir()) == []
    return profile, stages, told


@pytest.mark.row("001:7.1a")
@pytest.mark.slow
def test_every_rank_phase_storage_and_size_is_measured(measured):
    profile, stages, _ = measured
    found = {(s.rank, s.name, s.level) for s in profile.speeds}
    products = {f"product {storage}" for storage in (*STORAGES, "dense")}
    small = {(rank, name, "L2") for rank in (0, 1) for name in products | {"updates", "triad", "read"}}
    assert small <= found
    assert {level for _, _, level in found} <= {*LEVELS, BETWEEN}
    assert any("kernels with data in memory are set up" in stage for stage in stages)
    assert any("round 1 of up to" in stage for stage in stages)
    known = {(name, level) for _, name, level in found if level in LEVELS}
    notes = [note for note in profile.notes if BETWEEN not in note]
    assert len(notes) == len(LEVELS) * (len(products) + 4) - len(known)  # what there was no time for is said
    rounds = sum("round " in stage for stage in stages)  # in each, the state of the host is measured
    assert [r.what for r in profile.state] == ["core", "memory"] * rounds
    assert {r.host for r in profile.state} == {host.name for host in profile.environment.hosts}
    assert min(r.speed for r in profile.state) > 1e7


@pytest.mark.slow
def test_rounds_are_stages_of_one_line_of_progress(measured):
    _, stages, told = measured
    assert any("round" in stage for stage in stages)
    said = [line for line in told if not line.startswith("note: ")]  # of what else runs here
    assert said == []


@pytest.mark.slow
def test_emulated_speeds_are_labelled_and_about_those_injected(measured, tmp_path):
    profile, *_ = measured
    assert profile.environment.synthetic == "emulated speeds 1,0.5"
    assert "SYNTHETIC" in profile_text(profile)
    save_profile(profile, tmp_path / "machine.json")
    assert load_profile(tmp_path / "machine.json") == profile
    speed = {(s.rank, s.name): s.speed for s in profile.speeds if s.level == "L2"}
    assert 0.2 < speed[1, "product sym"] / speed[0, "product sym"] < 0.8  # the machine may be busy
    if not any("assembly" in note or "product sym" in note for note in profile.notes):
        assert by_profile(profile, "").synthetic == profile.environment.synthetic


@pytest.mark.parametrize(
    ("quick", "network", "usual"),
    [
        (True, False, "half a minute, 20 s"),
        (True, True, "1 to 2 minutes, 20 s"),
        (False, False, "2 minutes, 110 s"),
    ],
)
def test_the_time_it_will_take_is_said_before_the_ranks_start(tmp_path, monkeypatch, quick, network, usual):
    told = []

    def measure(*_, **__):
        assert told == [f"characterize: starting 2 ranks: usually takes {usual} of it measuring speeds"]
        raise RunFailedError("planted")

    monkeypatch.setattr(workflow, "measure", measure)
    with pytest.raises(RunFailedError, match="planted"):
        workflow.machine(2, network=network, quick=quick, path=tmp_path / "m.json", tell=told.append)


@pytest.fixture
def known(tmp_path):
    """The file of a profile of two ranks of this host, without a network."""
    profile = planted_profile([1.0, 1.0], hosts=(platform.node(),) * 2)
    save_profile(profile, tmp_path / "machine.json")
    return tmp_path / "machine.json"


@pytest.mark.slow
def test_a_network_is_added_to_a_profile_and_used_without_a_link(
    known, tmp_path, capsys, output, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    speeds = load_profile(known).speeds
    short = ("--sizes", "8,16,32", "--repetitions", "3")  # too small to be measured after computing
    assert main(["characterize", "--add-to", str(known), "--quick", *short]) == 0
    told = capsys.readouterr()
    assert "network: messages, same host (1 of 1), ranks 0 and 1: round trips" in told.err
    assert f"fembench predict m3 --machine {known} --ranks 2" in told.out
    profile = load_profile(known)
    assert profile.speeds == speeds
    assert [c.name for c in profile.network.classes] == ["same host"]
    assert {s.mode for s in profile.network.samples} == {"isend", "send"}
    assert "bound by" in output("predict", "m1", "--machine", str(known), "--ranks", "2")


def test_a_network_of_other_hosts_is_not_added(known, refusal, monkeypatch):
    save_profile(planted_profile([1.0, 1.0], hosts=("elsewhere", "elsewhere")), known)
    found = SimpleNamespace(hosts=("n1",), rank_host=(0, 0))
    monkeypatch.setattr(workflow, "measure", lambda *_, **__: found)
    said = refusal("characterize", "--add-to", str(known), "--quick")
    assert "2 ranks on n1; expected those of the profile: 2 on elsewhere, in the same order" in said
    assert load_profile(known).network is None


@pytest.mark.row("001:F2")
def test_hosts_are_read(tmp_path):
    assert hostfile_of_names("a,b:4") == "a slots=1\nb slots=4\n"
    path = tmp_path / "hosts"
    path.write_text("# mine\na slots=2\nb:3\nc\n\n")
    assert workflow.ranks_of_job(0, str(path)) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hosts", "a:0"], "cannot read 'a:0'"),
        (["--hosts", "a b"], "cannot read 'a b'"),
        (["--hostfile", "/no/such/file"], "cannot read /no/such/file"),
        (["--emulate", "1,2"], "speeds from 1e-06 to 1"),
        (["--ranks", "2", "--emulate", "1"], "1 speed for 2 ranks"),
        (["--ranks", "1", "--dilate", "0.5"], "--dilate 0.5: expected a number of at least 1"),
        (["-o", "/proc/no/machine.json"], "cannot write"),
        (["-o", "."], "cannot write .: Is a directory"),
        (["--ranks", "1", "--network"], "a network of 1 rank; expected 2 ranks or more"),
        (["--pairs", "all"], "--pairs all without a network; expected --network"),
        (["--ranks", "2", "--network", "--sites", "a="], "cannot read 'a='"),
        (["--sites", "a=b"], "--sites a=b without a network"),
        (["--sizes", "8,64,512"], "--sizes 8,64,512 without a network"),
        (["--method", "trains"], "--method trains without a network"),
        (["--network", "--sizes", "8,64K"], "expected at least three different sizes"),
        (["--network", "--sizes", "8,64K,2G"], "from 1 byte to 1G"),
        (["--network", "--sizes", "8,64K,1.5M"], "'1.5M': expected bytes such as 8, 64K or 4M"),
        (["--add-to", "none.json"], "none.json"),
    ],
)
def test_bad_input_is_refused_in_one_line(options, message, refusal, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    error = refusal("characterize", "--quick", *options)
    assert error.startswith("fembench: ")
    assert message in error
    assert list(tmp_path.iterdir()) == []
