"""Pages generated from the program: `<!-- generated: NAME -->` becomes what NAME's function returns.

All functions return Markdown. They read the parsers, the structs and the lists of fembench itself, so that a
page cannot describe an option, a field or a phase that does not exist.
"""

import argparse
import io
import json
import re
import tokenize
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import getsource
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec

from fembench.cli.parser import WIDE, sections, usage
from fembench.cli.verbs import NOTES, groups, listing, verb_parser, verbs
from fembench.methods.lookup import Combination, preconds, storages, variants
from fembench.methods.preconditioners import PreconditionerMethod
from fembench.methods.recipe import recipe
from fembench.records.case import FIELDS
from fembench.records.nodes import NodesRecord
from fembench.records.profile import Profile
from fembench.records.record import Record
from fembench.records.weights import Weights

MARK = re.compile(r"<!-- generated: ([\w-]+)(?: (\S+))? -->")


# ---- Markdown


def plain(text: str) -> str:
    """Text on one line, with the characters of Markdown escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """Text with the characters of Markdown escaped; blanks stay."""
    return re.sub(r"([\\`*_<>\[\]|{}$])", r"\\\1", text)


def prose(text: str) -> str:
    """Text whose only markup is `code`."""
    parts = re.split("`([^`]*)`", " ".join(text.split()))
    return "".join(f"`{part}`" if k % 2 else escaped(part) for k, part in enumerate(parts))


def sentence_case(text: str) -> str:
    """Plain text that starts with a capital; the rest keeps its case."""
    return plain(text[:1].upper() + text[1:])


def code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip(chr(10))}\n```\n"


# ---- the command line


def verb_page(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """A verb's help page as Markdown, then those of its actions."""
    yield f"{'#' * level} {parser.prog}\n"
    yield from described(parser.description or "")
    yield fenced(usage(parser).removeprefix("usage: "))
    for section in sections(parser):
        yield f"**{sentence_case(section.title)}**\n"
        if section.note:
            yield plain(section.note) + "\n"
        yield table(("typed", "meaning"), ((code(typed), prose(text)) for typed, text in section.rows))
    if parser.epilog:
        yield from described(parser.epilog)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from verb_page(child, level + 1)


def described(text: str) -> Iterator[str]:
    """Paragraphs, and indented lines as they are."""
    for indented, lines in groupby(text.strip("\n").splitlines(), lambda line: line.startswith("  ")):
        block = "\n".join(lines)
        yield fenced(dedent(block)) if indented else "\n\n".join(map(prose, block.split("\n\n"))) + "\n"


def command_line() -> str:
    """Every verb under the heading of its group."""
    parts = []
    for group, names in groups().items():
        parts.append(f"## {sentence_case(group)}\n\n{sentence_case(NOTES[group])}.\n")
        parts += [part for verb in names if verb in verbs() for part in verb_page(verb_parser(verb), 3)]
    return "\n".join(parts)


def help_text() -> str:
    return fenced(listing(WIDE))


# ---- structs


def field_comments(struct: type) -> dict[str, str]:
    """What stands behind each field in the source, and in lines of comment that follow it."""
    found: dict[str, str] = {}
    field, depth = "", 0
    source = getsource(struct)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string
        if token.type == tokenize.OP:
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text, 0)
        elif token.type == tokenize.NAME and depth == 0 and re.match(rf"\s*{text}\s*:", token.line):
            field = text if token.line.lstrip().startswith(text) else field
        elif token.type == tokenize.COMMENT and field:
            found[field] = f"{found.get(field, '')} {text.lstrip('# ')}".strip()
    return found


def declared_help(struct: type) -> dict[str, str]:
    """What the declarations of fields say, where they say something: Annotated[type, Option("…")]."""
    hints = typing.get_type_hints(struct, include_extras=True)
    said = {n: typing.get_args(h)[1:] for n, h in hints.items() if typing.get_origin(h) is typing.Annotated}
    texts = {
        name: getattr(one, "help", getattr(one, "title", "")) for name, extra in said.items() for one in extra
    }
    return {name: text for name, text in texts.items() if text}


def type_name(kind: Any) -> str:
    """A field's type in the words of JSON's readers: list[list[number]]."""
    inspect = msgspec.inspect
    match kind:
        case inspect.StructType():
            return kind.cls.__name__
        case inspect.VarTupleType() | inspect.ListType():
            return f"list[{type_name(kind.item_type)}]"
        case inspect.TupleType():
            names = [type_name(each) for each in kind.item_types]
            return f"list of {len(names)} {names[0]}s" if len(set(names)) == 1 else f"[{', '.join(names)}]"
        case inspect.DictType():
            return f"object of {type_name(kind.value_type)}"
        case inspect.UnionType():
            return " or ".join(type_name(each) for each in kind.types)
        case inspect.LiteralType():
            return " or ".join(json.dumps(value) for value in kind.values)
    return {
        "FloatType": "number",
        "IntType": "integer",
        "StrType": "string",
        "BoolType": "true or false",
        "NoneType": "null",
        "AnyType": "anything",
        "CustomType": "anything",
    }.get(type(kind).__name__, type(kind).__name__)


def structs_in(kind: Any) -> Iterator[type]:
    """Structs that a type holds, itself first."""
    if isinstance(kind, msgspec.inspect.StructType):
        yield kind.cls
    for name in ("item_type", "value_type"):
        if hasattr(kind, name):
            yield from structs_in(getattr(kind, name))
    for name in ("item_types", "types"):
        for each in getattr(kind, name, ()):
            yield from structs_in(each)


def reached(root: type) -> list[type]:
    """A struct and all that it holds, breadth first."""
    found = [root]
    for struct in found:
        for field in msgspec.inspect.type_info(struct).fields:
            found += [each for each in structs_in(field.type) if each not in found]
    return found


def default(field: msgspec.inspect.Field) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Struct):
        return "each field's own"
    return code(json.dumps(msgspec.to_builtins(value)))


def struct_page(struct: type, level: int = 3) -> str:
    comments = field_comments(struct) | declared_help(struct)
    rows = [
        (
            code(field.encode_name),
            plain(type_name(field.type)),
            default(field),
            prose(comments.get(field.name, "")),
        )
        for field in msgspec.inspect.type_info(struct).fields
    ]
    intro = plain((vars(struct).get("__doc__") or "").split("\n\n")[0])
    heads = ("field", "type", "default", "meaning")
    return f"{'#' * level} {struct.__name__}\n\n{intro}\n\n{table(heads, rows)}"


def schema(root: type) -> Callable[[], str]:
    return lambda: "\n".join(struct_page(struct) for struct in reached(root))


# ---- the notebook


def notebook() -> str:
    """The executed notebook as a page: text, code, and what the code printed."""
    text = Path(__file__).parents[1].joinpath("notebook.ipynb").read_text(encoding="utf-8")
    return "\n".join(part for cell in json.loads(text)["cells"] for part in notebook_cell(cell))


def notebook_cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield re.sub(r"^# .*\n+", "", source) + "\n"
        return
    yield fenced(source, "python")
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "text/html" in data:
            yield '```{raw} html\n<div class="output">' + "".join(data["text/html"]) + "</div>\n```\n"
        else:
            yield fenced("".join(data.get("text/plain", output.get("text", []))))


def case_options() -> str:
    """Fields of a case, by group."""
    parts = []
    for title, fields in groupby(FIELDS.values(), lambda field: field.title):
        rows = [
            (
                code(field.name),
                code(
                    " ".join(field.choices)
                    or field.option.metavar
                    or {int: "N", bool: ""}.get(field.type, "")
                ),
                code(json.dumps(field.default)) if field.default != "" else "",
                prose(field.option.help),
            )
            for field in fields
        ]
        parts.append(f"## {sentence_case(title)}\n\n{table(('key', 'values', 'default', 'meaning'), rows)}")
    return "\n".join(parts)


# ---- methods


def methods() -> str:
    """Storages, preconditioners and variants with their declared cost."""
    has = {p.name: [s for s in ("own", "petsc") if s in p.solvers] for p in preconds()}
    return "\n".join(
        (
            "## Storages\n",
            table(
                ("name", "solver", "meaning", "inner product"),
                [
                    (
                        code(s.name),
                        code(s.solver),
                        plain(s.help),
                        "with the product" if s.fused else "own pass",
                    )
                    for s in storages()
                ],
            ),
            "## Preconditioners\n",
            table(
                ("name", "solvers", "meaning", "vectors", "products"),
                [
                    (code(p.name), ", ".join(map(code, has[p.name])), plain(p.help), *_cost(p))
                    for p in preconds()
                ],
            ),
            "## Variants\n",
            table(
                ("name", "meaning", "vectors", "all-reduces"),
                [
                    (code(v.name), plain(v.help), f"{one.updates.vectors:g}", str(len(one.reductions)))
                    for v in variants()
                    for one in [recipe(Combination(variant=v.name))]
                ],
            ),
        )
    )


def _cost(precond: PreconditionerMethod) -> tuple[str, str]:
    """(vectors, products) of an iteration of the standard variant, beyond those without a preconditioner."""
    if precond.application is None:
        return "unknown", "unknown"
    one, none = recipe(Combination(precond=precond.name)), recipe(Combination())
    extra = one.updates + one.dots + one.applied
    return f"{extra.vectors - none.updates.vectors:g}", str(one.precond_products)


PAGES: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "help": help_text,
    "record": schema(Record),
    "profile": schema(Profile),
    "nodes": schema(NodesRecord),
    "weights": schema(Weights),
    "case": case_options,
    "methods": methods,
    "notebook": notebook,
}


def filled(text: str) -> str:
    """A page with every mark replaced by what it stands for."""
    return MARK.sub(lambda mark: PAGES[mark[1]](), text)


def setup(app: Any) -> dict[str, bool]:
    def fill(app: Any, name: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
