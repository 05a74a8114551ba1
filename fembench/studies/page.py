"""The page of a reproduction: every section, as one HTML and one Markdown page, CSV and SVG beside them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

import fembench.report
from fembench.base.config import read_json
from fembench.base.files import write_atomic
from fembench.records.record import Failure, Record
from fembench.records.store import failures
from fembench.report import exports, table
from fembench.report.fields import fields_path, read_fields
from fembench.report.page import MARK, MOST_ROWS, CampaignResults, Section
from fembench.report.plots import body
from fembench.report.plots.canvas import Plot
from fembench.report.results import results
from fembench.report.runs import overview, reasons, rules
from fembench.report.table import Table
from fembench.studies.experiments import report_name, wanted
from fembench.studies.thesis_004 import overview as first
from fembench.studies.thesis_004 import pair_tables, phase_tables, storage_tables, weighted_tables
from fembench.studies.thesis_004.findings import findings
from fembench.studies.thesis_004.measure import StudyFolder
from fembench.studies.thesis_004.phase_means import StudyRecords
from fembench.studies.thesis_004.plan import CAMPAIGNS, StudyPlan
from fembench.studies.thesis_004.slips import slips

TITLE = "Reproduction of thesis 004"


def build(study: StudyFolder, timers: dict[str, Any], only: Sequence[str] = ()) -> Path:
    """Write the report into the study's folder, of these experiments (all); returns index.html."""
    found = StudyRecords(study.records)
    sections = compose(study, found, timers, only)
    target = study.path / report_name(only)
    for section in sections:
        for made in section.tables:
            write_atomic(target / "tables" / f"{made.name}.csv", table.to_csv(made))
        for plot in section.plots:
            write_atomic(target / "plots" / f"{plot.name}.svg", plot.svg)
    records = [r for group in study.records.values() for r in group]
    _exports(study, records, target / "exports")
    label = study.plan.machines.label
    ways = [label] if label else sorted({r.environment.synthetic for r in records} - {""})
    campaign = CampaignResults(TITLE, records, _failures(study), {}, "")
    files = sorted(str(p.relative_to(target)) for p in (target / "exports").iterdir())
    write_atomic(target / "report.md", render("report.md.j2", campaign, sections, files, ways))
    write_atomic(target / "index.html", render("page.html.j2", campaign, sections, files, ways))
    return target / "index.html"


def publish(
    folder: Path, title: str, sections: Sequence[Section], ways: Sequence[str], only: Sequence[str] = ()
) -> Path:
    """Write a report of sections that stand for themselves, with CSV and SVG; returns index.html.

    `ways`: in which respects times were made up; `only`: the experiments that were asked for, () for all.
    """
    target = folder / report_name(only)
    shown = [s for s in sections if s.plots or any(t.rows for t in s.tables)]
    for section in shown:
        for made in section.tables:
            write_atomic(target / "tables" / f"{made.name}.csv", table.to_csv(made))
        for plot in section.plots:
            write_atomic(target / "plots" / f"{plot.name}.svg", plot.svg)
    campaign = CampaignResults(title, [], [], {}, "")
    for template, name in (("report.md.j2", "report.md"), ("page.html.j2", "index.html")):
        write_atomic(target / name, render(template, campaign, shown, [], ways))
    return target / "index.html"


def compose(
    study: StudyFolder, found: StudyRecords, timers: dict[str, Any], only: Sequence[str] = ()
) -> list[Section]:
    """The sections of these experiments (all); one without either plot or table is left out."""
    plan = study.plan
    records = [r for group in study.records.values() for r in group]
    made: dict[str, Callable[[], Section]] = {
        "": lambda: findings(plan, found, note(plan, found), only),
        "E0": lambda: first.hosts(plan.machines, records),
        "E1": lambda: first.timers(timers),
        "E2": lambda: first.meshes(plan, found, _bodies(study, found)[1]),
        "E3": lambda: phase_tables.separate_hosts(plan, found),
        "E4": lambda: phase_tables.one_host(plan, found),
        "E5": lambda: first.time_lines(plan, found),
        "E6": lambda: first.iterations(plan, found),
        "E7": lambda: phase_tables.communication(plan, found),
        "E8": lambda: phase_tables.send_receive(plan, found),
        "E9": lambda: pair_tables.totals(plan, found),
        "E10": lambda: pair_tables.together(plan, found),
        "E11": lambda: pair_tables.pairs(plan, found),
        "E12": lambda: storage_tables.parts(plan, found, _bodies(study, found)[0]),
        "E13": lambda: weighted_tables.weighted(plan, found),
        "E14": lambda: storage_tables.storage(plan, found),
    }
    sections = [make() for name, make in made.items() if not name or wanted(name, only)]
    sections += [] if only else [slips()]
    sections.append(Section("Every run", [], _runs(records)))
    return [s for s in sections if s.plots or s.tables]


def note(plan: StudyPlan, found: StudyRecords) -> str:
    """How it was measured, in a few sentences."""
    m, effort = plan.machines, plan.effort
    words = []
    if m.emulated:
        words.append(
            "SYNTHETIC: E3, E7, E9, E10, E11, E13 and the right half of E14 ran on emulated hosts: one "
            f"slow host has one processor of speed {m.slow[0].speed:.3g}, a fast one two of speed 1, all "
            f"dilated {m.dilate:g} times. Tasks on one host share its processors evenly; messages are "
            "those of this machine and are not slowed. A lab with CPU quotas cannot hold these meshes: "
            "an iteration is shorter than two quota periods."
        )
    place = "here" if m.emulated else f"of {m.fast[0].name}"
    words.append(
        f"E4, E5, E8, the parts of E12 and the left half of E14 ran on one and two real cores {place}; "
        "waiting tasks yield the processor."
    )
    if not m.emulated:
        words.append(
            f"E2 and E6 ran on {m.fast[0].name} too. Tasks are confined to the first cores of their host, as "
            "many as the table of E0 lists: one each, or all of them where tasks outnumber cores. E1 was "
            "measured on the machine that launches."
        )
    if any(effort.iterations.values()):
        timed = ", ".join(
            f"{mesh} {k} of {found.iterations.get(mesh, 0)}" for mesh, k in effort.iterations.items()
        )
        words.append(
            f"Quick: fewer iterations were timed on these hosts ({timed}; csr all) and CG "
            "scaled up to all; every iteration costs the same. Few sets: a difference of some per cent "
            "means nothing."
        )
    return " ".join(words)


def _bodies(study: StudyFolder, found: StudyRecords) -> tuple[list[Plot], list[Plot]]:
    """Pictures of the parts, and of the deformed body."""
    record = found.record(study.plan.sparse("m3", 8, fields=True))
    path = fields_path(study.path / "sparse", record.id) if record else None
    if path is None or not path.is_file():
        return [], []
    fields = read_fields(path)
    return [body.parts_picture(fields, "Mesh 3 (Fig. 4.7)")], [
        body.deformed_picture(fields, "Mesh 3 (Figs 5.7, 5.8)")
    ]


def _runs(records: Sequence[Record]) -> list[Table]:
    pooled = results(records)
    return [overview(pooled), reasons(pooled), rules(records)]


def _failures(study: StudyFolder) -> list[Failure]:
    return [f for where in CAMPAIGNS for f in failures(study.path / where)]


def _exports(study: StudyFolder, records: Sequence[Record], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    exports.write_everything(records, folder / "everything.csv")
    for record in records:
        exports.write_time_line(record, folder)
        path = fields_path(study.path / "sparse", record.id)
        if path.is_file():
            exports.write_vtu(read_fields(path), folder / f"{record.id}.vtu")


def render(
    template: str,
    campaign: CampaignResults,
    sections: Sequence[Section],
    files: Sequence[str],
    ways: Sequence[str],
) -> str:
    """The templates of every report."""
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


def load_timers(path: Path) -> dict[str, Any]:
    """What fembench timers --json printed. Raises InputError."""
    return read_json(path, dict[str, Any])
