"""Bad input: exit status 2, one line, no traceback, nothing left behind, no hang; on 1 and on 2 ranks.

Errors in mesh files are tested in tests/mesh, errors in problem files in tests/fem.
"""

import argparse
from pathlib import Path

import pytest
from mpi_job import cli

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.cli.verbs import build_parser
from fembench.mesh.box import box
from fembench.mesh.io import write

pytestmark = pytest.mark.slow
NO_CLAMP = "[[forces]]\non = {point = [1, 0.5, 1]}\nforce = [0, -1, 0]\n"
TYPO = '[[constraint]]\non = {plane = "x=0"}\n'


@pytest.fixture
def folder(tmp_path):
    """A folder of files that are wrong in one way each."""
    write(box((2, 2, 2)), tmp_path / "good.vtu")
    text = (tmp_path / "good.vtu").read_text()
    (tmp_path / "truncated.vtu").write_text(text[: len(text) // 2])
    (tmp_path / "no_clamp.toml").write_text(NO_CLAMP)
    (tmp_path / "typo.toml").write_text(TYPO)
    (tmp_path / "file").write_text("not a folder")
    return tmp_path


BAD = {
    "a missing mesh": (["nowhere.msh"], "nowhere.msh"),
    "a truncated mesh": (["truncated.vtu"], "truncated.vtu"),
    "an unknown preset": (["m9"], "m9"),
    "no clamped node": (["m1", "--problem", "no_clamp.toml"], "the body can still move"),
    "an unknown key": (["m1", "--problem", "typo.toml"], "'constraints'"),
    "shares of another count": (["m1", "--shares=7:1:1:1"], "shares"),
    "a negative share": (["m1", "--shares=-1,2"], "shares"),
    "more parts than cells": (["box:1x1x1:hex8", "--problem", "bar"], "2 parts of 1 cell;"),
    "a clock that is not known": (["m1", "--clock", "sundial"], "sundial"),
    "a box of 5000 digits": (["box:" + 5000 * "9"], "box of size '999"),
    "results below a file": (["m1", "--results", "file/out"], "file/out"),
    "results that cannot be written": (["m1", "--results", "/proc/out"], "/proc/out"),
}


@pytest.mark.parametrize(("name", "ranks"), [(name, 2) for name in BAD] + [("no clamped node", 1)])
def test_it_is_refused_in_one_line(folder, monkeypatch, refusal, name, ranks):
    arguments, word = BAD[name]
    before = sorted(p.name for p in folder.iterdir())
    options = [] if "--results" in arguments else ["--results", "out"]
    monkeypatch.chdir(folder)
    assert word in refusal("run", *arguments, "--ranks", str(ranks), *options)
    left = [p for p in (folder / "out").rglob("*") if p.is_file()] if (folder / "out").exists() else []
    assert not left
    assert sorted(p.name for p in folder.iterdir() if p.name != "out") == before


def test_a_full_disk_is_one_line_and_leaves_nothing(folder):
    fault = {"PYTHONPATH": str(Path(__file__).parent / "fault"), "FEMBENCH_TEST_FAULT": "full"}
    done = cli("run", "m1", "--ranks", 2, "--quick", "--results", "out", cwd=folder, **fault)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "No space left on device" in done.stderr
    assert not [p for p in (folder / "out").rglob("*") if p.is_file()]


@pytest.mark.parametrize("text", ['{"case": null}', '{"case": []}', '{"case": {"program": 1}}', "[]"])
def test_what_is_no_record_of_a_program_is_refused(tmp_path, capsys, text):
    (tmp_path / "x.json").write_text(text)
    assert main(["validate", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def numeric_options(parser, words=()):
    """The words up to the option, of every option that takes a number."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from numeric_options(child, (*words, name))
        elif type(action.default) in (int, float) and action.option_strings:
            yield *words, action.option_strings[-1]


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400", 5000 * "9"], ids=lambda value: value[:5])
def test_a_number_that_no_option_can_take_is_refused_by_the_parser_in_one_line(value):
    parser = build_parser()
    options = list(numeric_options(parser))
    assert len(options) > 60
    for *words, option in options:
        with pytest.raises(InputError, match=f"^{option} .*: expected a") as refused:
            parser.parse_args([*words, f"{option}={value}"])
        assert len(str(refused.value)) < 200
        assert len(str(refused.value).splitlines()) == 1
