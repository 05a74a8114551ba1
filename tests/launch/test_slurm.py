"""Jobs under a Slurm of virtual hosts, and on the same hosts without it. Skipped where there can be none."""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest
from mpi_job import measured
from virtual_hosts import slurm_cluster, why_no_slurm

from fembench.records.nodes import load_nodes
from fembench.records.store import load_all

ROOT = Path(__file__).parent.parent.parent
REASON = why_no_slurm()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]
FEMBENCH = (sys.executable, "-m", "fembench")
SHORT = ("--sets", 1, "--warmups", 0)
BUSY = 10.0  # percent of CPU time that others use: they take more from fast hosts than from slow ones
ALL_SIX = ["n1", "n1", "n2", "n2", "n3", "n3"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), f"slurm-{os.getpid()}") as cluster:
        yield cluster


def places(folder):
    """{number of ranks: the host of each rank} of the records in a folder."""
    environments = [record.environment for record in load_all(folder)]
    return {len(e.rank_host): [e.hosts[i].name for i in e.rank_host] for e in environments}


def sweep(folder, ranks):
    """The words that run a campaign on these numbers of ranks."""
    path = folder / "scaling.toml"
    path.write_text(f'name = "scaling"\n[[cases]]\nmesh = "m1"\nranks = {ranks}\nsets = 5\nwarmups = 0\n')
    return (*FEMBENCH, "sweep", path, "--results", folder / "out", "--no-report")


def test_a_sweep_inside_an_allocation_fills_its_hosts_in_their_order(slurm, tmp_path):
    done = slurm.run("salloc", "-N3", "-n6", *sweep(tmp_path, "[4]"))
    assert measured(done), done.stdout + done.stderr
    assert places(tmp_path / "out") == {4: ALL_SIX[:4]}


def test_a_campaign_goes_on_in_another_allocation_of_the_same_hosts_only(slurm, tmp_path):
    for host in ("n1", "n2", "n1"):
        done = slurm.run("salloc", "-N1", "-n1", "-w", host, *sweep(tmp_path, "[1]"))
        assert measured(done) if host == "n1" else done.returncode == 2
        assert ("records made on other hosts (n1): 1; " in done.stderr) == (host == "n2")


def test_the_batch_script_of_the_guide_runs_a_campaign_on_all_hosts(slurm, tmp_path):
    guide = (ROOT / "docs" / "howto" / "batch.md").read_text()
    script = re.search(r"## Slurm\n.*?```sh\n(.*?)```", guide, re.DOTALL)[1]
    for four_hosts, three in (("--nodes=4", "--nodes=3"), ("--ntasks-per-node=16", "--ntasks-per-node=2")):
        assert four_hosts in script
        script = script.replace(four_hosts, three)
    (tmp_path / "job.sh").write_text(script)
    (tmp_path / "run_bench.sh").symlink_to(ROOT / "run_bench.sh")
    sweep(tmp_path, '["node", "all"]')
    printed = slurm.batch("job.sh", cwd=tmp_path, FEMBENCH_VENV=sys.prefix)
    assert places(tmp_path / "results" / "cluster") == {n: ALL_SIX[:n] for n in (2, 6)}, printed


def test_slurm_runs_a_copy_of_run_bench_that_finds_its_clone(slurm, tmp_path):
    printed = slurm.batch(ROOT / "run_bench.sh", "--version", cwd=tmp_path, FEMBENCH_VENV=sys.prefix)
    assert re.search(r"^fembench \d", printed, re.MULTILINE), printed


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"PBS_JOBID": "7.head", "PBS_NODEFILE": "FILE"}, ["n1", "n2", "n3"]),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "n2 2 n3 1"}, ["n2", "n2", "n3"]),
        ({"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "FILE"}, ["n2", "n1", "n1"]),
    ],
    ids=lambda value: "+".join(value),
)
def test_the_hosts_of_another_batch_system_are_used(slurm, tmp_path, variables, found):
    (tmp_path / "slots").write_text("".join(f"{host}\n" for host in found))  # one line for each
    variables = {name: value.replace("FILE", str(tmp_path / "slots")) for name, value in variables.items()}
    run = (*FEMBENCH, "run", "m1", "--ranks", len(found), *SHORT, "--results", tmp_path / "out")
    done = slurm.run(*run, on=found[0], **variables)
    assert measured(done), done.stdout + done.stderr
    assert places(tmp_path / "out") == {len(found): found}


@pytest.mark.parametrize(
    ("text", "found"), [("n3:1\nn1:2\n", ["n3", "n1", "n1"]), ("n2\nn1\nn2\n", ["n2", "n1", "n2"])]
)
def test_a_host_file_in_any_form_is_followed(slurm, tmp_path, text, found):
    (tmp_path / "hosts").write_text(text)
    where = ("--hostfile", tmp_path / "hosts", "--results", tmp_path / "out")
    done = slurm.run(*FEMBENCH, "run", "m1", "--ranks", len(found), *SHORT, *where, on="n1")
    assert measured(done), done.stdout + done.stderr
    assert places(tmp_path / "out") == {len(found): found}


@pytest.mark.alone
def test_the_slow_host_of_an_allocation_is_found(slurm, tmp_path):
    """All three share two CPUs, of which the third gets a quarter."""
    words = ("nodes", "--rounds", 6, "--results", tmp_path, "--json")
    done = slurm.run("salloc", "-N3", "-n6", *FEMBENCH, *words)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    others = max(host.others_percent for host in load_nodes(tmp_path).first.environment.hosts)
    if others > BUSY:
        pytest.skip(f"other programs used {others:.0f} % of the CPU time")
    verdicts = {node["name"]: node["verdict"] for node in json.loads(done.stdout)["nodes"]}
    assert "slow" not in (verdicts["n1"], verdicts["n2"]), done.stdout
    if "disturbed" in verdicts.values():
        pytest.skip(f"other programs used {others:.1f} % of the CPU time, more during some visits")
    assert verdicts == {"n1": "normal", "n2": "normal", "n3": "slow"}, done.stdout


def test_a_heterogeneous_job_runs_across_its_components(slurm, tmp_path):
    components = ("-N2", "-n3", "-C", "fast", ":", "-N1", "-n1", "-C", "slow")
    run = (*FEMBENCH, "run", "m1", "--ranks", 4, *SHORT, "--results", tmp_path)
    done = slurm.run("salloc", *components, *run)
    assert measured(done), done.stdout + done.stderr
    assert places(tmp_path) == {4: ["n1", "n1", "n2", "n3"]}


def test_fembench_under_srun_is_refused_with_what_to_type(slurm, tmp_path):
    run = (*FEMBENCH, "run", "m1", "--ranks", 2, "--results", tmp_path)
    done = slurm.run("srun", "-N2", "-n2", *run)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("type the command without srun inside salloc") == 1
    assert not list(tmp_path.rglob("*.json"))


def rank_of(process):
    """The rank that a process is, by what its launcher told it."""
    variables = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return next(
        int(v.partition("=")[2]) for v in variables if re.match("(PMIX|PMI|OMPI_COMM_WORLD)_RANK=", v)
    )


def test_a_rank_that_is_killed_on_another_host_ends_the_job_within_ten_seconds(slurm, tmp_path):
    run = (*FEMBENCH, "run", "m2", "--ranks", 4, "--sets", 100000, "--results", tmp_path)
    with slurm.started("salloc", "-N2", "-n4", *run) as process:
        deadline = time.monotonic() + 60
        while len(ranks := slurm.processes("n2", "fembench.bench.case_run")) < 2:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        while not list(tmp_path.glob("runs/.job-*/started.json")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)  # it has begun to compute
        rank = rank_of(max(ranks))
        os.kill(max(ranks), 9)
        begin = time.monotonic()
        _, error = process.communicate(timeout=60)
    assert time.monotonic() - begin < 10
    assert process.returncode == 1
    assert f"rank {rank} on n2 " in error
