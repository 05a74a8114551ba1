"""The page of a study as HTML and Markdown, with its tables as CSV, plots as SVG, and exports."""

from collections.abc import Sequence
from pathlib import Path

import jinja2
import markupsafe

import fembench.report
from fembench.base.files import write_atomic
from fembench.report import exports, table
from fembench.report.fields import read_fields
from fembench.report.page import MARK, MOST_ROWS, CampaignResults, Section
from fembench.studies.study import StudyOutcome, report_name

TEMPLATES = {"report.md": "report.md.j2", "index.html": "page.html.j2"}


def publish(folder: Path, title: str, outcome: StudyOutcome, only: Sequence[str] = ()) -> Path:
    """Write the page into the study's folder; returns index.html. `only`: its experiments; () means all."""
    target = folder / report_name(only)
    sections = [s for s in outcome.sections if s.plots or any(t.rows for t in s.tables)]
    for section in sections:
        for made in section.tables:
            write_atomic(target / "tables" / f"{made.name}.csv", table.to_csv(made))
        for plot in section.plots:
            write_atomic(target / "plots" / f"{plot.name}.svg", plot.svg)
    campaign = CampaignResults(title, list(outcome.records), list(outcome.failures), dict(outcome.fields), "")
    files = _exported(campaign, target)
    for name, template in TEMPLATES.items():
        write_atomic(target / name, render(template, campaign, sections, files, outcome.synthetic))
    return target / "index.html"


def _exported(campaign: CampaignResults, target: Path) -> list[str]:
    """Write times, time lines and deformed bodies; returns the names of the files, relative to the page."""
    if not campaign.records:
        return []
    folder = target / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    exports.write_everything(campaign.records, folder / "everything.csv")
    for record in campaign.records:
        exports.write_time_line(record, folder)
    for name, path in campaign.fields.items():
        exports.write_vtu(read_fields(path), folder / f"{name}.vtu")
    return sorted(str(path.relative_to(target)) for path in folder.iterdir())


def render(
    template: str,
    campaign: CampaignResults,
    sections: Sequence[Section],
    files: Sequence[str],
    ways: Sequence[str],
) -> str:
    """A page from one of the templates of `fembench report`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(str(fembench.report.__file__)).parent),
        autoescape=template.endswith(".html.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    statuses = [r.verdict.status for r in campaign.records]
    dates = [r.created for r in campaign.records] + [f.created for f in campaign.failures]
    return environment.get_template(template).render(
        campaign=campaign,
        sections=sections,
        files=files,
        counts={s: statuses.count(s) for s in ("VALID", "PROVISIONAL", "INVALID") if s in statuses},
        synthetic=ways,
        newest=max(dates, default="never"),
        text=table.text,
        most=MOST_ROWS,
        raw=markupsafe.Markup,
        mark=markupsafe.Markup(MARK),
    )
