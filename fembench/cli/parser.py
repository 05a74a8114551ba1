"""The parser of every verb: its help page, and errors in one line with the nearest match.

A help page has the description first, then the usage, the verb's own options, shared
options in named groups, and examples at the end. `sections`: what it lists.
"""

import argparse
import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from fembench.base.errors import InputError, closest, shown

NARROW, WIDE, INDENT = 60, 100, 26  # columns of a page, and of its left half
EXAMPLES = "\nExamples:\n"
ELSEWHERE = {  # options of MPI launchers and batch systems -> ours
    **dict.fromkeys(("-n", "-np", "--np", "--n", "--ntasks", "-c", "--nprocs"), "--ranks"),
    **dict.fromkeys(("--ntasks-per-node", "-ppn", "--ppn", "-npernode", "--npernode"), "--per-node"),
    **dict.fromkeys(("-N", "--nodes", "-H", "-host", "--host", "--nodelist", "-w"), "--hosts"),
    **dict.fromkeys(("-f", "-machinefile", "--machinefile", "-hostfile", "--nodefile"), "--hostfile"),
    **dict.fromkeys(("-t", "--time", "--walltime"), "--timeout"),
    **dict.fromkeys(("-o", "--output", "--out", "--outdir"), "--results"),
    "-map-by": "--map-by",
    "-rf": "--rankfile",
}


class OptionList(NamedTuple):
    """A titled list of a help page."""

    title: str
    note: str
    rows: list[tuple[str, str]]  # how it is typed, what it means


class Parser(argparse.ArgumentParser):
    """A parser that writes this page and raises InputError."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.color = False  # Python 3.14 would color the usage
        self._optionals.title = "options"
        for action in self._actions:
            action.help = "show this page"  # of --help, the only one so far
        self._positionals.title = "arguments"

    def format_help(self) -> str:
        return page(self, columns())

    def parse_args(self, args=None, namespace=None):
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            kind = "option" if word.startswith("-") and word != "-" else "argument"
            if kind == "argument" and (surplus := self._surplus(options, args, unknown)):
                raise InputError(f"{surplus}; {self._hint()}")
            known = option_strings(self) if kind == "option" else []
            if word in known:
                raise InputError(f"{word} goes with {' or '.join(_owners(self, word))}; {self._hint()}")
            ours = ELSEWHERE.get(word)
            near = f"; did you mean '{ours}'?" if ours in known else nearest(word, known)
            raise InputError(f"unknown {kind} '{shown(word)}'{near}; {self._hint()}")
        return options

    def _surplus(self, options: argparse.Namespace, words: list[str], unknown: list[str]) -> str:
        """'expected one record, got 2 files', where a pattern of the shell named several; or ""."""
        before = words[words.index(unknown[0]) - 1]
        takers = [a for a in every_action(self) if a.metavar and getattr(options, a.dest, "") == before]
        files = [word for word in (before, *unknown) if takers and os.path.isfile(word)]
        return f"expected one {str(takers[0].metavar).lower()}, got {len(files)} files" if files[1:] else ""

    def _get_values(self, action: argparse.Action, words: list[str]) -> Any:
        """The value of an option or argument. An empty word is none: an unset variable."""
        if "" in words and action.nargs not in (argparse.REMAINDER, argparse.PARSER):
            raise InputError(f"{_name(action)} '': expected a value; {self._hint()}")
        return super()._get_values(action, words)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        *others, last = (choice or "''" for choice in choices)
        expected = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{_name(action)} {shown(value)}: expected {expected}{nearest(str(value), choices)}")

    def error(self, message: str) -> NoReturn:
        message = re.sub("^the following arguments are required: (.*)", self._missing, message)
        value = re.fullmatch(r"argument (\S+?/)*(\S+): (.*)", message)
        if not value:
            raise InputError(f"{message}; {self._hint()}")
        name, text = value.groups()[1:]
        told = ": expected a " in text  # the value, then what was expected
        raise InputError(f"{name} {text}" if told else f"{name}: {text}; {self._hint()}")

    def _missing(self, found: re.Match[str]) -> str:
        """'missing MESH (preset, box:… or file), --machine (…)': each with the first words of its help."""
        told = {"/".join(a.option_strings) or str(a.metavar or a.dest): _first(a.help) for a in self._actions}
        each = (f"{name} ({told[name]})" if told.get(name) else name for name in found[1].split(", "))
        return f"missing {', '.join(each)}"

    def _hint(self) -> str:
        return f"see {self.prog} --help"


def _first(help: str | None) -> str:
    """The first words of a help text, without what is in parentheses."""
    return re.sub(r" \([^()]*\)", "", (help or "").split("; ")[0])


def _name(action: argparse.Action) -> object:
    """How a message names an option or an argument."""
    return action.option_strings[-1] if action.option_strings else action.metavar or action.dest


def columns() -> int:
    """The width of a help page on this terminal."""
    return min(max(shutil.get_terminal_size().columns - 2, NARROW), WIDE)


def children(parser: argparse.ArgumentParser) -> dict[str, "Parser"]:
    """The parsers of its actions, such as `fembench mesh box`, by name."""
    found = (a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {name: child for choices in found for name, child in choices.items()}


def every_action(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Every option and argument, including those of its actions."""
    return [*parser._actions, *(one for child in children(parser).values() for one in every_action(child))]


def option_strings(parser: argparse.ArgumentParser) -> list[str]:
    """Every option of a parser and of its actions."""
    return [text for action in every_action(parser) for text in action.option_strings]


def _owners(parser: argparse.ArgumentParser, option: str) -> list[str]:
    """The actions of a verb that have this option."""
    return [name for name, child in children(parser).items() if option in option_strings(child)]


def nearest(word: str, known: Iterable[str]) -> str:
    """'; did you mean …?' with the most similar known word; '' if none is similar."""
    found = closest(word, filter(None, known), alike=0.6)
    return f"; did you mean '{found}'?" if found else ""


def split(text: str) -> tuple[str, str]:
    """(description, examples and what follows them) of a verb's docstring."""
    description, title, rest = f"\n{text.strip()}\n".partition(EXAMPLES)
    return description.strip(), (title + rest).strip()


def fill(text: str, width: int) -> str:
    """Paragraphs wrapped to a width; those with indented lines stay unchanged."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    literal = [bool(re.search(r"^\s", block, re.M)) for block in blocks]
    folded = [textwrap.fill(block, width, break_on_hyphens=False) for block in blocks]
    return "\n\n".join(block if kept else fold for block, kept, fold in zip(blocks, literal, folded))


def page(parser: argparse.ArgumentParser, width: int) -> str:
    """The help page of a verb."""
    parts = [fill(parser.description or "", width), usage(parser)]
    parts += [section_text(section, width) for section in sections(parser)]
    examples = [part for line in (parser.epilog or "").split("\n") for part in example(line, width)]
    return "\n\n".join(part for part in (*parts, "\n".join(examples)) if part) + "\n"


def example(line: str, width: int) -> list[str]:
    """A line of the examples; if it is too long, its comment stands above, and it goes on below."""
    if len(line) <= width:
        return [line]
    typed, _, comment = line.partition("  # ")
    indent = " " * (len(line) - len(line.lstrip()))
    above = textwrap.wrap(comment, width, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
    *others, last = textwrap.wrap(
        typed.strip(),
        width - 2,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [*above, *(f"{part} \\" for part in others), last]


def section_text(section: OptionList, width: int) -> str:
    """A titled list, wrapped to a width."""
    note = [textwrap.indent(fill(section.note, width - 2), "  ")] if section.note else []
    rows = [row_text(typed, meaning, width) for typed, meaning in section.rows]
    return "\n".join([f"{section.title}:", *note, *rows])


def usage(parser: argparse.ArgumentParser) -> str:
    """One line: the required arguments, then [options]."""
    actions = [a for a in parser._actions if a.help != argparse.SUPPRESS]
    needed = [a for a in actions if a.required and a.option_strings]
    placed = [a for a in actions if not a.option_strings]
    words = [parser.prog, *(typed(a, short=True) for a in (*needed, *placed))]
    return f"usage: {' '.join(words)} [options]"


def sections(parser: argparse.ArgumentParser) -> Iterator[OptionList]:
    """The sections of a page, in order: arguments, own options, shared options by group."""
    for group in parser._action_groups:
        rows = [row for action in group._group_actions for row in rows_of(action)]
        if rows:
            yield OptionList(group.title or "options", group.description or "", rows)


def rows_of(action: argparse.Action) -> list[tuple[str, str]]:
    """One row per option or argument, and one per action of a verb that has several."""
    if action.help == argparse.SUPPRESS:
        return []
    if isinstance(action, argparse._SubParsersAction):
        return [(chosen.dest, chosen.help or "") for chosen in action._choices_actions]
    return [(typed(action), meaning(action))]


def typed(action: argparse.Action, *, short: bool = False) -> str:
    """How an option or argument is typed, with its type; `short`: by one name."""
    names = action.option_strings
    default = (action.dest if not names else action.dest.upper()) if action.metavar is None else ""
    values = "" if action.nargs == 0 else argparse.HelpFormatter("")._format_args(action, default)
    return " ".join(filter(None, [", ".join(names[-1:] if short else names), values]))


def meaning(action: argparse.Action) -> str:
    """The help of an option, with its default if that is informative."""
    text = (action.help or "") % {"default": action.default, "prog": ""}
    quiet = action.default in (None, "", 0, [], (), argparse.SUPPRESS) or action.nargs == 0
    default = action.default if isinstance(action.default, str) else _number(action.default)
    return text if quiet or "default" in text or not action.option_strings else f"{text} (default: {default})"


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def row_text(typed: str, meaning: str, width: int) -> str:
    """An entry of a page: the option, with its meaning beside it, or below if it is long."""
    lines = textwrap.wrap(meaning, width - INDENT, break_on_hyphens=False) or [""]
    beside = len(typed) + 4 <= INDENT
    head = f"  {typed:{INDENT - 2}}{lines[0]}" if beside else f"  {typed}"
    return "\n".join([head.rstrip(), *(" " * INDENT + line for line in (lines[1:] if beside else lines))])
