"""Mendes (2004) repeated: HLogP with rings, fork and join, and schedules of task graphs."""

from collections.abc import Sequence

from fembench.errors import RunFailedError
from fembench.records.network import Network
from fembench.records.profile import Profile
from fembench.report.page import Section
from fembench_studies.attempts import Attempts
from fembench_studies.claims import StudyClaim
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.study import StudyOutcome, StudyRequest, wanted
from fembench_studies.thesis_001 import grid_live, grid_messages, grid_real, grid_tables
from fembench_studies.thesis_001.grid_live import GridBench, GridRun
from fembench_studies.thesis_001.grid_messages import (
    loaded_table,
    message_plot,
    message_table,
    slowness_table,
    waiting_table,
)
from fembench_studies.thesis_001.grid_plan import GRAPHS
from fembench_studies.thesis_001.grid_real import RealRun, real_table
from fembench_studies.thesis_001.grid_tables import (
    delay_table,
    ring_plot,
    ring_table,
    schedule_plot,
    schedule_table,
)

REAL = ("ring", "fork", "join")


def compose(
    found: Sequence[GridRun], real: Sequence[RealRun], network: Network | None, only: Sequence[str] = ()
) -> list[Section]:
    """The sections of the page; `only`: those of these experiments, () means all."""
    sections = []
    if real:
        sections.append(Section("Rings, fork and join", [], [real_table(real)]))
    if any(r.kind in GRAPHS for r in found):
        sections.append(Section("Schedules", [schedule_plot(found)], [schedule_table(found)]))
    if network and wanted("messages", only):
        plots = [message_plot(network)] if network.samples else []
        sections.append(Section("Messages", plots, [message_table(network), waiting_table(network)]))
    if wanted("slowness", only):
        sections.append(Section("Slowness of loaded hosts", [], [slowness_table(), loaded_table()]))
    if any(r.kind == "ring" for r in found):
        held = [ring_table(found), delay_table(found)]
        sections.append(Section("Check of the executor", [ring_plot(found)], held))
    return sections


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome | None:
    """The study: real messages here, then applications on emulated hosts. Raises InputError."""
    effort = grid_live.QUICK if request.quick else grid_live.FULL
    runs = ProgramRuns(request.folder / "runs", request.only_kept)
    profile, real = _real_messages(request, runs, effort.real_repetitions, attempts)
    found = grid_live.measure(GridBench(runs, effort, request.cores), attempts, request.only)
    if not (found or real or profile or "slowness" in request.only):
        return None
    messages = grid_messages.claims(profile) if profile and wanted("messages", request.only) else []
    return outcome(found, real, profile.network if profile else None, request.only, messages)


def _real_messages(
    request: StudyRequest, runs: ProgramRuns, repetitions: int, attempts: Attempts
) -> tuple[Profile | None, list[RealRun]]:
    """The profile of the network here and the runs predicted from it, if an experiment needs them."""
    if request.only and not {*REAL, "messages"} & set(request.only):
        return None, []
    try:
        profile = grid_messages.measure_network(
            request.folder, request.cores, attempts.tell, only_kept=request.only_kept
        )
    except RunFailedError as error:
        attempts.fail(str(error))
        return None, []
    if profile is None:
        return None, []
    return profile, grid_real.measure(runs, profile, attempts, repetitions, request.only)


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
        claims=[*messages, *grid_real.claims(real), *grid_tables.claims(found)],
        valid=all(one.record.error <= 1 for one in found),
        synthetic=list(dict.fromkeys(r.record.environment.synthetic for r in found)),
    )
