"""Help pages: verbs in groups, own options first, one style; nothing heavy is imported for them."""

import argparse
import importlib
import re
import shlex
import subprocess
import sys

import pytest

from fembench.base.plugins import plugin
from fembench.cli.main import _spelled_out, main
from fembench.cli.parser import example, page
from fembench.cli.shared import fields_from
from fembench.cli.verbs import GROUPS, listing, one_line, own_verbs, verb_parser, verbs
from fembench.host.provenance import version_of
from fembench.workflows.cases import case_of


def with_actions(parser):
    """A parser and those of its actions."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


HEAVY = ("numpy", "scipy", "msgspec", "mpi4py", "matplotlib", "subprocess", "asyncio")


@pytest.mark.parametrize("width", [78, 98])
def test_the_list_of_verbs_fits_a_terminal(width):
    lines = listing(width).splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= width + 2


def test_every_verb_stands_in_one_group_with_its_line(output):
    text = output("--help")
    for verb in verbs():
        assert len(re.findall(rf"^  {verb} +{re.escape(one_line(verb))}$", text, re.M)) == 1
    assert all(f"{group} (" in text for group in GROUPS)


@pytest.mark.parametrize("verb", verbs())
def test_a_verb_says_what_it_does_in_the_imperative(verb):
    first = one_line(verb).split()[0]
    assert first[0].isupper()
    assert not first.endswith("s"), f"'{first}': expected an imperative"
    assert len(one_line(verb)) <= 64


@pytest.mark.parametrize("verb", verbs())
@pytest.mark.parametrize("width", [78, 100])
def test_a_page_fits_begins_with_what_the_verb_does_and_lists_every_option_once(verb, width):
    parser = verb_parser(verb)
    text = page(parser, width)
    assert text.startswith(one_line(verb))
    assert max(map(len, text.splitlines())) <= width + 2
    assert text.index("usage: ") < text.index("options:\n")
    own = [option for action in parser._actions for option in action.option_strings]
    for option in own:
        assert len(re.findall(rf"(?m)^  (\S+, )*{re.escape(option)}(?![\w-])", text)) == 1


@pytest.mark.parametrize("verb", verbs())
def test_a_metavar_says_the_type(verb):
    for parser in with_actions(verb_parser(verb)):
        for action in parser._actions:
            assert not re.fullmatch("[A-MO-Z]", str(action.metavar)), (
                f"{parser.prog}: {action.option_strings}"
            )


@pytest.mark.parametrize("verb", verbs())
def test_the_examples_of_a_page_are_commands_that_the_parser_takes(verb):
    if verb in ("characterize", "trace") and plugin("options", verb) is None:
        pytest.skip("fembench-studies is not installed")
    found = re.findall(r"^  ((?:fembench|dot) .*)", verb_parser(verb).epilog or "", re.M)
    commands = [part.strip() for line in found for part in line.split("&&")]
    ours = [shlex.split(text, comments=True) for text in commands if text.startswith("fembench ")]
    assert ours
    for _, name, *words in ours:
        end = words.index("--") if "--" in words else len(words)
        options = verb_parser(name).parse_args(_spelled_out([name, *words[:end]])[1:])
        if name in ("run", "tune"):
            options.after = words[end + 1 :]
            assert case_of(fields_from(options), "options").placement.ranks >= 1


@pytest.mark.parametrize("verb", verbs())
def test_no_comment_of_an_example_holds_a_command_to_type_after_it(verb):
    """Where lines are short, a comment stands above its command."""
    assert not re.search(r"(?m)^  fembench .*  # .*fembench ", verb_parser(verb).epilog or "")


def imported(*words):
    """Names of the modules that a command has imported when it ends."""
    code = (
        "import sys; from fembench.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_list_of_verbs_imports_nothing_heavy_and_no_module_of_a_verb():
    found = imported("--help")
    assert not found & {*HEAVY, *(f"fembench.cli.{verb}" for verb in own_verbs())}


@pytest.mark.parametrize("verb", own_verbs())
def test_the_list_shows_the_first_line_of_a_verb(verb):
    module = importlib.import_module(f"fembench.cli.{verb}")
    assert module.__doc__.splitlines()[0] == f"{one_line(verb)}."


@pytest.mark.parametrize("verb", ["run", "weights", "place"])
def test_a_page_imports_neither_numpy_nor_another_verb(verb):
    found = imported(verb, "--help")
    assert "numpy" not in found
    assert {name for name in found if name.startswith("fembench.cli.")} <= {
        f"fembench.cli.{name}" for name in ("main", "options", "parser", "shared", "verbs", verb)
    }


def test_the_version_is_that_of_the_package_with_its_commit(output):
    text = output("--version")
    assert re.fullmatch(r"fembench \S+( \(commit [0-9a-f]{12}(, modified)?\))?\n", text)
    assert text.split()[1] == version_of("fembench")


def test_help_before_a_verb_is_help_after_it(capsys):
    for words in (["help", "timers"], ["timers", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    first, second = capsys.readouterr().out.split("Measure what")[1:]
    assert first == second


def test_an_example_that_is_too_long_has_its_comment_above_and_goes_on_in_the_next_line():
    line = "  fembench run m --ranks 2 --results somewhere     # one case"
    assert example(line, 62) == [line]
    assert example(line, 50) == ["  # one case", "  fembench run m --ranks 2 --results somewhere"]
    assert example(line, 34)[1:] == ["  fembench run m --ranks 2 \\", "      --results somewhere"]
