"""Man pages and tab completion come from the parsers and name every verb and every option."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fembench.cli.main import main
from fembench.cli.manual import completion, pages, write_pages
from fembench.cli.parser import option_strings
from fembench.cli.verbs import SHELLS, verb_parser, verbs

ROOT = Path(__file__).parents[2]


def test_a_man_page_names_every_option_of_its_verb():
    made = pages()
    assert set(made) == {"fembench.1", *(f"fembench-{verb}.1" for verb in verbs())}
    for verb in verbs():
        assert rf"\fBfembench\-{verb}\fR(1)" in made["fembench.1"]
        for option in option_strings(verb_parser(verb)):
            assert option.replace("-", r"\-") in made[f"fembench-{verb}.1"]


@pytest.mark.skipif(not shutil.which("groff"), reason="needs groff")
def test_roff_reads_the_pages_without_a_warning(tmp_path):
    line = ["groff", "-man", "-Tutf8", "-Kutf8", "-Wbreak", "-z", *map(str, write_pages(tmp_path))]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_completion_of_a_shell_names_every_verb_and_option(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["--completion", shell]) == 0
    text = capsys.readouterr().out
    for verb in verbs():
        assert verb in text
        for option in option_strings(verb_parser(verb)):
            assert option.lstrip("-") in text, f"{verb} {option}"


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes_a_verb_and_an_option(tmp_path):
    pytest.importorskip("shtab")
    (tmp_path / "fembench.sh").write_text(completion("bash"))
    code = """source fembench.sh
    complete_line() {
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _shtab_fembench
        echo "${COMPREPLY[@]}"
    }
    complete_line fembench swe
    complete_line fembench run --toler
    complete_line fembench run --solver p
    """
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split("\n")[:3] == ["sweep", "--tolerance --tolerance-kind", "petsc"], done.stderr


def test_without_shtab_the_answer_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--completion", "bash"]) == 2
    assert "-m pip install shtab\n" in capsys.readouterr().err


def test_the_pages_are_made_with_nothing_but_the_requirements_of_the_build(tmp_path):
    have = {"msgspec", "fembench", "Cython", "scikit_build_core"}
    code = f"""import sys
class Isolated:
    def find_spec(name, path=None, target=None):
        if not path and name not in sys.stdlib_module_names and name not in {have}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Isolated)
from pathlib import Path
from fembench.cli.manual import write_pages
print(len(write_pages(Path({str(tmp_path)!r}))))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{len(pages())}\n"), done.stderr


def test_an_isolated_build_hands_its_packages_on_to_the_program_that_makes_the_pages():
    made = (ROOT / "CMakeLists.txt").read_text()
    assert "PYTHONPATH" not in "".join(line for line in made.splitlines() if not line.startswith("#"))


def test_the_program_that_cmake_runs_writes_every_page(tmp_path):
    line = [sys.executable, "-m", "fembench.cli.manual", str(tmp_path / "man1")]
    assert " ".join(line[1:3]) in (ROOT / "CMakeLists.txt").read_text()
    subprocess.run(line, check=True, cwd=ROOT)
    assert {path.name for path in (tmp_path / "man1").iterdir()} == set(pages())
