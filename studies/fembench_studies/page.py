"""The page of a study as HTML and Markdown, with its tables as CSV, plots as SVG, and exports."""

from collections.abc import Sequence
from pathlib import Path

from fembench.base.files import write_atomic
from fembench.report import table
from fembench.report.page import CampaignResults, Section, render, write_exports
from fembench_studies.study import StudyOutcome, report_name

TEMPLATES = {"report.md": "report.md.j2", "index.html": "page.html.j2"}


def publish(folder: Path, title: str, outcome: StudyOutcome, only: Sequence[str] = ()) -> Path:
    """Write the page into the study's folder; returns index.html. `only`: its experiments; () means all."""
    target = folder / report_name(only)
    judged = [Section("Claims", [], outcome.judged)]
    sections = [s for s in (*judged, *outcome.sections) if s.plots or any(t.rows for t in s.tables)]
    for section in sections:
        for made in section.tables:
            write_atomic(target / "tables" / f"{made.name}.csv", table.to_csv(made))
        for plot in section.plots:
            write_atomic(target / "plots" / f"{plot.name}.svg", plot.svg)
    campaign = CampaignResults(title, list(outcome.records), list(outcome.failures), dict(outcome.fields), "")
    files = write_exports(campaign, target) if campaign.records else []
    for name, template in TEMPLATES.items():
        write_atomic(target / name, render(template, campaign, sections, files, outcome.synthetic))
    return target / "index.html"
