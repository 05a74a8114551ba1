"""What is printed, fitted to the width of a terminal.

Verbs print lines and Markdown tables. A file or a pipe gets them unchanged. On a
terminal, or where COLUMNS says how wide one is, a line breaks between words, and a table
that is too wide is changed until it fits:

1. Its remarks become numbered notes below it, or one note if they are the same on all rows.
2. Texts break between words; numbers never break.
3. A table is split into blocks, which repeat the columns that tell its rows apart.
"""

import contextlib
import io
import itertools
import os
import re
import select
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

NARROWEST = 40  # columns
GAP = 2  # blanks between the columns of a table
TEXT = 12  # characters: no column of text is made narrower
REMARKS = ("remarks", "note", "timed")  # heads of the columns that become notes
COLORS = {"VALID": 32, "PROVISIONAL": 33, "INVALID": 31}  # green, yellow and red (ECMA-48, SGR)
VERDICT = re.compile(rf"(^|: |\] |  )({'|'.join(COLORS)})\b")  # not in the middle of a sentence
COMMAND = re.compile(r"`[^`]+`|next: .*")  # kept on one line if it fits
NUMBER = re.compile(r"(?<=\d) (?=\d{3}\b|[nµm]?s\b|%|[KMGT]?i?B\b)")  # a blank inside
HARD = "\0"  # stands for a blank at which no line breaks


class TextColumn:
    """A column of a table of text."""

    def __init__(self, head: str, right: bool, cells: Sequence[str]) -> None:
        """`right`: whether it holds numbers."""
        self.head = head
        self.right = right
        self.cells = cells
        whole = max(map(len, cells), default=0)
        words = max((len(word) for text in (head, *cells) for word in text.split()), default=0)
        self.full = max(len(head), whole)  # its width if nothing breaks
        self.least = max(words, whole if right else min(whole, TEXT))  # and if no word or number does


Block = Sequence[TextColumn]


def width_of(stream: TextIO) -> int | None:
    """Columns of a terminal, or those that COLUMNS says; None for a file or a pipe."""
    said = os.environ.get("COLUMNS", "")
    if not said.isdecimal() and not stream.isatty():
        return None
    columns = int(said) if said.isdecimal() else 0
    with contextlib.suppress(OSError):  # of streams that only look like a terminal
        columns = columns or os.get_terminal_size(stream.fileno()).columns
    return max(columns or 80, NARROWEST)


@contextlib.contextmanager
def fitting(stream: TextIO | None, redirect: Callable[[Any], Any]) -> Iterator[None]:
    """Fit what is written to a stream to its width, if it has one.

    `redirect`: contextlib.redirect_stdout or redirect_stderr.
    """
    if stream is None or width_of(stream) is None:
        yield
        return
    fitted = FittedStream(stream)
    with redirect(fitted):
        try:
            yield
        finally:
            fitted.flush()


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print as much as is read: after `head` has gone, nothing, but what follows is done."""
    try:
        yield
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """From now on, what is printed goes nowhere: what is left of it, too, or Python tries again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reader_left() -> bool:
    """Whether stdout is a pipe whose reader has gone, or a terminal that was closed."""
    poll = select.poll()
    with contextlib.suppress(OSError, TypeError):  # it is no file, or closed
        poll.register(sys.stdout, 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    return False


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """What a library in C writes to stderr goes nowhere."""
    stderr = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nothing)


def write_unfitted(text: str) -> None:
    """Write a file to stdout: no line of it is changed."""
    stream: Any = sys.stdout
    stream.flush()
    (stream._stream if isinstance(stream, FittedStream) else stream).write(text)


def as_on_terminal(text: str) -> str:
    """The text as this terminal shows it; unchanged if there is none."""
    width = width_of(sys.stdout) if sys.stdout else None
    if width is None:
        return text
    shown = io.StringIO()
    fitted = FittedStream(shown, width)
    fitted.write(f"{text}\n")
    fitted.flush()
    return shown.getvalue().removesuffix("\n")


class FittedStream:
    """The stream of a terminal, on which no line is wider than it is."""

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        self._stream = stream
        self._given = width
        self._rest = ""  # of what was written, after the last line break
        self._table: list[str] = []  # lines of a table that may go on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def _width(self) -> int:
        """That of now: a window may be resized."""
        return self._given or width_of(self._stream) or 80

    def write(self, text: str) -> int:
        """Pass on complete lines; a table when it has ended."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.startswith("| "):
                self._table.append(line)
            else:
                self._end_table()
                self._say(line)
        return len(text)

    def flush(self) -> None:
        """Pass on all."""
        self._end_table()
        self._stream.write(self._rest)
        self._rest = ""
        self._stream.flush()

    def _end_table(self) -> None:
        lines, self._table = self._table, []
        columns = columns_of(lines)
        if not columns:
            for line in lines:
                self._say(line)
            return
        blocks, notes = arranged(columns, self._width)
        for k, block in enumerate(blocks):
            self._pass_on([""] * (k > 0))
            self._pass_on(drawn(block, self._width))
        for note in notes:
            self._say(note)

    def _say(self, line: str) -> None:
        self._pass_on(wrapped(line, self._width))

    def _pass_on(self, lines: Iterable[str]) -> None:
        colors = self._stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        for line in lines:
            self._stream.write(f"{VERDICT.sub(_colored, line) if colors else line}\n")


def _colored(verdict: re.Match[str]) -> str:
    return f"{verdict[1]}\x1b[{COLORS[verdict[2]]}m{verdict[2]}\x1b[0m"


def wrapped(line: str, width: int) -> list[str]:
    """A line, broken between words; all but the first part are indented."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)

    def kept(command: re.Match[str]) -> str:
        fits = len(indent + command[0]) <= width
        return command[0].replace(" ", HARD) if fits else command[0]

    parts = textwrap.wrap(
        COMMAND.sub(kept, _hard(line)),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [_soft(part) for part in parts]


def _hard(text: str) -> str:
    return NUMBER.sub(HARD, text)


def _soft(text: str) -> str:
    return text.replace(HARD, " ")


def columns_of(lines: Sequence[str]) -> list[TextColumn]:
    """The columns of a Markdown table; none if it is not one."""
    rows = [[cell.strip() for cell in _hard(line).strip()[1:-1].split("|")] for line in lines]
    ruled = len(rows) > 1 and all(re.fullmatch(":?-+:?", cell) for cell in rows[1])
    if not ruled or len(set(map(len, rows))) > 1:
        return []
    return [TextColumn(head, rule.endswith(":"), cells) for head, rule, *cells in zip(*rows)]


def arranged(columns: Block, width: int) -> tuple[list[Block], list[str]]:
    """(blocks, one below the other, notes below them) of a table, at this width."""
    if _across([column.full for column in columns]) <= width:
        return [columns], []
    numbers: dict[str, str] = {}  # note -> '[1]'
    alike = [column for column in columns if _alike(column)]
    short = [
        _numbered(column, numbers) if column.head in REMARKS else column
        for column in columns
        if column not in alike and (column.head not in REMARKS or any(column.cells))
    ]
    notes = [_soft(f"{column.head} on all rows: {column.cells[0]}") for column in alike]
    notes += [_soft(f"{number} {note}") for note, number in numbers.items()]
    if _least(short) <= width:
        return [short], notes
    return _blocks(short, width), notes


def _alike(column: TextColumn) -> bool:
    """Whether these are remarks, the same ones on each of several rows."""
    cells = column.cells
    return column.head in REMARKS and len(cells) > 1 and bool(cells[0]) and len(set(cells)) == 1


def _numbered(column: TextColumn, numbers: dict[str, str]) -> TextColumn:
    """The column with a number in place of each note."""
    for note in filter(None, column.cells):
        numbers.setdefault(note, f"[{len(numbers) + 1}]")
    return TextColumn(column.head, column.right, [numbers.get(note, "") for note in column.cells])


def _blocks(columns: Block, width: int) -> list[Block]:
    """As many columns side by side as the width allows, each time after the keys."""
    keys = _keys(columns, width)
    found = [[*keys]]
    for column in columns:
        if column in keys:
            continue
        if len(found[-1]) > len(keys) and _least([*found[-1], column]) > width:
            found.append([*keys])
        found[-1].append(column)
    return [sorted(found[0], key=columns.index), *found[1:]]


def _keys(columns: Block, width: int) -> list[TextColumn]:
    """The first columns that tell the rows apart, as far as half the width allows."""
    keys, apart = [columns[0]], len(set(columns[0].cells))
    for column in columns[1:-1]:
        rows = len(set(zip(*(key.cells for key in (*keys, column)))))
        if rows == apart:
            continue
        if 2 * _least([*keys, column]) > width:
            break
        keys, apart = [*keys, column], rows
    return keys


def _least(columns: Block) -> int:
    return _across([column.least for column in columns])


def _across(widths: Sequence[int]) -> int:
    """The width of columns with the gaps between them."""
    return sum(widths) + GAP * (len(widths) - 1)


def widths_of(columns: Block, width: int) -> list[int]:
    """The widths of columns that share this one: of all too long ones, the same.

    Only if there is no other way, a word breaks.
    """
    sizes = [(c.least, c.full) for c in columns]
    every = range(width, 0, -1)
    unbroken = ([min(full, max(least, most)) for least, full in sizes] for most in every)
    broken = ([min(least, most) for least, _ in sizes] for most in every)
    return next(found for found in itertools.chain(unbroken, broken) if _across(found) <= width)


def drawn(columns: Block, width: int) -> Iterator[str]:
    """The lines of one block."""
    widths = widths_of(columns, width)
    heads = [column.head for column in columns]
    rules = ["─" * own for own in widths]
    rows = zip(*(column.cells for column in columns))
    for row in [heads, rules, *rows]:
        cells = [textwrap.wrap(cell, own, break_on_hyphens=False) for cell, own in zip(row, widths)]
        for parts in itertools.zip_longest(*cells, fillvalue=""):
            sides = (
                part.rjust(own) if column.right else part.ljust(own)
                for part, own, column in zip(parts, widths, columns)
            )
            yield _soft((" " * GAP).join(sides).rstrip())
