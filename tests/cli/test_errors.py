"""A mistyped command is refused in one line, exit status 2, with the nearest word that exists."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from planted_records import planted, wrong

from fembench.base.config import encode
from fembench.base.errors import InputError, options_named
from fembench.cli import doctor
from fembench.cli.main import main
from fembench.records.store import save

PROFILE = "machine profile, which fembench characterize makes"
ANY = "preset, box:NXxNYxNZ[:tet4|hex8], box:EQUATIONS, or a mesh file or folder"
MESH = "preset, box:…, or a mesh file, as in fembench run"
MAKES = "`fembench characterize -o no-such.json` makes"
PROFILE_MADE = "machine profile: `fembench characterize -o machine.json` makes one"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("repot results", "unknown verb 'repot'; did you mean 'report'?; see fembench --help"),
        ("qqq", "unknown verb 'qqq'; see fembench --help"),
        ("--verson", "unknown option '--verson'; did you mean '--version'?; see fembench --help"),
        ("", "expected a verb, such as 'fembench doctor'; see fembench --help"),
        ("run m1 --rnks 1", "unknown option '--rnks'; did you mean '--ranks'?; see fembench run --help"),
        ("run m1 --zzz=1", "unknown option '--zzz'; see fembench run --help"),
        ("run m1 m2", "unknown argument 'm2'; see fembench run --help"),
        ("run", f"missing MESH ({ANY}); see fembench run --help"),
        ("predict m", f"missing --machine ({PROFILE}); see fembench predict --help"),
        ("predict", f"missing MESH ({MESH}), --machine ({PROFILE}); see fembench predict --help"),
        (
            "predict m --machine no-such.json",
            "no-such.json: no such file; `fembench characterize -o no-such.json` makes the profile",
        ),
        (
            "weights no-such.json",
            f"no-such.json: no such file; expected a record, or the profile that {MAKES}",
        ),
        ("run m1 --ranks", "--ranks: expected one argument; see fembench run --help"),
        ("run m1 --ranks two", "--ranks two: expected a whole number of at least 1"),
        ("run m1 --tolerance small", "--tolerance small: expected a number above 0"),
        ("run m1 --precision 101", "--precision 101: expected a number of at least 0 and at most 100"),
        ("run m1 --dilate 1e99", "--dilate 1e99: expected a number up to 2147483647"),
        (
            "run m1 --tolerance 2 --tolerance-kind relative",
            "run: --tolerance 2 relative to the load: expected a number below 1",
        ),
        ("peers m1 --tolerance 1", "--tolerance 1: expected a number between 0 and 1"),
        ("sweep --minutes 0", "--minutes 0: expected a number above 0"),
        (
            "predict m --machine m.json --iterations -1",
            "--iterations -1: expected a whole number of at least 1",
        ),
        (
            "predict m --machine .",
            f".: a folder; expected the file of a {PROFILE_MADE}",
        ),
        ("doctor --hostfile no-such", "cannot read no-such: No such file or directory"),
        ("run m1 --weights=", "--weights '': expected a value; see fembench run --help"),
        ("run m1 --solver pets", "--solver pets: expected own or petsc; did you mean 'petsc'?"),
        ("mesh bx", "ACTION bx: expected box, info or convert; did you mean 'box'?"),
        ("mesh info m1 --jsn", "unknown option '--jsn'; did you mean '--json'?; see fembench mesh --help"),
        ("run m1 --ranks 99999999999999", "--ranks 99999999999999: expected a whole number up to 2147483647"),
        ("run m1 -np=4", "unknown option '-np'; did you mean '--ranks'?; see fembench run --help"),
        ("run m1 --ntasks 4", "unknown option '--ntasks'; did you mean '--ranks'?; see fembench run --help"),
        ("run m1 --nodes 2", "unknown option '--nodes'; did you mean '--hosts'?; see fembench run --help"),
        ("run m1 --ppn=2", "unknown option '--ppn'; did you mean '--per-node'?; see fembench run --help"),
        ("--completion bsh", "--completion bsh: expected bash, zsh, fish or tcsh; did you mean 'bash'?"),
    ],
)
def test_a_slip_is_answered_with_the_nearest_word(capsys, words, said):
    assert main(words.split()) == 2
    assert capsys.readouterr() == ("", f"fembench: {said}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("trace a.json b.json", "expected one record, got 2 files; see fembench trace --help"),
        (
            "place a.json b.json c.json --machine m.json",
            "expected one record, got 3 files; see fembench place --help",
        ),
        (
            "predict m1 --machine m.json -o p.json --against a.json b.json",
            "expected one record, got 2 files; see fembench predict --help",
        ),
        ("trace a.json no.json", "unknown argument 'no.json'; see fembench trace --help"),
        ("doctor a.json", "unknown argument 'a.json'; see fembench doctor --help"),
    ],
)
def test_several_files_in_place_of_one_as_a_pattern_names_them_are_counted(
    tmp_path, monkeypatch, refusal, words, said
):
    monkeypatch.chdir(tmp_path)
    for name in "abcm":
        Path(f"{name}.json").touch()
    assert refusal(*words.split()) == f"fembench: {said}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run m1 --weights notes.md", "weights of fembench tune"),
        ("check notes.md", "a record of fembench run"),
        ("weights notes.md", "a record, a machine profile or weights"),
    ],
)
def test_a_file_that_is_not_json_is_answered_with_what_was_expected(
    tmp_path, monkeypatch, refusal, words, said
):
    monkeypatch.chdir(tmp_path)
    Path("notes.md").write_text("# Notes\n")
    wrong_file = "notes.md: not valid JSON: invalid character (byte 0)"
    assert refusal(*words.split()) == f"fembench: {wrong_file}; expected {said}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run m1 --ranks 2 --hosts n9", "fembench: --hosts n9: no host n9 in the job"),
        ("run m1 --shares 2:1 --weights w.json", "--weights w.json and --shares 2:1: expected one of them"),
        ("run m1 --exchange blocking", "exchange 'blocking' overlaps nothing: expected --no-overlap\n"),
        ("run m1 --petsc-options=-x", "petsc_options: expected --solver petsc\n"),
        ("partition m1", "expected either --shares 2:1 or --weights FILE\n"),
        ("sweep c.toml --dry-run", "c.toml [[cases]]: ranks = 0: expected at least 1\n"),
    ],
)
def test_a_message_names_options_as_they_are_typed_and_keys_as_in_their_file(
    tmp_path, monkeypatch, refusal, words, said
):
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text('name = "c"\n[[cases]]\nranks = 0\n')
    assert said in refusal(*words.split())


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("per_node = 3: vm has 2 slots", "--per-node 3: vm has 2 slots"),
        ("weights = w.json and shares = 2:1: no", "--weights w.json and --shares 2:1: no"),
        ("reference r.json: shares = '2:1'; no", "reference r.json: shares = '2:1'; no"),
        ("w.json: rank 0: expected shares = '2:1'", "w.json: rank 0: expected --shares 2:1"),
        ("c.toml [[cases]] shares = '': seed = 1", "c.toml [[cases]] shares = '': seed = 1"),
        (
            "c.toml: no; expected per_node = N or weights = FILE",
            "c.toml: no; expected --per-node N or --weights FILE",
        ),
        ("nodes = 3", "nodes = 3"),
    ],
)
def test_only_what_can_be_typed_is_spelt_as_an_option(said, typed):
    with pytest.raises(InputError) as caught, options_named(["--per-node", "--weights", "--shares"]):
        raise InputError(said)
    assert str(caught.value) == typed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "a" * 300], f"cannot read or write {'a' * 200}…: File name too long"),
        (["balance", "--virtual", "a" * 300], "…: File name too long"),
        (["report", "loop"], "loop"),
        (["characterize", "-o", "loop"], "loop"),
        (["nodes", "--without", "."], "cannot write .: Is a directory"),
        (["nodes", "--without", "file/hosts"], "cannot write file: File exists"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, refusal, words, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    assert said in refusal(*words)


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "cannot write x: "), (errno.EACCES, "cannot read or write x: ")]
)
def test_a_file_that_the_system_refuses_is_named(monkeypatch, refusal, number, said):
    def refused(options):
        raise OSError(number, os.strerror(number), "x")

    monkeypatch.setattr(doctor, "run", refused)
    assert refusal("doctor") == f"fembench: {said}{os.strerror(number)}\n"


def test_a_mesh_that_does_not_fit_into_the_memory_is_refused(monkeypatch, refusal):
    def too_large(options):
        raise MemoryError("Unable to allocate 3 GiB")

    monkeypatch.setattr(doctor, "run", too_large)
    said = "fembench: not enough memory (Unable to allocate 3 GiB); expected a smaller mesh\n"
    assert refusal("doctor") == said


def test_a_name_that_no_record_can_hold_is_refused(monkeypatch, refusal):
    name = os.fsdecode(b"r\xff")
    monkeypatch.setattr(doctor, "run", lambda options: encode(name))
    assert refusal("doctor") == "fembench: 'r\\udcff': expected UTF-8\n"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (
            ["--help", ">", "/dev/full"],
            2,
            "fembench: cannot write standard output",
        ),
        (["--help", "|", "true"], 0, ""),
        (["--help", ">&-"], 0, ""),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_cannot_be_printed_is_said_in_one_line_or_not_at_all(words, status, said, unbuffered):
    line = " ".join(["set -o pipefail; sleep 0.1;", sys.executable, "-m fembench", *words])
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)


def test_a_reader_that_leaves_does_not_make_invalid_runs_valid(tmp_path):
    save(wrong(planted((1.0,))), tmp_path)
    line = f"set -o pipefail; {sys.executable} -m fembench check {tmp_path} | true"
    for unbuffered in ("", "1"):
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (1, "")


def test_a_terminal_without_the_characters_gets_others():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    line = [sys.executable, "-m", "fembench", "predict", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout
