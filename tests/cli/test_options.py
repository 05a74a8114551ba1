"""Options are declared in a text that reads like the help page."""

import argparse
from pathlib import Path

import pytest

from fembench.base.errors import InputError
from fembench.cli.options import call, declare, declare_actions, whole
from fembench.cli.parser import Parser, page

TEXT = """
records RECORD+: what to read
-o, --output FILE: what to
    write
--storage STORAGE = sym: which
--ranks N: how many
--rounds N = 2: as often
--timeout SECONDS = 1.5: as long
--form tree|text = text: what it looks like
--link LINK*: may be repeated
--[no-]overlap: perhaps
--json: a flag
| --hosts HOSTS: this
| --hostfile FILE: or that
[more] a note
--folder DIR: a folder
"""


def parsed(*words):
    parser = Parser(prog="fembench verb")
    declare(parser, TEXT, rounds=whole(1), folder=Path)
    return parser.parse_args(words)


def test_an_option_that_is_not_given_has_the_declared_default():
    found = vars(parsed("a.json"))
    assert found == {
        "records": ["a.json"],
        "output": "",
        "storage": "sym",
        "ranks": 0,
        "rounds": 2,
        "timeout": 1.5,
        "form": "text",
        "link": [],
        "overlap": None,
        "json": False,
        "hosts": "",
        "hostfile": "",
        "folder": None,
    }


def test_an_option_is_read_as_the_type_that_its_value_names():
    words = "a b -o c --ranks 3 --timeout 2 --form tree --link x --link y --no-overlap --json --folder d"
    found = parsed(*words.split())
    assert (found.records, found.output, found.ranks, found.timeout) == (["a", "b"], "c", 3, 2.0)
    assert (found.form, found.link, found.overlap, found.json) == ("tree", ["x", "y"], False, True)
    assert found.folder == Path("d")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rounds", "0"], "--rounds 0: expected a whole number of at least 1"),
        (["--ranks", "0"], "--ranks 0: expected a whole number of at least 1"),
        (["--timeout", "0"], "--timeout 0: expected a number above 0"),
        (["--output", ""], "--output '': expected a value"),
        (["--form", "tre"], "--form tre: expected tree or text; did you mean 'tree'?"),
        (["--hosts", "a", "--hostfile", "b"], "not allowed with argument --hosts"),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_line(words, said):
    with pytest.raises(InputError) as error:
        parsed("a.json", *words)
    assert said in str(error.value)


def test_the_page_shows_a_declaration_and_the_group_with_its_note():
    parser = Parser(prog="fembench verb")
    declare(parser, TEXT)
    text = page(parser, 78)
    assert "  -o, --output FILE       what to write\n" in text
    assert "more:\n  a note\n  --folder DIR" in text


def test_a_line_that_declares_nothing_is_an_error():
    with pytest.raises(ValueError, match="--ranks N how many"):
        declare(Parser(), "--ranks N how many")


def test_actions_are_declared_by_paragraph():
    parser = Parser(prog="fembench verb")
    declare_actions(parser, "up: build\nfile FILE: which\n\nrun: enter\ncommand COMMAND ...: words")
    assert vars(parser.parse_args(["up", "a"])) == {"action": "up", "file": "a"}
    assert parser.parse_args(["run", "ls", "-l", "--json"]).command == ["ls", "-l", "--json"]


def test_a_workflow_gets_the_options_that_bear_the_names_of_its_parameters():
    def workflow(ranks, *, rounds=1, command):
        return ranks, rounds, command

    options = argparse.Namespace(ranks=2, json=True, verb="x")
    assert call(workflow, options, command="typed") == (2, 1, "typed")
