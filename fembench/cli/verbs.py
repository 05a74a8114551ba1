"""The verbs in groups, in the order of the work, and the parser of each.

A verb's module has a docstring (its first line is the help; what follows "Examples:"
ends the help page), `OPTIONS` and their `KINDS`, as `declare` takes them, or, where that
is not enough, `arguments(parser)`; and `run(options) -> exit status`. What needs numpy
is imported inside `run`, so that a help page does not wait for it; `fembench --help`
imports no module of a verb.

Tab completion is made from the same parsers (needs shtab).
"""

import importlib
import re
from pathlib import Path
from typing import Any

from fembench.base import plugins
from fembench.base.errors import InputError, shown
from fembench.cli.parser import Parser, every_action, fill, nearest, section_text, sections, split

GROUPS = {
    "first steps": ("doctor", "run", "sweep", "watch", "report", "compare", "history", "check"),
    "unequal hosts": ("nodes", "characterize", "weights", "tune", "partition", "place"),
    "prediction": ("predict", "simulate", "trace", "validate"),
    "more": ("mesh", "peers", "balance", "timers", "lab"),
}
ELSEWHERE = {"study": "Repeat the source studies, and run their small programs"}  # of plugins.STUDIES
NOTES = {
    "first steps": "check this machine, measure it, read the results",
    "unequal hosts": "find the slow one, measure all, divide the work accordingly",
    "prediction": "estimate the time of a run before it starts, and check it",
    "more": "meshes, other solvers, rebalancing, clocks, emulated hosts",
    "other packages": "installed beside fembench",
}
DESCRIPTION = "Benchmark equal or unequal hosts with a parallel finite-element code."
EPILOG = """examples:
  fembench run m --ranks 2          # one case: 200 000 equations on two ranks
  fembench sweep campaign.toml      # many cases, interleaved, resumable
  fembench report results/scaling   # tables, plots and one HTML page

fembench VERB --help explains a verb and its options.
exit status: 0 good, 1 measured but invalid or failed, 2 an error in your input"""
SHELLS = ("bash", "zsh", "fish", "tcsh")


def verbs() -> tuple[str, ...]:
    """The names of all verbs, in the order of the groups; other packages' come last."""
    return (*own_verbs(), *plugins.names("verbs"))


def own_verbs() -> tuple[str, ...]:
    """Those that need no other package."""
    return tuple(verb for group in GROUPS.values() for verb in group)


def groups() -> dict[str, tuple[str, ...]]:
    """The verbs by group, those of other packages included, installed or known."""
    others = tuple(name for name in plugins.names("verbs") if name not in ELSEWHERE)
    more = {"other packages": others} if others else {}
    return GROUPS | {"more": (*GROUPS["more"], *ELSEWHERE)} | more


def one_line(verb: str) -> str:
    """What a verb does, in the imperative."""
    if verb in ELSEWHERE:
        return ELSEWHERE[verb]
    if verb not in own_verbs():
        return split(_module(verb).__doc__ or "")[0].partition("\n")[0].rstrip(".")
    with Path(__file__).with_name(f"{verb}.py").open(encoding="utf-8") as source:
        return source.readline().strip('".\n')


def top_parser() -> Parser:
    """The parser of the options without a verb."""
    parser = Parser(prog="fembench", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="store_true", help="print the version and, if known, the commit")
    text = "print the tab completion for bash, zsh, fish or tcsh"
    parser.add_argument("--completion", choices=SHELLS, metavar="SHELL", help=text)
    return parser


def listing(width: int) -> str:
    """The page of `fembench --help`: the verbs in their groups."""
    parts = [fill(DESCRIPTION, width), "usage: fembench VERB [options]"]
    for group, names in groups().items():
        rows = [f"  {verb:13} {one_line(verb)}" for verb in names]
        parts.append("\n".join([f"{group} ({NOTES[group]}):", *rows]))
    return "\n\n".join([*parts, *(section_text(s, width) for s in sections(top_parser())), EPILOG])


def verb_parser(verb: str) -> Parser:
    """The parser of one verb."""
    return _filled(Parser(prog=f"fembench {verb}", **_texts(verb)), verb)


def build_parser() -> Parser:
    """A parser of all verbs, for completion and the reference; commands need one."""
    parser = top_parser()
    commands = parser.add_subparsers(dest="verb", metavar="VERB")
    for verb in verbs():
        _filled(commands.add_parser(verb, help=one_line(verb), **_texts(verb)), verb)
    return parser


def check_verb(word: str) -> None:
    """Raises InputError, with the nearest verb, if the word is not a verb."""
    if word not in {*verbs(), *ELSEWHERE}:
        raise InputError(f"unknown verb '{shown(word)}'{nearest(word, verbs())}; see fembench --help")


def _module(verb: str) -> Any:
    if verb not in own_verbs():
        return plugins.needed("verbs", verb, f"fembench {verb}")
    return importlib.import_module(f"fembench.cli.{verb}")


def _texts(verb: str) -> dict[str, Any]:
    description, examples = split(_module(verb).__doc__ or "")
    return {"description": description, "epilog": examples}


def _filled(parser: Parser, verb: str) -> Parser:
    module = _module(verb)
    if hasattr(module, "arguments"):
        module.arguments(parser)
    else:
        from fembench.cli.options import declare

        declare(parser, module.OPTIONS, **getattr(module, "KINDS", {}))
    parser.set_defaults(run=module.run, verb=verb)
    return parser


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
