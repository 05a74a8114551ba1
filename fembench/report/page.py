"""The report of a campaign: index.html, report.md, tables, plots and exports.

`build` writes a new folder next to the old one and then swaps them, so a report is
always complete. The page loads nothing from a network.
"""

import dataclasses
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from fembench.base.errors import InputError
from fembench.base.files import atomic_folder
from fembench.records.record import Record
from fembench.report import table, writers
from fembench.report.conclusions import conclusions
from fembench.report.outputs import Findings
from fembench.report.plots.canvas import Plot, themed
from fembench.report.plots.gallery import gallery
from fembench.report.results import results
from fembench.report.table import Table
from fembench.report.tables import CampaignResults, read_campaign, tables_of

MARK = '<meta name="generator" content="fembench report">'
MOST_ROWS = 800  # of a table on the page
BRIEF = 190  # characters of a note that fit in two lines; the rest is folded
SHORT, LONG = 24, 48  # characters: of a column that is not broken; of a wide one
BADGES = {  # words of tables that stand out
    **dict.fromkeys(("VALID", "met"), "good"),
    **dict.fromkeys(("PROVISIONAL", "not evaluated"), "some"),
    **dict.fromkeys(("INVALID", "not met", "input", "failed", "crashed", "killed", "timeout"), "bad"),
}
# plots beside the headline: the first two of these that there are
LEADING = ("speedup", "phases", "weak", "roofline", "residuals")
# heading; beginnings of the names of its plots; beginnings of the names of its tables
SECTIONS = (
    ("Summary", (), ("headline",)),
    ("Verdict", (), ("overview", "reasons", "failures", "left_out", "unavailable", "kinds")),
    ("Times", ("phases", "set_up"), ("runs_apart", "summary", "phases", "mean_phases")),
    ("Speedup", ("speedup",), ("speedup",)),
    ("Weak scaling", ("weak",), ("weak",)),
    ("Peers", (), ("peers",)),
    ("Communication", ("communication", "ranks"), ("communication", "send_receive")),
    ("Rates", ("roofline",), ("solutions", "rates", "roofline")),
    ("Hosts", (), ("nodes", "host_times")),
    ("Rebalancing", (), ("balance",)),
    ("Time lines", ("time_line",), ()),
    ("Solver", ("residuals",), ("iterations", "levels", "layouts", "threads")),
    ("Partition", (), ("partitions", "parts")),
    ("Every rule", (), ("rules",)),
    ("Provenance", (), ("hosts", "rank_places", "devices", "rank_speeds", "meshes", "software")),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """One part of the page."""

    title: str
    plots: list[Plot]
    tables: list[Table]


def build(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    said: Sequence[str] | None = None,
) -> Path:
    """Write the report of the campaign in `folder` to `out` (default: its report/).

    said: its conclusions, if they are known. Raises InputError if there is nothing to
    report, or `out` contains something else.
    """
    campaign = read_campaign(Path(folder))
    target = Path(out or Path(folder) / "report")
    return write(campaign, tables_of(campaign), target, said=said)


def write(
    campaign: CampaignResults,
    tables: Sequence[Table],
    target: Path,
    base: int = 0,
    said: Sequence[str] | None = None,
) -> Path:
    """Draw the plots and write everything to `target`; return its index.html.

    tables: of the campaign; base: as of `tables_of`; said: its conclusions, if they are
    known. Raises InputError if `target` has something else.
    """
    check_own(target)
    found = results(campaign.records, campaign.nodes)
    plots = gallery(found, base)
    with atomic_folder(target) as fresh:
        files = write_exports(campaign, fresh)
        for made in tables:
            _write(fresh / "tables" / f"{made.name}.csv", table.to_csv(made))
        for picture in plots:
            _write(fresh / "plots" / f"{picture.name}.svg", picture.svg)
        sections = arrange(tables, plots)
        said = conclusions(found, campaign.failed) if said is None else said
        _write(fresh / "report.md", render("report.md.j2", campaign, sections, files, said=said))
        _write(fresh / "index.html", render("page.html.j2", campaign, sections, files, said=said))
    return target / "index.html"


def single_page(found: Findings[Any]) -> str:
    """A page in one file: the first table with the plots, then the other tables."""
    campaign = CampaignResults(found.title, list(found.records), [], {}, "")
    tables = list(found.tables().values())
    parts = [Section("Summary", found.plots(), tables[:1]), Section("Details", [], tables[1:])]
    sections = [part for part in parts if part.plots or part.tables]
    return render("page.html.j2", campaign, sections, None, said=found.conclusions())


def arrange(tables: Sequence[Table], plots: Sequence[Plot]) -> list[Section]:
    """Plots and tables by section, in the order of the page; empty sections are left out."""
    by_name = {p.name: p for p in plots}
    leading = [by_name[name] for name in LEADING if name in by_name][:2]
    rest = [p for p in plots if p not in leading]
    made = [
        Section(title, [p for p in rest if _starts(p, first)], [t for t in tables if _starts(t, second)])
        for title, first, second in SECTIONS
    ]
    made[0].plots.extend(leading)
    return [s for s in made if s.plots or s.tables]


def _starts(item: Plot | Table, beginnings: Sequence[str]) -> bool:
    """Whether the name is one of `beginnings`, or continues one after '-' or '_'."""
    return any(item.name == b or item.name.startswith((f"{b}-", f"{b}_")) for b in beginnings)


def write_exports(campaign: CampaignResults, target: Path) -> list[str]:
    """Write times, time lines and VTU files into target/exports; their paths there."""
    folder = target / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    if campaign.records:
        writers.csv(campaign, folder / "everything.csv", brief=True)
    writers.perfetto(campaign, folder)
    writers.vtu(campaign, folder)
    return sorted(str(path.relative_to(target)) for path in folder.iterdir())


def render(
    template: str,
    campaign: CampaignResults,
    sections: Sequence[Section],
    files: Sequence[str] | None,
    synthetic: Sequence[str] | None = None,
    said: Sequence[str] = (),
) -> str:
    """A page from a template.

    files: beside the page; None: it has no others, not even tables
    synthetic: the emulation; None: that of the records
    said: conclusions, in sentences
    """
    here = jinja2.FileSystemLoader(Path(__file__).parent)
    html = template.endswith(".html.j2")
    environment = jinja2.Environment(
        loader=here,
        autoescape=html,
        finalize=None if html else lambda value: str(value).replace("<", "&lt;"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    statuses = [r.verdict.status for r in campaign.records]
    return environment.get_template(template).render(
        campaign=campaign,
        sections=sections,
        files=files,
        said=said,
        counts={s: statuses.count(s) for s in ("VALID", "PROVISIONAL", "INVALID") if s in statuses},
        synthetic=sorted({r.environment.synthetic for r in campaign.records} - {""})
        if synthetic is None
        else synthetic,
        emulated=_emulated(campaign.records),
        newest=_minute(max(_dates(campaign), default="never")),
        linked=functools.partial(_linked, sections=sections),
        text=table.text,
        most=MOST_ROWS,
        brief=brief,
        rows=rows_of,
        below=below,
        drawn=lambda svg: markupsafe.Markup(themed(svg)),
        mark=markupsafe.Markup(MARK),
    )


def _emulated(records: Sequence[Record]) -> str:
    """'2 of 5 runs, ': those that are SYNTHETIC, if others are not."""
    n = sum(bool(r.environment.synthetic) for r in records)
    return f"{n} of {len(records)} runs, shown apart: " if 0 < n < len(records) else ""


def brief(note: str) -> tuple[str, str]:
    """The first sentences, as far as they fit in two lines, and the others."""
    sentences = re.split(r"(?<=\.) (?=[A-Z'(])", note)
    n = 1
    while n < len(sentences) and len(" ".join(sentences[: n + 1])) <= BRIEF:
        n += 1
    return " ".join(sentences[:n]), " ".join(sentences[n:])


def rows_of(made: Table) -> list[markupsafe.Markup]:
    """The rows of a table on the page, in HTML: 30 000 cells, for which a template is slow."""
    shown = made.shown(MOST_ROWS)
    longest = [max(map(len, column), default=0) for column in zip(*shown)]
    looks = ["text" if n > LONG else "wrap" if n > SHORT else "" for n in longest]
    columns = list(zip(made.numbers, looks))
    return [
        markupsafe.Markup(f"<tr>{''.join(map(_cell, texts, row, columns))}</tr>")
        for texts, row in zip(shown, made.rows)
    ]


def below(made: Table) -> bool:
    """Whether the last column, of remarks or long texts, stands below its row where the table is too wide."""
    last = made.columns[-1]
    longest = max((len(last.show(row[-1])) for row in made.rows[:MOST_ROWS]), default=0)
    long = last.head == "remarks" or longest > SHORT
    return len(made.columns) > 2 and not made.numbers[-1] and long


def _cell(text: str, value: object, column: tuple[bool, str]) -> str:
    """A value as shown; numbers are sorted by `data-v`, "" if missing."""
    number, look = column
    badge = BADGES.get(text, "")
    inner = markupsafe.escape(text)
    inside = f'<span class="badge {badge}">{inner}</span>' if badge else inner
    if number:
        return f'<td class="number" data-v="{_order(value)}">{inside}</td>'
    return f'<td class="{look}">{inside}</td>' if look else f"<td>{inside}</td>"


def _order(value: object) -> float | str:
    first = value[0] if isinstance(value, tuple) else value
    return first if isinstance(first, (int, float)) and not table.missing(first) else ""


def _dates(campaign: CampaignResults) -> list[str]:
    """The dates of all records, failures and comparisons."""
    dates = [r.created for r in campaign.records] + [f.created for f in campaign.failures]
    return dates + ([campaign.peers.created] if campaign.peers else [])


def _minute(date: str) -> str:
    """'2026-01-02 03:04 UTC' of '2026-01-02T03:04:05+00:00'."""
    return f"{date[:10]} {date[11:16]} UTC" if date.endswith("+00:00") else date


def _linked(sentence: str, sections: Sequence[Section]) -> markupsafe.Markup:
    """HTML of a sentence: `commands` stand out, and 'see TITLE' links to that table."""
    found = re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(sentence)))
    for made in (one for section in sections for one in section.tables):
        title = markupsafe.escape(made.title)
        link = f'<a href="#table-{made.name}">{title}</a>'
        found = found.replace(f"see {title}", f"see {link}")
    return markupsafe.Markup(found)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")


def check_own(target: Path) -> None:
    """Raises InputError unless this is an earlier report, an empty folder, or nothing."""
    page = target / "index.html"
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not page.is_file() or MARK not in page.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise InputError(f"{target}: not a report; expected an empty folder or an earlier report")
