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
from inspect import getdoc, getsource, signature
from itertools import groupby
from pathlib import Path
from textwrap import dedent, fill
from typing import Any

import msgspec

import fembench
from fembench.cli.parser import WIDE, sections, usage
from fembench.cli.verbs import NOTES, groups, listing, verb_parser, verbs
from fembench.methods.lookup import Combination, preconds, recurrences, storages
from fembench.methods.preconditioners import PreconditionerMethod
from fembench.methods.recipe import recipe
from fembench.records.case import FIELDS
from fembench.records.nodes import NodesRecord
from fembench.records.profile import Profile
from fembench.records.record import Record
from fembench.records.weights import Weights
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table

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
        case _ if hasattr(kind, "cls"):
            return "anything" if kind.cls is object else kind.cls.__name__
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
    }.get(type(kind).__name__, type(kind).__name__)


def structs_in(kind: Any) -> Iterator[type]:
    """Structs that a type holds, itself first."""
    if hasattr(kind, "fields"):
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
        if field.name[0] != "_"
    ]
    intro = prose((vars(struct).get("__doc__") or "").split("\n\n")[0])
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
    """Storages, preconditioners and recurrences with their declared cost."""
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
            "## Recurrences\n",
            table(
                ("name", "meaning", "vectors", "all-reduces"),
                [
                    (code(v.name), plain(v.help), f"{one.updates.vectors:g}", str(len(one.reductions)))
                    for v in recurrences()
                    for one in [recipe(Combination(recurrence=v.name))]
                ],
            ),
        )
    )


def _cost(precond: PreconditionerMethod) -> tuple[str, str]:
    """(vectors, products) per iteration of the standard recurrence, beyond those without preconditioner."""
    if precond.application is None:
        return "unknown", "unknown"
    one, none = recipe(Combination(precond=precond.name)), recipe(Combination())
    extra = one.updates + one.dots + one.applied
    return f"{extra.vectors - none.updates.vectors:g}", str(one.precond_products)


# ---- from Python


def python_api() -> str:
    """The functions of `import fembench`, the classes of their results, and the exceptions."""
    functions = {name: getattr(fembench, name) for name in fembench.__all__ if name != "errors"}
    known = {struct for root in (Record, Profile, Weights) for struct in reached(root)}
    returned = [typing.get_type_hints(function)["return"] for function in functions.values()]
    named = [one for kind in returned for one in classes_in(kind) if one not in (Path, str)]
    found = [struct for one in dict.fromkeys(named) for struct in parts_of(one) if struct not in known]
    errors = [getattr(fembench.errors, name) for name in fembench.errors.__all__]
    rows = [(code(e.__name__), code(e.__base__.__name__), prose(paragraphs(e)[0])) for e in errors]
    return "\n".join(
        [
            "## Functions\n",
            *(function_page(f"fembench.{name}", function, 3) for name, function in functions.items()),
            "## Results\n",
            *(class_page(struct) for struct in dict.fromkeys([*found, Table, Plot])),
            "## Exceptions\n",
            table(("fembench.errors.", "is a", "meaning"), rows),
        ]
    )


def classes_in(kind: Any) -> tuple[Any, ...]:
    """What a function returns: `Findings` of `Findings[Compared]`, `Finding` of `list[Finding]`."""
    origin = typing.get_origin(kind)
    own = getattr(origin, "__module__", "").startswith("fembench")
    return (origin,) if own else typing.get_args(kind) or (kind,)


def parts_of(struct: type) -> list[type]:
    """A class and, if it is data, all that it holds."""
    return reached(struct) if typing.get_type_hints(struct) else [struct]


def class_page(struct: type) -> str:
    """A class: its fields, and what it does."""
    page = struct_page(struct) if struct.__annotations__ else f"### {struct.__name__}\n\n{documented(struct)}"
    own = {name: member for name, member in vars(struct).items() if name[0] != "_"}
    read = {n: getattr(m, "fget", None) or getattr(m, "func", None) for n, m in own.items()}  # properties
    parts = [(n, read[n] or m, "" if read[n] else "()") for n, m in own.items() if callable(read[n] or m)]
    return "\n".join([page, *(function_page(n, m, 4, called=c) for n, m, c in parts if getdoc(m))])


def function_page(name: str, function: Callable[..., Any], level: int, *, called: str = "()") -> str:
    """Heading, signature with short names of types, docstring; `called` follows a name without arguments."""
    short = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", str(signature(function)))
    bare = re.sub(r"(: |-> )'(.*?)'", r"\1\2", short).replace("self, ", "").replace("(self)", called)
    tied = re.sub(r"(?<!,) ", "\0", name.removeprefix("fembench.") + bare)  # lines end after commas only
    lines = fill(tied, 100, subsequent_indent="    ").replace("\0", " ")
    return f"{'#' * level} {name}\n\n{fenced(lines, 'python')}\n{documented(function)}"


def paragraphs(thing: object) -> list[str]:
    return (getdoc(thing) or "").split("\n\n")


def documented(thing: object) -> str:
    """A docstring; lines such as "results: folder; minutes: a number" become a list."""
    return "\n\n".join(listed(part) or prose(part) for part in paragraphs(thing)) + "\n"


def listed(paragraph: str) -> str:
    """A list of arguments with their meaning; "" for other paragraphs."""
    items = re.split(r"(?:\n|; )(?=[a-z_]+(?:, [a-z_]+)*: )", paragraph)
    pairs = [item.split(": ", 1) for item in items]
    if not re.fullmatch(r"[a-z_]+(, [a-z_]+)*", pairs[0][0]) or len(pairs[0]) < 2:
        return ""
    return "\n".join(f"* {', '.join(map(code, names.split(', ')))}: {prose(said)}" for names, said in pairs)


PAGES: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "help": help_text,
    "record": schema(Record),
    "profile": schema(Profile),
    "nodes": schema(NodesRecord),
    "weights": schema(Weights),
    "case": case_options,
    "methods": methods,
    "python": python_api,
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
