"""The shell scripts: run_bench.sh and its installation, and the scripts that run the tests.

The true installation is what brought this test here: tests/run.sh goes through it on every machine.
"""

import os
import shutil
import subprocess
import sys

import pytest
from planted_clone import ROOT, environment, installations, plant_clone, shell, start


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    return plant_clone(tmp_path)


@pytest.mark.parametrize(
    "script", ["run_bench.sh", "tests/run.sh", "tests/other_mpi.sh", "tests/packages.sh"]
)
def test_help_teaches_before_anything_is_installed(script, tmp_path):
    answer = start(ROOT / script, "--help", FEMBENCH_VENV=str(tmp_path / "none"))
    assert answer.returncode == 0
    assert answer.stdout.startswith("usage: ")
    assert "FEMBENCH_VENV" in answer.stdout
    assert not (tmp_path / "none").exists()


def test_a_start_through_a_link_from_elsewhere_stays_where_it_was_called(clone, tmp_path):
    (tmp_path / "link").symlink_to(clone / "run_bench.sh")
    answer = start(tmp_path / "link", "my campaign.toml", "--results", "out dir", cwd=tmp_path)
    assert answer.stdout == f"1|{tmp_path}|sweep my campaign.toml --results out dir\n"
    assert (clone / ".venv").is_dir()


PASSED = {
    "": "sweep",
    "--quick": "sweep --quick",
    "c.toml": "sweep c.toml",
    "dir/campaign": "sweep dir/campaign",
    "mine": "sweep mine",  # an existing file
    "doctor --json": "doctor --json",
    "sweep --help": "sweep --help",
    "--version": "--version",
    "--completion bash": "--completion bash",
}


def test_an_option_or_a_file_belongs_to_a_campaign_and_a_word_is_a_verb(clone, tmp_path):
    (tmp_path / "mine").touch()
    passed = {given: start(clone / "run_bench.sh", *given.split(), cwd=tmp_path).stdout for given in PASSED}
    assert passed == {given: f"1|{tmp_path}|{words}\n" for given, words in PASSED.items()}


def test_another_place_for_the_environment_is_used(clone, tmp_path):
    answer = start(clone / "run_bench.sh", cwd=tmp_path, FEMBENCH_VENV="else where")
    assert answer.returncode == 0
    assert (tmp_path / "else where" / "bin" / "fembench").exists()
    assert not (clone / ".venv").exists()


def test_a_failed_installation_shows_its_end_and_is_tried_again(clone):
    failed = start(clone / "run_bench.sh", BROKEN="echo the reason; false")
    assert failed.returncode == 3
    assert "the reason" in failed.stderr
    assert "fembench-install.log" in failed.stderr
    assert failed.stdout == ""
    assert start(clone / "run_bench.sh").returncode == 0
    assert installations(clone) == 2


def test_a_change_of_what_is_installed_installs_again(clone):
    start(clone / "run_bench.sh")
    names = ("fembench/kernels/products.c", "pyproject.toml", "CMakeLists.txt", "scripts/constraints.txt")
    for count, name in enumerate(names, 2):
        with (clone / name).open("a") as source:
            source.write("\n")
        start(clone / "run_bench.sh")
        assert (name, installations(clone)) == (name, count)


def test_nothing_is_installed_inside_a_batch_job(clone):
    for job in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "OAR_JOB_ID"):
        answer = start(clone / "run_bench.sh", **{job: "7"})
        assert (job, answer.returncode, installations(clone)) == (job, 3, 0)
        assert "inside a job: run './run_bench.sh doctor' on a login node first" in answer.stderr


def test_a_copy_that_a_batch_system_runs_finds_its_clone(clone, tmp_path):
    start(clone / "run_bench.sh")
    spool = tmp_path / "spool"
    spool.mkdir()
    copy = shutil.copy(clone / "run_bench.sh", spool / "slurm_script")
    lost = start(copy, "doctor", SLURM_JOB_ID="7")
    assert (lost.returncode, lost.stderr.count("\n")) == (3, 1)
    assert "submit it from its clone" in lost.stderr
    (spool / "scontrol").write_text(f"#!/bin/sh\necho '   Command={clone}/run_bench.sh doctor'\n")
    (spool / "scontrol").chmod(0o755)
    found = dict.fromkeys(("SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "LS_SUBCWD"), str(clone))
    found["PATH"] = f"{spool}:{os.environ['PATH']}"
    for variable, value in found.items():
        answer = start(copy, "doctor", SLURM_JOB_ID="7", **{variable: value})
        assert answer.stdout == "1|/|doctor\n", (variable, answer.stderr)


def test_every_tool_for_tests_and_documentation_has_one_known_version(clone):
    answer = shell(clone, "listed test; listed docs")
    known = [
        line for line in (clone / "scripts" / "constraints.txt").read_text().splitlines() if line[0] != "#"
    ]
    assert all(line.count("==") == 1 for line in known)
    assert {"pytest", "sphinx"} <= set(answer.stdout.split()) <= {line.split("==")[0] for line in known}


def test_two_starts_at_once_install_once(clone):
    command = [str(clone / "run_bench.sh"), "doctor"]
    both = [
        subprocess.Popen(
            command, env=environment(SLOW="1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=60) for process in both]
    assert [out.split("|")[2] for out, _ in answers] == ["doctor\n"] * 2
    assert installations(clone) == 1
    assert sum("waiting for another installation" in err for _, err in answers) == 1


def test_a_folder_that_is_no_environment_is_left_alone(clone, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    answer = shell(clone, "make_venv", FEMBENCH_VENV=str(tmp_path / "mine"))
    assert answer.returncode == 3
    assert "is not empty" in answer.stderr
    assert (tmp_path / "mine" / "letter").read_text() == "dear"


TOOLS = "bash dirname readlink realpath find grep sed tail mkdir rm flock stat"


def path_with(folder, **programs):
    """A PATH with the tools that the script needs, and with `programs` (name -> shell text)."""
    folder.mkdir()
    for tool in TOOLS.split():
        (folder / tool).symlink_to(shutil.which(tool))
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


MAKE = 'mkdir -p "$VENV"; make_venv'
VERSION = ".".join(map(str, sys.version_info[:2]))
NO_ENSUREPIP = f'[[ $2 != *ensurepip* ]] && exec {sys.executable} "$@"; exit 1'
NO_HEADERS = "case $2 in *sysconfig*) echo /nowhere ;; *) echo 3.12 ;; esac"


@pytest.mark.parametrize(
    ("code", "programs", "missing", "package"),
    [
        # as 'python3 -c' of an old Python answers
        (MAKE, {"python3": "exit 1"}, "no Python >= 3.10", "apt-get install python3 "),
        (MAKE, {"python3": NO_ENSUREPIP}, "virtual environments", f"python3-venv' (or python{VERSION}-venv)"),
        (f"why_no_kernels {sys.executable}", {}, "no C compiler", "build-essential"),
        (
            "why_no_kernels python",
            {"cc": "exit 0", "python": NO_HEADERS},
            "no Python.h for Python 3.12",
            "python3-dev",
        ),
    ],
)
def test_where_something_is_missing_the_message_names_the_package(
    clone, tmp_path, code, programs, missing, package
):
    answer = shell(clone, code, PATH=path_with(tmp_path / "bin", **programs))
    assert answer.returncode == (3 if code == MAKE else 0)
    assert missing in answer.stderr + answer.stdout
    assert package in answer.stderr + answer.stdout


SESSION = f"""#!/bin/bash
[[ $* == *pytest* ]] || exec {sys.executable} "$@"
echo "python $*" >>"$CALLS"
[[ -z $TALLY ]] || printf "$TALLY" >>"$FEMBENCH_TEST_TALLY"
exit "${{STATUS:-0}}"
"""
SUITE = """
install_test() {
    rm "$VENV/bin/python" && cp "$ROOT/session" "$VENV/bin/python"
    printf '#!/bin/bash\\necho "mpiexec $1 $2" >>"$CALLS"; shift 2; exec "$@"\\n' >"$VENV/bin/mpiexec"
    printf '#!/bin/bash\\nexit "${LINT:-0}"\\n' | tee "$VENV/bin/ruff" >"$VENV/bin/mypy"
    chmod +x "$VENV"/bin/*
}
use_mpi() { echo "use_mpi $1" >>"$CALLS"; }
"""


@pytest.fixture
def suite(clone, tmp_path):
    """Run a script of tests/ with sessions that only add TALLY to the counts and end with STATUS."""
    (clone / "session").write_text(SESSION)
    (clone / "tests").mkdir()
    for name in ("run.sh", "other_mpi.sh", "sessions.sh"):
        shutil.copy(ROOT / "tests" / name, clone / "tests")
    with (clone / "scripts" / "environment.sh").open("a") as script:
        script.write(SUITE)

    def run(*arguments, script="run.sh", **changes):
        changes = {"TALLY": "passed 2\\nfailed 0\\n", "CALLS": str(tmp_path / "calls")} | changes
        done = start(clone / "tests" / script, *arguments, **changes)
        return done.returncode, done.stdout.splitlines(), (tmp_path / "calls").read_text()

    return run


def test_the_suite_runs_checks_and_sessions_and_adds_them_up(suite):
    status, lines, calls = suite()
    assert (status, lines[-1]) == (0, "17 passed, 0 failed")  # 3 checks, 7 sessions of 2
    assert [line for line in calls.splitlines() if line.startswith("mpiexec")] == [
        f"mpiexec -n {n}" for n in (2, 3, 4)
    ]
    assert calls.count("-W error -m pytest") == 7
    assert calls.count("-O -W error") == 1


def test_with_arguments_only_what_was_asked_is_run(suite):
    status, lines, calls = suite("tests/mesh", "-k", "box", FEMBENCH_TEST_RANKS="2 5")
    assert (status, lines[-1]) == (0, "8 passed, 0 failed")
    assert calls.count("tests/mesh -k box") == 4
    assert "mpiexec -n 5" in calls
    assert "-O" not in calls


def test_another_mpi_library_runs_mpi_tests_on_two_ranks_and_fewer_on_three(suite):
    status, lines, calls = suite("mpich", script="other_mpi.sh")
    assert (status, lines[-1]) == (0, "6 passed, 0 failed")
    library, *sessions = calls.splitlines()
    assert library == "use_mpi mpich"
    assert [line for line in sessions if line.startswith("mpiexec")] == ["mpiexec -n 2", "mpiexec -n 3"]
    _, _, calls = suite("impi-rt", "tests/mesh", script="other_mpi.sh")
    assert calls.count("tests/mesh") == 3


def test_an_mpi_library_that_is_not_known_gives_the_help_and_status_2():
    answer = start(ROOT / "tests" / "other_mpi.sh", "mvapich")
    assert (answer.returncode, answer.stdout.splitlines()[0][:6]) == (2, "usage:")


def test_failures_of_sessions_and_of_checks_are_counted_once(suite):
    status, lines, _ = suite(TALLY="passed 1\\nfailed 1\\nfailure x.py::test: no\\n", STATUS="1", LINT="1")
    assert (status, lines[-1]) == (1, "7 passed, 10 failed")
    no = "failure x.py::test: no"
    checks = [f"failure '{name}' did not pass" for name in ("ruff format", "ruff check", "mypy")]
    assert lines[-11:-1] == [*checks[:2], no, checks[2], *[no] * 6]  # types beside the first session


@pytest.mark.parametrize(
    ("tally", "session", "status", "last"),
    [
        ("", "139", 1, ["failure 'MPI tests on 4 rank(s)' broke down with status 139", "0 passed, 6 failed"]),
        ("passed 0\\nfailed 0\\n", "5", 0, ["", "0 passed, 0 failed"]),
    ],
)
def test_a_session_without_a_count_is_a_failure_and_one_in_which_nothing_was_selected_is_none(
    suite, tally, session, status, last
):
    found, lines, _ = suite("tests/mesh", TALLY=tally, STATUS=session)
    assert (found, lines[-2:]) == (status, last)


def test_a_skip_that_is_not_on_the_list_is_a_failure(suite, tmp_path):
    (tmp_path / "allowed").write_text("# reasons\n\ntest_a: .*root\n")
    tally = "passed 1\\nfailed 0\\nskipped x.py::test_a: as root\\nskipped x.py::test_b: no PETSc\\n"
    status, lines, _ = suite("x.py", TALLY=tally, FEMBENCH_ALLOWED_SKIPS=str(tmp_path / "allowed"))
    assert (status, lines[-1]) == (1, "6 passed, 1 failed")
    assert lines[-2] == "failure must not be skipped here: x.py::test_b: no PETSc"


def test_the_compiler_of_ci_compiles_a_source_once_for_each_set_of_options_wherever_it_lies(tmp_path):
    tools, objects = tmp_path / "tools", tmp_path / "objects"
    tools.mkdir()
    compiler = tools / "cc"
    compiler.write_text(f'#!/bin/sh\necho "$*" >>"{tmp_path}/calls"\nexec {shutil.which("gcc")} "$@"\n')
    compiler.chmod(0o755)
    cython, made = "static const char * const __pyx_cfilenm = __FILE__;\n", {}
    for folder, options in (("one", "-O1"), ("two", "-O1"), ("three", "-O0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.c").write_text(f"{cython}int a(int b) {{ return 2 * b; }}\n")
        files = ["-c", str(tmp_path / folder / "a.c"), "-o", str(tmp_path / folder / "a.o")]
        found = {"PATH": f"{tools}:{os.environ['PATH']}", "FEMBENCH_OBJECTS": str(objects)}
        once = start(ROOT / "tests/compile_once.sh", options, *files, **found)
        assert once.returncode == 0, once.stderr
        made[folder] = (tmp_path / folder / "a.o").read_bytes()
    assert made["one"] == made["two"] != made["three"]
    compiled = [line for line in (tmp_path / "calls").read_text().splitlines() if " -E " not in f" {line} "]
    assert [line.split()[0] for line in compiled] == ["-O1", "-O0"]
