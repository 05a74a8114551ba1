"""Calzeta and de Souza (2008) repeated: simulated execution
graphs of two small programs.

Tables 4.1 to 4.5 and the figures have our numbers and the printed ones.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fembench.model.graph import Receive, Send
from fembench.model.measures import makespan_error, mean_error, process_error
from fembench.report.page import Section
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies.attempts import Attempts
from fembench_studies.binaries.executable import Executable
from fembench_studies.binaries.given import COSTS, Given, Loops
from fembench_studies.binaries.static import walks
from fembench_studies.charts import Panel
from fembench_studies.claims import StudyClaim, error_claim, ratio_claim
from fembench_studies.declared import captions
from fembench_studies.layout import source_table
from fembench_studies.programs.cases import other_speed
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import unfit
from fembench_studies.study import StudyOutcome, StudyRequest
from fembench_studies.thesis_003 import slaves_live
from fembench_studies.thesis_003.slaves_live import INTEGRAL, PRODUCT, SIMULATIONS, Floats, SlavesRun

printed = functools.partial(source_table, "thesis_003")
TABLES = {(INTEGRAL, 8): "4.1", (PRODUCT, 2): "4.3", (PRODUCT, 4): "4.4", (PRODUCT, 8): "4.5"}
WAYS = ("graph", "drawn loops")
EACH = "single processes"
LIMITS = {"mean": 5.0, "makespan": 10.0, EACH: 15.0}  # per cent; see `claims`
TEXTS = captions("thesis_003")


def thesis_times(live: SlavesRun) -> tuple[list[float], list[float]]:
    """([process] simulated, real) seconds as printed; empty if
    the thesis has no such run."""
    number = TABLES.get((live.record.case.program, live.record.case.ranks))
    if number is None:
        return [], []
    rows = [r for r in printed(f"table_{number.replace('.', '_')}") if r["process"].isdigit()]
    return [float(r["simulated_s"]) for r in rows], [float(r["real_s"]) for r in rows]


def errors(real: Sequence[float] | Floats, simulated: Sequence[float] | Floats) -> list[float]:
    """Errors in per cent: of the mean over processes (the thesis' measure), of
    the makespan, per process."""
    pair = list(real), list(simulated)
    return [mean_error(*pair), makespan_error(*pair), process_error(*pair)]


def claims(found: Sequence[SlavesRun]) -> list[StudyClaim]:
    """The execution graph is closer than the source: there, errors of the mean were 3
    to 8 %, of the makespan 4 to 52 %, and of single processes 17 to 75 %; and closer
    than a single simulation with random loops."""
    made = []
    for live in found:
        wrong = {what: _untested(live, limit) for what, limit in LIMITS.items()}
        real = live.repetitions
        means = [float(np.mean(one)) for one in real]
        ends = [float(np.max(one)) for one in real]
        each = [process_error(one.tolist(), live.graph.tolist()) for one in real]
        single = np.mean([errors(live.real, one)[2] for one in live.drawn])
        made += [
            _of_time(live, "mean", float(live.graph.mean()), means, wrong),
            _of_time(live, "makespan", float(live.graph.max()), ends, wrong),
            error_claim(f"{live.name}: {EACH}", LIMITS[EACH], each, wrong[EACH]),
        ]
        if live.record.case.ranks > 2:  # the loop of a single slave is not random
            what = f"{live.name}: less than with drawn loops"
            made.append(error_claim(what, float(single), each, wrong[EACH]))
    return made


def _of_time(
    live: SlavesRun, what: str, graph: float, real: Sequence[float], wrong: Mapping[str, str]
) -> StudyClaim:
    """A claim on the time that the execution graph predicts."""
    return ratio_claim(f"{live.name}: {what}", LIMITS[what], graph, real, wrong[what])


def _untested(live: SlavesRun, limit: float) -> str:
    """Why a run does not test its simulation to within `limit` per cent; "" if it does."""
    return unfit(live.record) or other_speed(live.record, live.calibration, limit / 100, middle=True)


def error_table(found: Sequence[SlavesRun]) -> Table:
    """Errors of both predictions, and of the thesis."""
    rows = []
    for live in found:
        simulated, real = thesis_times(live)
        theirs = errors(real, simulated) if real else [np.nan] * 3
        drawn = [errors(live.real, one) for one in live.drawn]
        rows.append(((f"{live.name}: {WAYS[0]}",), errors(live.real, live.graph), [np.nan] * 3))
        rows.append(((f"{live.name}: {WAYS[1]}",), errors(live.real, live.drawn.mean(axis=0)), theirs))
        rows.append(((f"{live.name}: a single draw",), list(np.abs(drawn).mean(axis=0)), [np.nan] * 3))
    return TEXTS.beside("errors", rows, simulations=SIMULATIONS)


def process_table(live: SlavesRun) -> Table:
    """Table 4.1, 4.3, 4.4 or 4.5."""
    number = TABLES.get((live.record.case.program, live.record.case.ranks))
    simulated, real = thesis_times(live)
    blank = [np.nan] * len(live.real)
    series = [live.real, live.graph, live.drawn.mean(axis=0), real or blank, simulated or blank]
    rows = [(str(p), *(float(s[p]) for s in series)) for p in range(len(live.real))]
    rows.append(("mean", *(float(np.mean(s)) for s in series)))
    case, name = live.record.case, live.name
    title = f"{name[0].upper()}{name[1:]}" + (f" (Table {number})" if number else "")
    key = "times_{program}_{processes}"
    return TEXTS.table(key, rows, program=case.program, processes=case.ranks, title=title)


def messages_table(found: Sequence[SlavesRun]) -> Table:
    """Table 4.2: messages, each sent and received once."""
    theirs = {int(r["processes"]): (int(r["sends"]), int(r["receives"])) for r in printed("table_4_2")}
    rows = []
    for live in (x for x in found if x.record.case.program == PRODUCT):
        p = live.record.case.ranks
        answered = 2.0 * float(np.median(np.array(live.record.done)[1:].sum(axis=0)))
        sends, receives = theirs.get(p, (np.nan, np.nan))
        rows.append((p, answered, float(sum(live.messages)), *executable_messages(p), sends, receives))
    return TEXTS.table("messages", rows)


@functools.cache
def executable_messages(processes: int) -> tuple[int, int]:
    """(sends, receives) of the program in appendix B, which is read but not run."""
    text = (Path(__file__).parent / "data" / "integral.objdump").read_text(encoding="utf-8")
    program = Executable(text, dict.fromkeys(COSTS, 1e-9))
    draw = walks(program, processes, Given(loop=Loops(10.0, 20), bytes=8), 1)
    events = [message.event for walk in draw for message in walk.messages]
    return sum(isinstance(e, Send) for e in events), sum(isinstance(e, Receive) for e in events)


def speedup_table(found: Sequence[SlavesRun]) -> Table:
    """Speedup of the matrix product over two processes."""
    by_size = {x.record.case.ranks: x for x in found if x.record.case.program == PRODUCT}
    theirs = {int(r["processes"]): r for r in printed("speedups")}
    base = by_size.get(2)
    rows = []
    for p, live in sorted(by_size.items()):
        if base is None or p == 2:
            continue
        mine = [
            f(getattr(base, s)) / f(getattr(live, s)) for f in (np.max, np.mean) for s in ("real", "graph")
        ]
        their = theirs.get(p, {})
        names = ("real_makespan", "simulated_makespan", "real_mean", "simulated_mean")
        rows.append(((p,), [float(m) for m in mine], [float(their.get(n, np.nan)) for n in names]))
    return TEXTS.beside("speedups", rows)


def times_plot(found: Sequence[SlavesRun]) -> Plot:
    """Figures 4.5 and 4.6: time per process."""
    panels = []
    for live in found:
        names = [str(p) for p in range(len(live.real))]
        mine = {"real": live.real, "graph": live.graph, "drawn loops": live.drawn.mean(axis=0)}
        panels.append(Panel(live.name, names, {k: v.tolist() for k, v in mine.items()}, "s", "process"))
        simulated, real = thesis_times(live)
        if real:
            blank = [np.nan] * len(real)
            series = {"real": real, "graph": blank, "drawn loops": simulated}
            panels.append(Panel(f"{live.name}, thesis", names, series, "s", "process"))
    return TEXTS.figure("times", panels)


def loops_plot(found: Sequence[SlavesRun]) -> Plot:
    """Figures 4.2 and 4.4: iterations of the slaves' loop."""
    panels = []
    for live in found:
        p = live.record.case.ranks
        due = [0.0, *([1.0 / (p - 1)] * (p - 1))]
        series = {"drawn": (100 * live.turns).tolist(), "done": (100 * np.array(due)).tolist()}
        panels.append(Panel(live.name, [str(r) for r in range(p)], series, "% of all iterations", "process"))
    return TEXTS.figure("loops", panels)


def compose(found: Sequence[SlavesRun]) -> list[Section]:
    """All sections of the page."""
    return [
        Section("Findings", [], [error_table(found)]),
        Section("Times", [times_plot(found)], [process_table(live) for live in found]),
        Section("Messages", [], [messages_table(found)]),
        Section("Speed-up", [], [speedup_table(found)]),
        Section("Loops", [loops_plot(found)], []),
    ]


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome | None:
    """The study: both programs on emulated machines. Raises InputError."""
    effort = slaves_live.QUICK if request.quick else slaves_live.FULL
    runs = ProgramRuns(request.folder / "runs", request.only_kept)
    found = slaves_live.measure(runs, effort, request.cores, attempts, request.only)
    return outcome(found) if found else None


def outcome(found: Sequence[SlavesRun]) -> StudyOutcome:
    """The runs, ready for the page."""
    return StudyOutcome(
        sections=compose(found),
        findings=[error_table(found), messages_table(found)],
        claims=claims(found),
        synthetic=list(dict.fromkeys(one.record.environment.synthetic for one in found)),
    )
