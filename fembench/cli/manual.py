"""Man pages and tab completion, made from the parsers. `python -m fembench.cli.manual DIR` writes the pages.

CMake calls it when fembench is built, and installs the pages in share/man/man1. Tab completion needs shtab.
"""

import argparse
import re
import sys
from pathlib import Path

from fembench.cli.parser import Parser, children, every_action, sections, usage
from fembench.cli.verbs import GROUPS, build_parser, one_line, top_parser, verb_parser, verbs

FILES = re.compile(r"FILE|RECORD|GRAPH|GRID|CAMPAIGN|CLUSTER|MESH|EXE|PATH|RECORDS|.*\.(toml|json|py)")
FOLDERS = re.compile(r"DIR|FOLDER")


def completion(shell: str) -> str:
    """The script for a shell that completes verbs, options and choices."""
    import shtab

    parser = build_parser()
    for action in every_action(parser):
        words = action.metavar.split("|") if isinstance(action.metavar, str) else []
        if any(FILES.fullmatch(word) for word in words):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif any(FOLDERS.fullmatch(word) for word in words):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


def pages() -> dict[str, str]:
    """The man pages by file name: one of fembench, one per verb."""
    made = {"fembench.1": _overview()}
    for verb in verbs():
        parser = verb_parser(verb)
        body = [*_parts(parser), *(part for child in children(parser).values() for part in _child(child))]
        made[f"fembench-{verb}.1"] = _page(f"fembench-{verb}", one_line(verb), usage(parser), body)
    return made


def write_pages(folder: Path) -> list[Path]:
    """Write the man pages; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages()]


def _overview() -> str:
    parser, body = top_parser(), []
    for group, names in GROUPS.items():
        rows = [
            (rf"\fBfembench\-{verb}\fR(1)", _escaped(one_line(verb))) for verb in names if verb in verbs()
        ]
        body += [f".SH {group.upper()}", *_rows(rows)]
    what = "benchmark of clusters with equal or unequal hosts"
    return _page("fembench", what, "usage: fembench VERB [options]", [*body, *_parts(parser)])


def _page(name: str, what: str, usage: str, body: list[str]) -> str:
    typed = usage.removeprefix("usage: ")
    head = [
        f'.TH "{name.upper()}" 1 "" "fembench" "User Commands"',
        ".SH NAME",
        rf"{name} \- {_escaped(what)}",
    ]
    return "\n".join([*head, ".SH SYNOPSIS", f".B {_escaped(typed)}", *body]) + "\n"


def _parts(parser: argparse.ArgumentParser) -> list[str]:
    """Description, options and examples."""
    lines = [".SH DESCRIPTION", *_prose(parser.description or "")]
    for section in sections(parser):
        rows = [(rf"\fB{_escaped(typed)}\fR", _escaped(meaning)) for typed, meaning in section.rows]
        lines += [f'.SH "{section.title.upper()}"', *_prose(section.note), *_rows(rows)]
    return [*lines, *([".SH EXAMPLES", *_literal(parser.epilog)] if parser.epilog else [])]


def _child(parser: Parser) -> list[str]:
    """An action of a verb, such as `fembench mesh box`."""
    rows = [(rf"\fB{_escaped(t)}\fR", _escaped(m)) for s in sections(parser) for t, m in s.rows]
    return [
        f'.SH "{parser.prog.upper()}"',
        f".B {_escaped(usage(parser).removeprefix('usage: '))}",
        *_rows(rows),
    ]


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    return [line for typed, meaning in rows for line in (".TP", typed, meaning or r"\&")]


def _prose(text: str) -> list[str]:
    """Paragraphs; those with indented lines stay unchanged."""
    lines = []
    for block in filter(None, re.split(r"\n\s*\n", text.strip("\n"))):
        lines += (
            _literal(block) if re.search(r"^\s", block, re.M) else [".PP", _escaped(" ".join(block.split()))]
        )
    return lines


def _literal(text: str) -> list[str]:
    return [".PP", ".nf", *(_escaped(line) for line in text.splitlines()), ".fi"]


def _escaped(text: str) -> str:
    """The text as roff reads it: a hyphen stays a hyphen, a leading dot or quote is no request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
