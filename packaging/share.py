"""Man pages and tab completion: `python packaging/share.py SHARE` writes them below a folder.

CMake calls it when fembench is built. Both come from the parsers, as `--help` does.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fembench.cli.parser import OptionList, children, sections, usage
from fembench.cli.verbs import NOTES, completion, groups, one_line, own_verbs, top_parser, verb_parser

COMPLETIONS = {  # shell -> the file that it looks for
    "bash": "bash-completion/completions/fembench",
    "zsh": "zsh/site-functions/_fembench",
    "fish": "fish/vendor_completions.d/fembench.fish",
}


def files() -> dict[str, str]:
    """The texts by their paths below share/."""
    made = {path: completion(shell) for shell, path in COMPLETIONS.items()}
    made["man/man1/fembench.1"] = overview()
    for verb in own_verbs():
        parser = verb_parser(verb)
        lists = [*sections(parser), *(child_list(child) for child in children(parser).values())]
        made[f"man/man1/fembench-{verb}.1"] = page(f"fembench-{verb}", one_line(verb), parser, lists)
    return made


def overview() -> str:
    """The page of fembench: the verbs in their groups, and the options without a verb."""
    lists = [
        OptionList(group, NOTES[group], [(f"fembench {verb}", one_line(verb)) for verb in names])
        for group, names in groups().items()
    ]
    parser = top_parser()
    parser.usage = "usage: fembench VERB [options]"
    return page("fembench", "parallel finite-element benchmark", parser, [*lists, *sections(parser)])


def child_list(parser: argparse.ArgumentParser) -> OptionList:
    """An action of a verb, such as `fembench mesh box`, as one list."""
    rows = [row for section in sections(parser) for row in section.rows]
    return OptionList(parser.prog, parser.description or "", rows)


def page(name: str, what: str, parser: argparse.ArgumentParser, lists: list[OptionList]) -> str:
    """A man page."""
    synopsis = (parser.usage or usage(parser)).removeprefix("usage: ")
    lines = [f'.TH "{name.upper()}" 1 "" "fembench" "User Commands"', ".SH NAME"]
    lines += [rf"{name} \- {escaped(what)}", ".SH SYNOPSIS", rf"\fB{escaped(synopsis)}\fR"]
    lines += [".SH DESCRIPTION", *prose(parser.description or "")]
    for section in lists:
        lines += [f'.SH "{section.title.upper()}"', *prose(section.note)]
        for typed, meaning in section.rows:
            lines += [".TP", rf"\fB{escaped(typed)}\fR", escaped(meaning) or r"\&"]
    if parser.epilog:
        lines += [".SH EXAMPLES", *literal(parser.epilog.partition("\n")[2])]
    return "\n".join(lines) + "\n"


def prose(text: str) -> list[str]:
    """Paragraphs; those with indented lines stay unchanged."""
    lines = []
    for block in filter(None, re.split(r"\n\s*\n", text.strip("\n"))):
        indented = re.search(r"^\s", block, re.M)
        lines += literal(block) if indented else [".PP", escaped(" ".join(block.split()))]
    return lines


def literal(text: str) -> list[str]:
    return [".PP", ".nf", *(escaped(line) for line in text.splitlines()), ".fi"]


def escaped(text: str) -> str:
    """The text as roff reads it: a hyphen stays a hyphen, a leading dot or quote is no request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    for path, text in files().items():
        target = Path(sys.argv[1]) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
