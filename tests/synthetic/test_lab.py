"""Labs for real: namespaces, control groups, MPI over TCP between them. Skipped where they cannot be had."""

import functools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_job import measured
from virtual_hosts import why_no_lab

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.records.store import load_all
from fembench.synthetic import lab, lab_groups

NAME = f"test-{os.getpid()}"
PAIR = f"""
name = "{NAME}"
priority = true
[[hosts]]
name = "node8"
cpus = [{{0}}]
[[hosts]]
name = "node00"
cpus = [{{1}}]
speed = 0.25
rate = "1gbit"
"""


REASON = why_no_lab()
real = pytest.mark.skipif(bool(REASON), reason=f"no lab here: {REASON}")


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(PAIR.format(*lab_groups.usable_cpus(lab_groups.hierarchies())[:2]))
    yield path
    lab.down(NAME)


@pytest.fixture
def state(cluster):
    return lab.up(cluster)


def traces():
    """All that carries the name of the test's lab."""
    spaces = [p.name for p in lab.NAMESPACES.iterdir()] if lab.NAMESPACES.is_dir() else []
    found = [name for name in spaces if name.startswith(f"{lab.LAB_GROUP}{NAME}.")]
    found += [str(t.mount) for t in lab_groups.hierarchies() if (t.mount / f"{lab.LAB_GROUP}{NAME}").exists()]
    return found + ([str(lab.FOLDER / NAME)] if (lab.FOLDER / NAME).exists() else [])


def in_lab(*command, timeout=60):
    line = [sys.executable, "-m", "fembench", "lab", "run", "--name", NAME, *map(str, command)]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout)


def on_host(host, command, *options):
    """Lines that a command prints on a host of the test's lab."""
    line = [lab.FOLDER / NAME / "agent", *options, host, command]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()


def links():
    return subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("action", [("up", "x.toml"), ("down",)])
def test_without_root_a_lab_is_refused_in_one_line(monkeypatch, refusal, action):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refusal("lab", *action).startswith("fembench: a lab needs root")


def test_a_missing_tool_is_named_with_its_package(monkeypatch, refusal):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert "apt install iproute2" in refusal("lab", "down")


def test_of_several_labs_none_is_removed_without_its_name(monkeypatch, capsys):
    removed = []
    monkeypatch.setattr(lab, "require_root", lambda: None)
    monkeypatch.setattr(lab, "down", lambda name: removed.append(name) or [name])
    for names, status in ((["mine", "theirs"], 2), (["mine"], 0), ([], 0)):
        monkeypatch.setattr(lab, "labs", lambda folder=None, names=names: names)
        assert main(["lab", "down"]) == status
    assert removed == ["mine"]
    told = capsys.readouterr()
    assert told.err == "fembench: 2 labs: mine, theirs; expected the name of one\n"
    assert told.out == "removed: mine\nno lab to remove\n"


@real
@pytest.mark.parametrize("name", ["../../etc", "..", "/etc", "a.b", "*"])
def test_no_name_leads_down_to_other_places(name, tmp_path):
    with pytest.raises(InputError, match="a-z, 0-9"):
        lab.down(name, tmp_path / "labs")
    with pytest.raises(InputError, match="a-z, 0-9"):
        lab.state_of(name, tmp_path / "labs")


@real
def test_a_lab_adds_nothing_to_the_machine_itself_and_down_leaves_other_groups_alone(cluster):
    before, others = links(), [t.mount / f"not-{NAME}" for t in lab_groups.hierarchies()]
    try:
        for other in others:
            other.mkdir()
        lab.up(cluster)
        assert links() == before
        assert traces()
        assert lab.down(NAME)
        assert traces() == []
        assert lab.down(NAME) == []
        assert links() == before
        assert all(other.is_dir() for other in others)
    finally:
        for other in others:
            other.rmdir()


@real
@pytest.mark.parametrize("commands", [0, 1, 4, 9, 15])
def test_a_lab_killed_while_it_is_built_is_removed_by_down(cluster, commands):
    code = f"""
import os
from fembench.synthetic import lab
done, todo = lab._do, {commands}
def step(command):
    global todo
    if not todo:
        os._exit(9)
    todo -= 1
    done(command)
lab._do = step
lab.up({str(cluster)!r})
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    assert NAME in lab.labs()
    with pytest.raises(InputError, match="is incomplete"):
        lab.state_of(NAME)
    lab.down(NAME)
    assert traces() == []


@real
def test_a_lab_that_cannot_be_built_leaves_nothing(cluster, monkeypatch):
    good = lab.up_commands
    monkeypatch.setattr(lab, "up_commands", lambda c: [*good(c), ["ip", "link", "show", "no-such-device"]])
    with pytest.raises(InputError, match="no-such-device"):
        lab.up(cluster)
    assert traces() == []


@real
def test_a_second_lab_of_the_same_name_is_refused_and_so_is_a_speed_that_cannot_be(state, cluster):
    with pytest.raises(InputError, match="exists already"):
        lab.up(cluster)
    for host, speed, message in (("node9", 0.5, "no host node9"), ("node00", 2, "speed = 2")):
        with pytest.raises(InputError, match=message):
            lab.set_speed(NAME, host, speed)
    assert lab.state_of(NAME) == state


@pytest.mark.row("001:F12g")
@real
def test_down_ends_what_runs_in_the_lab_and_the_tenant_that_keeps_the_slow_host_slow(state):
    assert len(tenants()) == 1
    sleeper = subprocess.Popen([lab.FOLDER / NAME / "agent", "node00", "sleep 1000"])
    group = next(g for g in lab_groups.groups_of(NAME, lab_groups.hierarchies()) if g.name == "node00")
    deadline = time.monotonic() + 5
    while not lab_groups.processes(group) and time.monotonic() < deadline:
        time.sleep(0.01)
    lab.down(NAME)
    assert sleeper.wait(5) == -9
    assert tenants() == []


@real
def test_a_command_on_a_host_sees_its_name_cpus_address_and_the_names_of_all_hosts(state):
    names = "getent hosts node8 node00 head"
    command = "uname -n; grep Cpus_allowed_list /proc/self/status; ip -br -4 addr show eth0"
    name, cpus, address, *found = on_host("node00", f"{command}; {names}", "-x")
    assert name == "node00"
    assert cpus.split()[1] == str(state.cluster.hosts[1].cpus[0])
    assert "10.213.77.2/24" in address
    assert os.uname().nodename != "node00"
    expected = ["10.213.77.1", "10.213.77.2", "10.213.77.3"]
    assert [line.split()[0] for line in found] == expected
    head, *found = in_lab("sh", "-c", f"uname -n && {names}").stdout.splitlines()
    assert (head, [line.split()[0] for line in found]) == ("head", expected)


@real
def test_hosts_reach_each_other_and_nothing_else(state):
    reach = "import socket; s = socket.socket(); s.settimeout(2); print(s.connect_ex(('{0}', 9)))"
    found = {}
    for address in ("10.213.77.1", "192.0.2.1"):  # the other host; an address of documentation
        (error,) = on_host("node00", f'{sys.executable} -c "{reach.format(address)}"')
        found[address] = os.strerror(int(error))
    assert found == {"10.213.77.1": "Connection refused", "192.0.2.1": "Network is unreachable"}


@real
def test_a_command_in_the_lab_gives_its_exit_status_and_status_shows_the_lab(state, answer, output):
    code = "import os, sys; print(os.environ['FEMBENCH_SYNTHETIC']); sys.exit(7)"
    done = in_lab(sys.executable, "-c", code)
    assert (done.returncode, done.stdout.strip()) == (7, state.cluster.label)
    assert in_lab().returncode == 2
    assert "no such command" in in_lab("no-such-command").stderr
    assert state.cluster.label in output("lab", "status")
    assert NAME in [one["cluster"]["name"] for one in answer("lab", "status")["labs"]]


BUSY = """
import os, time
end, n = time.perf_counter() + 1.5, 0
begin = time.process_time()
while time.perf_counter() < end:
    n += 1
print(os.uname().nodename, (time.process_time() - begin) / 1.5)
"""


def cpu_time_of_node00(tmp_path):
    """The part of a CPU that a busy process gets there over that of one on node8, both at once."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    agent, line = lab.FOLDER / NAME / "agent", f"{sys.executable} {script}"
    start = functools.partial(subprocess.Popen, stdout=subprocess.PIPE, text=True)
    jobs = [start([agent, host, line]) for host in ("node8", "node00")]
    found = dict(job.communicate(timeout=30)[0].split() for job in jobs)
    return float(found["node00"]) / float(found["node8"])


@real
@pytest.mark.slow
@pytest.mark.parametrize("quota", ["", "quota = true\n"])
def test_hosts_get_the_cpu_time_of_their_speeds_while_both_run(cluster, tmp_path, quota):
    cluster.write_text(quota + cluster.read_text())
    lab.up(cluster)
    assert cpu_time_of_node00(tmp_path) == pytest.approx(0.25, rel=0.1)


@real
@pytest.mark.slow
def test_a_host_is_given_another_speed_while_it_runs(state, tmp_path, output):
    assert "0.5" in output("lab", "speed", "node00", "0.5", "--name", NAME)
    assert lab.state_of(NAME).cluster.hosts[1].speed == 0.5
    assert cpu_time_of_node00(tmp_path) == pytest.approx(0.5, rel=0.1)
    lab.set_speed(NAME, "node00", 1.0)
    assert tenants() == []


def tenants():
    """Numbers of the processes that keep hosts of the test's lab slow."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_text()
        except OSError:
            continue
        if "lab_tenant.py" in line and f"{lab.LAB_GROUP}{NAME}/" in line:
            found.append(int(folder.name))
    return found


@real
@pytest.mark.parametrize(
    ("old", "new"), [("name", "quota = true\nname"), ("cpus = [0]", "cpus = [0, 1]"), ("0.25", "0.02")]
)
def test_a_quota_serves_where_a_tenant_cannot(cluster, old, new):
    cluster.write_text(cluster.read_text().replace(old, new, 1))
    lab.up(cluster)
    assert tenants() == []
    (tree,) = (t for t in lab_groups.hierarchies() if "cpu" in t.controllers)
    group = tree.mount / f"{lab.LAB_GROUP}{NAME}" / "node00"
    assert lab_groups.read(group / ("cpu.max" if tree.version == 2 else "cpu.cfs_quota_us"))[0] != "-"


@real
@pytest.mark.skipif(not (Path(sys.executable).parent / "mpiexec").exists(), reason="no Open MPI here")
@pytest.mark.slow
def test_a_run_across_the_hosts_is_recorded_as_synthetic(cluster, tmp_path):
    cluster.write_text("quota = true\n" + cluster.read_text())
    state = lab.up(cluster)
    words = ("-m", "fembench", "run", "m1", "--ranks", 2, "--quick", "--results", tmp_path)
    done = in_lab(sys.executable, *words, timeout=120)
    assert measured(done), done.stdout + done.stderr
    (record,) = load_all(tmp_path)
    names = [record.environment.hosts[i].name for i in record.environment.rank_host]
    assert names == ["node8", "node00"]
    assert record.environment.synthetic == state.cluster.label
    assert record.environment.affinity == tuple(h.cpus for h in state.cluster.hosts)
    assert record.solve.iterations in range(209, 214)
    fast, slow = record.environment.hosts
    assert (fast.cpu_quota, slow.cpu_quota, slow.quota_group.endswith(f"{NAME}/node00")) == (0.0, 0.25, True)
    assert slow.throttled_percent > 0
    (rule,) = [r for r in record.verdict.rules if "withheld by the quota of 0.25 CPUs" in r.value]
    assert (rule.id, rule.ok) == ("D3", True)  # the lab's own
    assert traces()
