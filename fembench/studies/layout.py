"""Tables of a source with its printed numbers beside ours, under its column names."""

from collections.abc import Iterable, Sequence

from fembench.report.table import Column, Table, words

THESIS = "thesis_"


def figure_of(value: float) -> str:
    """Four significant digits, thousands apart, no powers of ten down to a millionth."""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.4g}" if abs(value) >= 1e-4 or not value else f"{value:.2e}"


def value(name: str, head: str = "") -> Column:
    """A column of numbers."""
    return Column(head or name.replace("_", " "), name, figure_of, number=True)


def count(name: str, head: str = "") -> Column:
    """A column of whole numbers."""
    return Column(head or name.replace("_", " "), name, lambda v: f"{v:.0f}", number=True)


def beside(
    name: str,
    title: str,
    note: str,
    keys: Sequence[str],
    measures: Sequence[str],
    rows: Iterable[tuple[Sequence[object], Sequence[float], Sequence[float]]],
) -> Table:
    """Rows of (keys, our values, the thesis' values): ours under the thesis' names, its own beside each."""
    columns = [words(k) if k == "platform" else count(k) for k in keys]
    for m in measures:
        columns += [value(m), value(f"{THESIS}{m}", "thesis")]
    pairs = ((k, [v for pair in zip(ours, theirs) for v in pair]) for k, ours, theirs in rows)
    return Table(name, title, note, tuple(columns), tuple((*k, *values) for k, values in pairs))
