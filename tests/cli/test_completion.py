"""Tab completion comes from the parsers and names every verb and every option."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

from fembench.cli.parser import option_strings
from fembench.cli.verbs import SHELLS, completion, verb_parser, verbs


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


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
def test_fish_completes_a_verb_an_option_and_a_choice(tmp_path):
    pytest.importorskip("shtab")
    (tmp_path / "fembench.fish").write_text(completion("fish"))
    asked = ("fembench swe", "fembench run --toler", "fembench run --solver p")
    code = "; ".join(["source fembench.fish", *(f"complete -C '{line}'; echo" for line in asked)])
    done = subprocess.run(["fish", "-N", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    found = [[line.split("\t")[0] for line in part.splitlines()] for part in done.stdout.split("\n\n")]
    assert found[:3] == [["sweep"], ["--tolerance", "--tolerance-kind"], ["petsc"]], done.stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_completes_a_verb_an_option_and_a_choice(tmp_path):
    """Keys go to a terminal: zsh completes nothing without one."""
    pytest.importorskip("shtab")
    (tmp_path / "_fembench").write_text(completion("zsh"))
    ours, theirs = pty.openpty()
    words = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "cwd": tmp_path}
    variables = os.environ | {"TERM": "xterm", "HOME": str(tmp_path)}
    shell = subprocess.Popen(["zsh", "-f", "-i"], env=variables, start_new_session=True, **words)

    def press(keys, until):
        os.write(ours, keys.encode())
        shown, end = b"", time.monotonic() + 20
        while until.encode() not in shown and time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 4096)
        assert until.encode() in shown, shown

    try:
        press("PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy\n", "ready")
        press("fembench swe\t", "sweep")
        press("\x15fembench run --solver pe\t", "petsc")
        press("\x15fembench run --toler\t\t", "--tolerance-kind")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)


def test_without_shtab_the_answer_says_how_to_get_it(monkeypatch, refusal):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "-m pip install shtab\n" in refusal("--completion", "bash")
