"""The sections of the page: findings, E0 to E14, slips in the printed tables, every run."""

from collections.abc import Callable, Sequence
from typing import Any

from fembench.records.record import Record
from fembench.report.exports import fields_path, read_fields
from fembench.report.page import Section
from fembench.report.plots import body
from fembench.report.plots.canvas import Plot
from fembench.report.results import results
from fembench.report.runs import overview as overview_table
from fembench.report.runs import reasons, rules
from fembench.report.table import Table
from fembench_studies.study import wanted
from fembench_studies.thesis_004 import overview, pair_tables, phase_tables, storage_tables, weighted_tables
from fembench_studies.thesis_004.findings import findings
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import StudyPlan
from fembench_studies.thesis_004.slips import slips

EVERY_RUN = "Every run"


def compose(
    study: StudyFolder, found: StudyRecords, timers: dict[str, Any], only: Sequence[str] = ()
) -> list[Section]:
    """The sections of the experiments in `only`, () means all; empty ones are left out."""
    plan = study.plan
    records = [r for group in study.records.values() for r in group]
    made: dict[str, Callable[[], Section]] = {
        "": lambda: findings(plan, found, note(plan, found), only),
        "E0": lambda: overview.hosts(plan.machines, records),
        "E1": lambda: overview.timers(timers),
        "E2": lambda: overview.meshes(plan, found, _bodies(study, found)[1]),
        "E3": lambda: phase_tables.separate_hosts(plan, found),
        "E4": lambda: phase_tables.one_host(plan, found),
        "E5": lambda: overview.time_lines(plan, found),
        "E6": lambda: overview.iterations(plan, found),
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
    sections.append(Section(EVERY_RUN, [], _runs(records)))
    return [s for s in sections if s.plots or s.tables]


def note(plan: StudyPlan, found: StudyRecords) -> str:
    """The conditions of the measurements, in a few sentences."""
    m, effort = plan.machines, plan.effort
    words = []
    if m.emulated:
        words.append(
            "SYNTHETIC: E3, E7, E9, E10, E11, E13 and the right half of E14 ran on emulated hosts: a slow "
            f"host has one processor of speed {m.slow[0].speed:.3g}, a fast one two of speed 1, all "
            f"dilated {m.dilate:g} times. Tasks on one host share its processors evenly. Messages are "
            "those of this machine, at full speed. CPU quotas cannot emulate such hosts for these meshes: "
            "an iteration is shorter than two quota periods."
        )
    place = "here" if m.emulated else f"of {m.fast[0].name}"
    words.append(
        f"E4, E5, E8, the parts of E12 and the left half of E14 ran on one and two real cores {place}; "
        "waiting tasks yield the processor."
    )
    if not m.emulated:
        words.append(
            f"E2 and E6 ran on {m.fast[0].name}, too. Tasks are confined to the first cores of their host, "
            "as many as the table of E0 lists: one each, or all of them if tasks outnumber cores. E1 was "
            "measured on the launching machine."
        )
    if any(effort.iterations.values()):
        timed = ", ".join(
            f"{mesh} {k} of {found.iterations.get(mesh, 0)}" for mesh, k in effort.iterations.items()
        )
        words.append(
            f"Quick: on these hosts fewer iterations were timed ({timed}; csr: all) and the time of CG was "
            "scaled up; all iterations cost the same. With few sets, differences of some per cent mean "
            "nothing."
        )
    return " ".join(words)


def _bodies(study: StudyFolder, found: StudyRecords) -> tuple[list[Plot], list[Plot]]:
    """Pictures of the parts and of the deformed body; [] if there is no record."""
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
    return [overview_table(pooled), reasons(pooled), rules(records)]
