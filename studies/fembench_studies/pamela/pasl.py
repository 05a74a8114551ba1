"""PASL: batches of tasks of a farm application, their cardinalities
and links (Herai 2005, 2.1).

path = "PIMonteCarlo";
B1 = "DistributeData.class";
B2 = "ProcessData.class";
%%
T1 = B1(1)   << NULL;
T2 = B2(100) << T1 >> result.dat;      // inputs: NULL, a file, or a list of T's
"""

import re
from dataclasses import dataclass

from fembench.base.config import read_text
from fembench.base.errors import shown
from fembench.errors import InputError

_DECLARE = re.compile(r'(?![^"]*\()(\w+)\s*=\s*"?([^"<>«»]*?)"?\s*')
_LINK = re.compile(
    r"T(\d{1,9})\s*=\s*B(\d{1,9})\s*\(\s*(\d{1,9})\s*\)\s*(?:<<|«)\s*(.+?)\s*(?:(?:>>|»)\s*(\S+)\s*)?"
)


@dataclass(frozen=True)
class Batch:
    """A batch: `cardinality` tasks that run the same code."""

    number: int  # from 1
    code: str  # "ProcessData"
    cardinality: int
    inputs: tuple[int, ...]  # its predecessors
    output: str = ""  # file that it writes


@dataclass(frozen=True)
class BatchGraph:
    """A task graph: batches in ascending order of their numbers,
    which is a topological order."""

    batches: tuple[Batch, ...]

    def successors(self, number: int) -> tuple[int, ...]:
        """The batches that take input from this one."""
        return tuple(b.number for b in self.batches if number in b.inputs)

    def batch(self, number: int) -> Batch:
        return next(b for b in self.batches if b.number == number)


def load(path: str) -> BatchGraph:
    """The graph in a file. Raises InputError."""
    return parse(read_text(path), path)


def parse(text: str, where: str = "PASL") -> BatchGraph:
    """The graph that a text describes. Raises InputError naming the statement."""
    code: dict[str, str] = {}
    batches: dict[int, Batch] = {}
    plain = re.sub(r"//.*", "", text).replace("%%", ";;")
    for found_at in re.finditer(r"[^;]+", plain):
        statement = found_at.group().strip()
        line = 1 + plain.count("\n", 0, found_at.end() - len(found_at.group().lstrip()))
        if not statement:
            continue
        if link := _LINK.fullmatch(statement):
            _link(link, code, batches, where)
        elif found := _DECLARE.fullmatch(statement):
            code[found.group(1)] = found.group(2).removesuffix(".class")
        else:
            expected = 'T2 = B2(100) << T1; or B2 = "Name.class";'
            raise InputError(f"{where}, line {line}: cannot read '{shown(statement)}'; expected {expected}")
    graph = BatchGraph(tuple(batches[k] for k in sorted(batches)))
    _check(graph, where)
    return graph


def _link(link: re.Match[str], code: dict[str, str], batches: dict[int, Batch], where: str) -> None:
    number, name, cardinality = int(link.group(1)), f"B{link.group(2)}", int(link.group(3))
    if name not in code:
        raise InputError(f'{where}: T{number}: {name} is not declared; expected {name} = "Name.class"')
    if number in batches:
        raise InputError(f"{where}: T{number} is defined twice")
    words = [w.strip() for w in link.group(4).split(",")]
    inputs = tuple(int(w[1:]) for w in words if re.fullmatch(r"T\d{1,9}", w))
    unknown = [k for k in inputs if k not in batches]
    if unknown or cardinality < 1:
        reason = f"T{unknown[0]} does not come before it" if unknown else f"{cardinality} tasks"
        raise InputError(f"{where}: T{number}: {reason}")
    batches[number] = Batch(number, code[name], cardinality, inputs, link.group(5) or "")


def _check(graph: BatchGraph, where: str) -> None:
    """Raises InputError unless first and last batch have one task, and all
    others have input and output."""
    if not graph.batches:
        raise InputError(f"{where}: no links; expected lines such as T1 = B1(1) << NULL")
    first, last = graph.batches[0], graph.batches[-1]
    for batch in (first, last):
        if batch.cardinality != 1:
            raise InputError(
                f"{where}: T{batch.number} has {batch.cardinality} tasks; the first and last have 1"
            )
    for batch in graph.batches:
        if batch is not first and not batch.inputs:
            raise InputError(
                f"{where}: T{batch.number} has no input; expected one, except for the first batch"
            )
        if batch is not last and not graph.successors(batch.number):
            raise InputError(
                f"{where}: T{batch.number} feeds no batch; expected one, except for the last batch"
            )
