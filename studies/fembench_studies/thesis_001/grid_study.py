"""Mendes (2004) repeated: HLogP with rings, fork and join,
and schedules of task graphs."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from fembench.errors import RunFailedError
from fembench.records.network import Network
from fembench.records.profile import Profile
from fembench.report.page import Section
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies.attempts import Attempts, ProgramEffort
from fembench_studies.charts import Panel
from fembench_studies.claims import StudyClaim, error_claim, ratio_claim
from fembench_studies.declared import captions
from fembench_studies.programs.cases import other_speed
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.real_messages import error_percent
from fembench_studies.programs.record import unfit
from fembench_studies.study import StudyOutcome, StudyRequest, wanted
from fembench_studies.thesis_001 import grid_live, grid_messages, grid_real
from fembench_studies.thesis_001.grid_live import GridBench, GridRun
from fembench_studies.thesis_001.grid_messages import (
    loaded_table,
    message_plot,
    message_table,
    slowness_table,
    waiting_table,
)
from fembench_studies.thesis_001.grid_plan import GRAPHS
from fembench_studies.thesis_001.grid_plan import thesis_schedule as theirs_of
from fembench_studies.thesis_001.grid_real import RealRun, real_table

HLOGP_LIMIT = 10.0  # per cent: error of makespans
HLOGP, LATENCY = "HEFT, HLogP", "HEFT, latency"  # of METHODS
TEXTS = captions("thesis_001")
REAL = ("ring", "fork", "join")


def claims(found: Sequence[GridRun]) -> list[StudyClaim]:
    """HLogP predicts the makespans of its own schedules, and
    better than the latency model."""
    made = []
    for run in (r for r in found if r.name == HLOGP):
        name, seconds, wrong = f"HLogP, {run.graph}", run.record.seconds, _untested(run, HLOGP_LIMIT)
        made.append(ratio_claim(f"{name}: {run.name}", HLOGP_LIMIT, run.promised, seconds, wrong))
        other = next((r for r in found if r.graph == run.graph and r.name == LATENCY), None)
        if other:
            limit = abs(error_percent(other.measured, other.expected))
            wrong = _untested(run, limit) or _untested(other, limit)
            each = [abs(100 * (run.promised / took - 1)) for took in seconds]
            made.append(error_claim(f"{name}: less than the latency model", limit, each, wrong))
    return made


def _untested(run: GridRun, limit: float) -> str:
    """Why a run does not test its prediction to within `limit` per cent; "" if it does."""
    return unfit(run.record) or other_speed(run.record, run.calibration, limit / 100, middle=True)


def schedule_table(found: Sequence[GridRun]) -> Table:
    """Predicted and executed makespans (6.2, 7)."""
    rows = []
    for run in found:
        pairs = [run.expected, run.measured], list(theirs_of(run.graph, run.name))
        mine, theirs = ([*pair, error_percent(pair[1], pair[0])] for pair in pairs)
        rows.append(((f"{run.graph}: {run.name}",), mine, theirs))
    return TEXTS.beside("schedules", rows)


def schedule_plot(found: Sequence[GridRun]) -> Plot:
    """Predicted and executed makespans, here and in the thesis."""
    panels = []
    for graph in GRAPHS:
        mine = [r for r in found if r.graph == graph]
        if not mine:
            continue
        names = [r.name for r in mine]
        ours = [(r.expected, r.measured) for r in mine]
        theirs = [theirs_of(graph, name) for name in names]
        for who, pairs in (("here", ours), ("thesis", theirs)):
            predicted, executed = np.array(pairs).T.tolist()
            series = {"predicted": predicted, "executed": executed}
            panels.append(Panel(f"{graph}, {who}", names, series, "s", "method"))
    return TEXTS.figure("schedules", panels)


def compose(
    found: Sequence[GridRun], real: Sequence[RealRun], network: Network | None, only: Sequence[str] = ()
) -> list[Section]:
    """The sections of the page; `only`: those of these experiments, () means all."""
    sections = []
    if real:
        sections.append(Section("Rings, fork and join", [], [real_table(real)]))
    if found:
        sections.append(Section("Schedules", [schedule_plot(found)], [schedule_table(found)]))
    if network and wanted("messages", only):
        plots = [message_plot(network)] if network.samples else []
        sections.append(Section("Messages", plots, [message_table(network), waiting_table(network)]))
    if wanted("slowness", only):
        sections.append(Section("Slowness of loaded hosts", [], [slowness_table(), loaded_table()]))
    return sections


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome | None:
    """The study: real messages here, then schedules on
    emulated hosts. Raises InputError."""
    effort = grid_live.QUICK if request.quick else grid_live.FULL
    runs = ProgramRuns(request.folder / "runs", request.only_kept)
    profile, real = _real_messages(request, runs, effort, attempts)
    found = grid_live.measure(GridBench(runs, effort, request.cores), attempts, request.only)
    if not (found or real or profile or "slowness" in request.only):
        return None
    messages = grid_messages.claims(profile) if profile and wanted("messages", request.only) else []
    return outcome(found, real, profile.network if profile else None, request.only, messages)


def _real_messages(
    request: StudyRequest, runs: ProgramRuns, effort: ProgramEffort, attempts: Attempts
) -> tuple[Profile | None, list[RealRun]]:
    """The first profile of the network here and the runs predicted, if an experiment needs them."""
    if request.only and not {*REAL, "messages"} & set(request.only):
        return None, []
    networks = _networks(request, effort.passes, attempts)
    profile = next(networks, None)
    if profile is None:
        return None, []
    passes = itertools.chain([profile], networks)
    return profile, grid_real.measure(runs, passes, attempts, effort, request.only)


def _networks(request: StudyRequest, passes: int, attempts: Attempts) -> Iterator[Profile]:
    """The profile of the network here: one for every pass, measured as it begins."""
    for number in range(1, passes + 1):
        try:
            profile = grid_messages.measure_network(
                request.folder, request.cores, attempts.tell, number, only_kept=request.only_kept
            )
        except RunFailedError as error:
            attempts.fail(str(error))
            return
        if profile is None:
            return
        yield profile


def outcome(
    found: Sequence[GridRun],
    real: Sequence[RealRun],
    network: Network | None,
    only: Sequence[str] = (),
    messages: Sequence[StudyClaim] = (),
) -> StudyOutcome:
    """The results, ready for the page. `messages`: claims of the network."""
    sections = compose(found, real, network, only)
    return StudyOutcome(
        sections=sections,
        findings=[t for s in sections if s.title != "Messages" for t in s.tables],
        claims=[*messages, *grid_real.claims(real), *claims(found)],
        valid=all(one.record.error <= 1 for one in found),
        synthetic=list(dict.fromkeys(r.record.environment.synthetic for r in found)),
    )
