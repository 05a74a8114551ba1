"""Task graphs from files: JSON, and the subset of Graphviz's DOT that a task graph needs.

JSON   {"name": "mine", "tasks": [{"name": "a", "seconds": 1.5}, {"name": "b", "operations": 2e9}],
        "edges": [{"from": "a", "to": "b", "bytes": 65536}]}
DOT    digraph mine { node [seconds=1]; a [seconds=1.5]; b [operations=2e9]; a -> b [bytes=65536]; }

Seconds are those on a host of speed 1, which does `rate` operations per second. Bytes default to 0. In DOT an
edge may introduce a task, if `node [...]` gives all tasks a cost. Other attributes are ignored; subgraphs,
ports and undirected graphs are refused.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fembench.base.config import read_json, read_text
from fembench.errors import InputError
from fembench_studies.scheduling.task_graph import TaskGraph

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*", re.S | re.M)
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|--|[^\W\d][\w.]*|-?[\d.]+(?:[eE][-+]?\d+)?|[][{}=;,:])')
_NO_NAMES = ("", "subgraph", "--", "->", *"[]{}=;,:")
COSTS, BYTES = ("seconds", "operations"), "bytes"


class _Task(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    seconds: float | None = None
    operations: float | None = None


class _Edge(msgspec.Struct, forbid_unknown_fields=True):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    bytes: float = 0.0


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tasks: list[_Task]
    edges: list[_Edge] = []
    name: str = ""


@dataclass(frozen=True)
class NamedGraph:
    """A task graph, and the names of its tasks."""

    graph: TaskGraph
    names: tuple[str, ...]  # [task]


def is_graph_file(path: str) -> bool:
    """Whether a name is that of a file with a task graph."""
    return Path(path).suffix in (".json", ".dot", ".gv")


def read_graph(path: str, rate: float = 1e9) -> NamedGraph:
    """The task graph in a file ending in .json, .dot or .gv. Raises InputError."""
    kind = Path(path).suffix
    if kind == ".json":
        found = read_json(path, _File)
        return named(found.name or Path(path).stem, found.tasks, found.edges, rate, path)
    if kind in (".dot", ".gv"):
        return _Dot(read_text(path), path).graph(rate)
    raise InputError(f"{path}: expected a task graph in a file ending in .json, .dot or .gv")


def named(name: str, tasks: list[_Task], edges: list[_Edge], rate: float, where: str) -> NamedGraph:
    """The graph, checked and in topological order. Raises InputError."""
    work: dict[str, float] = {}
    for task in tasks:
        if task.name in work:
            raise InputError(f"{where}: task '{task.name}' is given twice")
        work[task.name] = _work(task, rate, where)
    if not work:
        raise InputError(f"{where}: no tasks; expected at least one")
    size: dict[tuple[str, str], float] = {}
    for edge in edges:
        pair, text = (edge.source, edge.target), f"edge '{edge.source}' -> '{edge.target}'"
        missing = next((end for end in pair if end not in work), None)
        if missing is not None:
            raise InputError(f"{where}: {text}: there is no task '{missing}'")
        if pair in size:
            raise InputError(f"{where}: {text} is given twice")
        size[pair] = _number(edge.bytes, f"{where}: {text}: bytes")
    order = _sorted(list(work), list(size), where)
    at = {task: k for k, task in enumerate(order)}
    numbered = tuple(sorted((at[a], at[b], n) for (a, b), n in size.items()))
    return NamedGraph(TaskGraph(name, tuple(work[t] for t in order), numbered), tuple(order))


def _work(task: _Task, rate: float, where: str) -> float:
    given = [cost for cost in COSTS if getattr(task, cost) is not None]
    if len(given) != 1:
        raise InputError(
            f"{where}: task '{task.name}' has {' and '.join(given) or 'no cost'}; "
            "expected seconds or operations"
        )
    value = _number(getattr(task, given[0]), f"{where}: task '{task.name}': {given[0]}")
    return value if given[0] == "seconds" else value / rate


def _number(value: float, what: str) -> float:
    if not 0 <= value < float("inf"):
        raise InputError(f"{what} = {value:g}: expected a number of 0 or more")
    return value


def _sorted(tasks: list[str], edges: list[tuple[str, str]], where: str) -> list[str]:
    """Tasks in topological order, ties in the order of the file. Raises InputError naming a cycle."""
    feeds: dict[str, list[str]] = {t: [] for t in tasks}
    waiting = dict.fromkeys(tasks, 0)
    for a, b in edges:
        feeds[a].append(b)
        waiting[b] += 1
    order = [t for t in tasks if not waiting[t]]
    for t in order:  # grows
        for s in feeds[t]:
            waiting[s] -= 1
            if not waiting[s]:
                order.append(s)
    if len(order) == len(tasks):
        return order
    before = {b: a for a, b in edges if waiting[a] and waiting[b]}
    walk = [next(t for t in tasks if waiting[t] and t in before)]
    while before[walk[-1]] not in walk:
        walk.append(before[walk[-1]])
    cycle = [*walk[walk.index(before[walk[-1]]) :], before[walk[-1]]]
    raise InputError(f"{where}: the tasks form a cycle: {' -> '.join(reversed(cycle))}")


Attributes = dict[str, str]


@dataclass
class _Dot:
    """A parser of DOT."""

    text: str
    where: str
    node: Attributes = field(default_factory=dict)
    edge: Attributes = field(default_factory=dict)
    tasks: dict[str, Attributes] = field(default_factory=dict)
    edges: list[tuple[str, str, Attributes]] = field(default_factory=list)
    stated: set[str] = field(default_factory=set)

    def graph(self, rate: float) -> NamedGraph:
        """The graph of the whole text. Raises InputError."""
        self._tokens = [*self._split(), ""]
        self._at = 0
        if self._peek() == "strict":
            self._next()
        self._expect("digraph")
        name = self._next() if self._peek() != "{" else ""
        self._expect("{")
        while self._peek() != "}":
            self._statement()
        self._next()
        if self._peek():
            self._fail("the end of the file")
        tasks = [_Task(t, *(self._cost(t, a, cost) for cost in COSTS)) for t, a in self.tasks.items()]
        edges = [_Edge(a, b, self._cost(f"{a} -> {b}", e, BYTES) or 0.0) for a, b, e in self.edges]
        return named(_plain(name) or Path(self.where).stem, tasks, edges, rate, self.where)

    def _split(self) -> Iterator[str]:
        text, at = _COMMENT.sub(" ", self.text), 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if not found:
                raise InputError(f"{self.where}: cannot read '{text[at:].split()[0][:40]}'")
            yield found.group(1)
            at = found.end()

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            self._fail(f"'{token}'")
        self._next()

    def _name(self) -> str:
        if self._peek() in _NO_NAMES:
            self._fail("a task, an edge 'a -> b' or an attribute (no subgraphs)")
        return self._next()

    def _fail(self, expected: str) -> None:
        raise InputError(f"{self.where}: expected {expected}, got '{self._peek()[:40] or 'the end'}'")

    def _statement(self) -> None:
        if self._peek() == ";":
            self._next()
            return
        first = self._name()
        if first in ("node", "edge", "graph") and self._peek() == "[":
            {"node": self.node, "edge": self.edge, "graph": {}}[first].update(self._attributes())
            return
        if self._peek() == "=":  # rankdir = LR
            self._next()
            self._name()
            return
        chain = [_plain(first)]
        while self._peek() == "->":
            self._next()
            chain.append(_plain(self._name()))
        found = self._attributes()
        if len(chain) == 1:
            if chain[0] in self.stated:
                raise InputError(f"{self.where}: task '{chain[0]}' is given twice")
            self.stated.add(chain[0])
            usual = {} if set(COSTS) & set(found) else self.node
            self.tasks[chain[0]] = usual | found
        for a, b in itertools.pairwise(chain):
            for end in (a, b):
                self.tasks.setdefault(end, dict(self.node))
            self.edges.append((a, b, self.edge | found))

    def _attributes(self) -> Attributes:
        found: Attributes = {}
        while self._peek() == "[":
            self._next()
            while self._peek() != "]":
                key = self._next()
                self._expect("=")
                found[_plain(key)] = _plain(self._next())
                if self._peek() in (",", ";"):
                    self._next()
            self._next()
        return found

    def _cost(self, of: str, attributes: Attributes, key: str) -> float | None:
        if key not in attributes:
            return None
        try:
            return float(attributes[key])
        except ValueError:
            raise InputError(f"{self.where}: {of}: {key} = '{attributes[key]}': expected a number") from None


def _plain(token: str) -> str:
    return token[1:-1].replace('\\"', '"') if token.startswith('"') else token
