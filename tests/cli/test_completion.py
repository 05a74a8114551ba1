"""Tab completion comes from the parsers and names every verb and every option."""

import shutil
import subprocess
import sys

import pytest

from fembench.cli.completion import completion
from fembench.cli.parser import option_strings
from fembench.cli.verbs import SHELLS, verb_parser, verbs


@pytest.mark.parametrize("shell", SHELLS)
def test_the_completion_of_a_shell_names_every_verb_and_option(shell, output):
    pytest.importorskip("shtab")
    text = output("--completion", shell)
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


def test_without_shtab_the_answer_says_how_to_get_it(monkeypatch, refusal):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "-m pip install shtab\n" in refusal("--completion", "bash")
