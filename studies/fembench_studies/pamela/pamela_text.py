"""Parse PAMELA text, in the syntax of Herai 2005, App. A.3."""

import re
from typing import Literal

from fembench.base.errors import shown
from fembench.errors import InputError
from fembench_studies.pamela.pamela import (
    NOTHING,
    Choice,
    Delay,
    Node,
    Operation,
    PamelaLoop,
    PamelaModel,
    PamelaParallel,
    Set,
    Use,
    sequence,
)

_HEAD = re.compile(r"^[ \t]*([A-Za-z_][\w$]*)((?:\[[^\]]*\])?(?:\([^=]*\))?)[ \t]*=(?!=)", re.M)
_TASK = re.compile(r"task\[(\d{1,9})\b")
_LOOP = re.compile(r"(seq|par)\s*\(")
_CALL = re.compile(r"(use|delay)\s*\(")
_IF = re.compile(r"if\s*(?:\[(\w+)\])?\s*(?=\{)")
_LABEL = re.compile(r"(?:[A-Za-z_]\w*|else)\s*(?=\{)")
_SET = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)(.+)", re.S)
_TIMES = re.compile(r"(.+)\*\s*([A-Za-z_][\w$]*)", re.S)
_OPERATION = re.compile(r"([A-Za-z_][\w$]*)(?:\(.*\))?", re.S)
_OPEN, _CLOSE = "([{", ")]}"


def parse(text: str, where: str = "model") -> PamelaModel:
    """The model that a text describes. Raises InputError."""
    plain = re.sub(r"//.*", "", text)
    parts: dict[str, Node] = {}
    tasks: dict[int, str] = {}
    sizes: dict[tuple[str, int], float] = {}
    for name, rest, body in _definitions(plain):
        batch = _TASK.search(name + rest)
        if name == "task" and batch:
            tasks[int(batch.group(1))] = re.split(r"[(;\s]", body.strip())[0]
        elif batch and rest:
            sizes[name, int(batch.group(1))] = _number(body, where)
        else:
            parts[name] = _whole(body, f"{where}, {name}")
    if "L" not in parts:
        raise InputError(f"{where}: no definition of L, the application")
    return PamelaModel(parts, tasks, sizes)


def _definitions(text: str) -> list[tuple[str, str, str]]:
    """(name, text between it and '=', body) of every definition outside braces."""
    heads = [m for m in _HEAD.finditer(text) if _depth(text[: m.start()]) == 0]
    ends = [m.start() for m in heads[1:]] + [len(text)]
    return [(m.group(1), m.group(2), text[m.end() : end]) for m, end in zip(heads, ends)]


def _depth(text: str) -> int:
    return text.count("{") - text.count("}")


def _number(body: str, where: str) -> float:
    try:
        return float(body.strip().rstrip(";"))
    except ValueError:
        raise InputError(f"{where}: '{shown(body)}': expected a number of bytes") from None


def _whole(text: str, where: str) -> Node:
    """The node that the text of a definition describes. Raises InputError."""
    open_: list[str] = []
    for letter in text:
        if letter in _OPEN:
            open_.append(_CLOSE[_OPEN.index(letter)])
        elif letter in _CLOSE and (not open_ or letter != open_.pop()):
            raise InputError(f"{where}: '{letter}' without its opening bracket")
    if open_:
        raise InputError(f"{where}: expected '{open_[-1]}' at the end")
    try:
        # a statement may follow a block without a semicolon
        return _sequence(re.sub(r"\}(?!\s*(?:else\b|\|\|))", "};", text), where)
    except RecursionError:
        raise InputError(f"{where}: nested too deeply to be read") from None


def _sequence(text: str, where: str) -> Node:
    """Statements with semicolons between them."""
    return sequence(*(_parallel(one, where) for one in _split(text, ";") if one.strip()))


def _parallel(text: str, where: str) -> Node:
    """Items joined by ||."""
    items = tuple(_item(one.strip(), where) for one in _split(text, "||"))
    return items[0] if len(items) == 1 else PamelaParallel(items)


def _item(text: str, where: str) -> Node:
    if text[:1] in ("{", "("):
        inside, rest = _bracket(text, 0)
        if rest:
            raise InputError(f"{where}: cannot read '{shown(rest)}'")
        return _sequence(inside, where)
    if found := _LOOP.match(text):
        return _loop(found, text, where)
    if found := _CALL.match(text):
        inside, rest = _bracket(text, found.end() - 1)
        parts = [part.strip() for part in _split(inside, ",")]
        if found[1] == "delay" and not rest:
            return Delay(inside)
        if len(parts) != 2 or rest:
            raise InputError(f"{where}: '{shown(text)}': expected use(RESOURCE,AMOUNT)")
        return Use(*parts)
    if found := _IF.match(text):
        then, rest = _bracket(text, found.end())
        other = _item(rest, where) if rest else NOTHING
        return Choice(_sequence(then, where), other, found[1] or "")
    if found := _LABEL.match(text):  # taskrun{ … }
        return _item(text[found.end() :], where)
    return _plain(text, where)


def _loop(found: re.Match[str], text: str, where: str) -> Node:
    head, body = _bracket(text, found.end() - 1)
    variable, sign, bounds = head.partition("=")
    ends = [end.strip() for end in _split(bounds, ",")]
    if not sign or len(ends) != 2:
        raise InputError(f"{where}: '{shown(head)}': expected {found[1]}(i=1,10)")
    kind: Literal["seq", "par"] = "seq" if found[1] == "seq" else "par"
    return PamelaLoop(kind, variable.strip(), ends[0], ends[1], _item(body, where))


def _plain(text: str, where: str) -> Node:
    """An operation, an assignment to a counter, or the name of another definition."""
    if found := _SET.fullmatch(text):
        return Set(found[1], found[2].strip())
    if found := _TIMES.fullmatch(text):
        return Operation(found[2], found[1].strip())
    if found := _OPERATION.fullmatch(text):
        return Operation(found[1])
    raise InputError(f"{where}: cannot read '{shown(text)}'; expected an operation")


def _bracket(text: str, at: int) -> tuple[str, str]:
    """(text inside the bracket that opens at a place, text behind it)."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] in _OPEN) - (text[k] in _CLOSE)
        if depth == 0:
            break
    return text[at + 1 : k], text[k + 1 :].strip()


def _split(text: str, at: str) -> list[str]:
    """The text, split at separators outside brackets."""
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and text.startswith(at, k):
            parts.append(text[start:k])
            start = k + len(at)
    return [*parts, text[start:]]
