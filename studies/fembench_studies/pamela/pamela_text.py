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
_ELSE = re.compile(r"\s*else\s*(?=\{)")
_LABEL = re.compile(r"[A-Za-z_]\w*\s*(?=\{)")
_SET = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)(.+)", re.S)
_TIMES = re.compile(r"(.+)\*\s*([A-Za-z_][\w$]*)", re.S)
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
            parts[name] = Reader(body, f"{where}, {name}").whole()
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


class Reader:
    """A recursive-descent parser of one definition."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.at = text, where, 0

    def whole(self) -> Node:
        """Parse the whole text. Raises InputError."""
        try:
            found = self.sequence()
        except RecursionError:
            raise InputError(f"{self.where}: nested too deeply to be read") from None
        if self.rest():
            self.fail("expected the end")
        return found

    def rest(self) -> str:
        """Skip blanks; returns the rest of the text."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at :]

    def fail(self, message: str) -> None:
        raise InputError(f"{self.where}: {message} at '{shown(self.rest(), 40)}'")

    def sequence(self) -> Node:
        """The items up to the closing bracket or the end."""
        items: list[Node] = []
        while (rest := self.rest()) and rest[0] not in _CLOSE:
            if rest[0] == ";":
                self.at += 1
            else:
                items.append(self.parallel())
        return sequence(*items)

    def parallel(self) -> Node:
        """Items joined by ||."""
        items = [self.item()]
        while self.rest().startswith("||"):
            self.at += 2
            self.rest()
            items.append(self.item())
        return items[0] if len(items) == 1 else PamelaParallel(tuple(items))

    def item(self) -> Node:
        rest = self.rest()
        if rest[:1] in ("{", "("):
            return self.bracketed(rest[0])
        if found := _LOOP.match(rest):
            return self.loop(found)
        if found := _CALL.match(rest):
            inside = self.inside(found.end() - 1)
            if found.group(1) == "delay":
                return Delay(inside)
            resource, *amount = _split(inside)
            if len(amount) != 1:
                self.fail("expected use(RESOURCE,AMOUNT)")
            return Use(resource.strip(), amount[0].strip())
        if found := _IF.match(rest):
            self.at += found.end()
            then = self.bracketed("{")
            other: Node = NOTHING
            if again := _ELSE.match(self.text[self.at :]):
                self.at += again.end()
                other = self.bracketed("{")
            return Choice(then, other, found.group(1) or "")
        if found := _LABEL.match(rest):  # taskrun{ … }
            self.at += found.end()
            return self.bracketed("{")
        return self.plain()

    def bracketed(self, opening: str) -> Node:
        """A sequence in brackets."""
        self.rest()
        self.at += 1
        found = self.sequence()
        if self.rest()[:1] != _CLOSE[_OPEN.index(opening)]:
            self.fail(f"expected '{_CLOSE[_OPEN.index(opening)]}'")
        self.at += 1
        return found

    def inside(self, opening: int) -> str:
        """The text in the parentheses that open `opening` characters ahead; moves behind them."""
        start, depth = self.at + opening, 0
        for k in range(start, len(self.text)):
            depth += (self.text[k] in _OPEN) - (self.text[k] in _CLOSE)
            if depth == 0:
                self.at = k + 1
                return self.text[start + 1 : k]
        self.fail("expected ')'")
        return ""

    def loop(self, found: re.Match[str]) -> Node:
        head = self.inside(found.end() - 1)
        variable, sign, bounds = head.partition("=")
        ends = _split(bounds)
        if not sign or len(ends) != 2:
            self.fail(f"'{shown(head)}': expected {found.group(1)}(i=1,10)")
        body = self.item()
        kind: Literal["seq", "par"] = "seq" if found.group(1) == "seq" else "par"
        return PamelaLoop(kind, variable.strip(), ends[0].strip(), ends[1].strip(), body)

    def plain(self) -> Node:
        """An operation, an assignment to a counter, or the name of another definition."""
        stop = re.search(r";|\|\||[)}]|$", _blanked(self.text[self.at :]))
        end = stop.start() if stop else 0
        word = self.text[self.at : self.at + end].strip()
        if not word:
            self.fail("expected an operation")
        self.at += end
        if found := _SET.fullmatch(word):
            return Set(found.group(1), found.group(2).strip())
        if found := _TIMES.fullmatch(word):
            return Operation(found.group(2), found.group(1).strip())
        if not re.fullmatch(r"[A-Za-z_][\w$]*(\(.*\))?", word, re.S):
            self.fail(f"cannot read '{shown(word)}'")
        return Operation(word.split("(")[0])


def _split(text: str) -> list[str]:
    """The text, split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0:
            parts.append(text[start:k])
            start = k + 1
    return [*parts, text[start:]]


def _blanked(text: str) -> str:
    """The text with the content of parentheses and brackets replaced by dots."""
    out, depth = [], 0
    for letter in text:
        closing = letter in ")]" and depth > 0
        depth += (letter in "([") - closing
        out.append("." if depth or closing or letter in "([" else letter)
    return "".join(out)
