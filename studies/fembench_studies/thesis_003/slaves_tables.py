"""Tables 4.1 to 4.5 and the figures of Calzeta and de Souza (2008): our numbers and the printed ones."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fembench.model.graph import Receive, Send
from fembench.model.measures import makespan_error, mean_error, process_error
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies import charts
from fembench_studies.binaries.blocks import COSTS
from fembench_studies.binaries.executable import Executable
from fembench_studies.binaries.given import Given, Loops
from fembench_studies.binaries.static import walks
from fembench_studies.charts import Panel
from fembench_studies.claims import StudyClaim, error_claim, ratio_claim
from fembench_studies.layout import beside, columns, source_table
from fembench_studies.programs.record import unfit
from fembench_studies.thesis_003.slaves_live import INTEGRAL, PRODUCT, SIMULATIONS, Floats, SlavesRun

printed = functools.partial(source_table, "thesis_003")
TABLES = {(INTEGRAL, 8): "4.1", (PRODUCT, 2): "4.3", (PRODUCT, 4): "4.4", (PRODUCT, 8): "4.5"}
WAYS = ("graph", "drawn loops")
LIMITS = {"mean": 5.0, "makespan": 10.0, "single processes": 15.0}  # per cent; see `claims`
ERRORS = ("mean_error_percent", "makespan_error_percent", "process_error_percent")


def thesis_times(live: SlavesRun) -> tuple[list[float], list[float]]:
    """([process] simulated, real) seconds as printed; empty if the thesis has no such run."""
    number = TABLES.get((live.record.case.program, live.record.case.ranks))
    if number is None:
        return [], []
    rows = [r for r in printed(f"table_{number.replace('.', '_')}") if r["process"].isdigit()]
    return [float(r["simulated_s"]) for r in rows], [float(r["real_s"]) for r in rows]


def errors(real: Sequence[float] | Floats, simulated: Sequence[float] | Floats) -> list[float]:
    """Errors in per cent: of the mean over processes (the thesis' measure), of the makespan, per process."""
    pair = list(real), list(simulated)
    return [mean_error(*pair), makespan_error(*pair), process_error(*pair)]


def claims(found: Sequence[SlavesRun]) -> list[StudyClaim]:
    """The execution graph is closer than the source: there, errors of the mean were 3 to 8 %, of the makespan
    4 to 52 %, and of single processes 17 to 75 %; and closer than a single simulation with random loops."""
    made = []
    for live in found:
        wrong = unfit(live.record)
        real = live.repetitions
        means = [float(np.mean(one)) for one in real]
        ends = [float(np.max(one)) for one in real]
        each = [process_error(one.tolist(), live.graph.tolist()) for one in real]
        single = np.mean([errors(live.real, one)[2] for one in live.drawn])
        made += [
            ratio_claim(f"{live.name}: mean", LIMITS["mean"], float(live.graph.mean()), means, wrong),
            ratio_claim(f"{live.name}: makespan", LIMITS["makespan"], float(live.graph.max()), ends, wrong),
            error_claim(f"{live.name}: single processes", LIMITS["single processes"], each, wrong),
        ]
        if live.record.case.ranks > 2:  # the loop of a single slave is not random
            made.append(error_claim(f"{live.name}: less than with drawn loops", float(single), each, wrong))
    return made


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
    return beside(
        "errors",
        "Errors of the simulations (4.1, 4.2)",
        "SYNTHETIC: our processes are equal and emulated. Errors are in per cent of the measured time. The "
        "thesis gives the error of the mean over processes, in which errors of single processes cancel: "
        "about 5 and 4 in its text; the values here follow from its tables. 'graph' is the execution graph "
        f"with the true iterations of loops; 'drawn loops' averages {SIMULATIONS} simulations with random "
        "iterations, as the thesis does; 'a single draw' is the mean |error| of one of them. Our costs come "
        "from a calibration with eight processes, those of the thesis from a table of cycles.",
        ("platform",),
        ERRORS,
        rows,
    )


def process_table(live: SlavesRun) -> Table:
    """Table 4.1, 4.3, 4.4 or 4.5."""
    number = TABLES.get((live.record.case.program, live.record.case.ranks))
    simulated, real = thesis_times(live)
    blank = [np.nan] * len(live.real)
    series = [live.real, live.graph, live.drawn.mean(axis=0), real or blank, simulated or blank]
    rows = [(str(p), *(float(s[p]) for s in series)) for p in range(len(live.real))]
    rows.append(("mean", *(float(np.mean(s)) for s in series)))
    heads = columns("process words; real_s; graph_s; drawn_s; thesis_real_s; thesis_simulated_s")
    title = f"{live.name[0].upper()}{live.name[1:]}" + (f" (Table {number})" if number else "")
    return Table(
        f"times_{live.record.case.program}_{live.record.case.ranks}",
        title,
        "SYNTHETIC: our seconds are dilated. Process 0 is the master, timed until the last answer; the times "
        "of slaves are computing times.",
        heads,
        tuple(rows),
    )


def messages_table(found: Sequence[SlavesRun]) -> Table:
    """Table 4.2: messages, each sent and received once."""
    theirs = {int(r["processes"]): (int(r["sends"]), int(r["receives"])) for r in printed("table_4_2")}
    rows = []
    for live in (x for x in found if x.record.case.program == PRODUCT):
        p = live.record.case.ranks
        answered = 2.0 * float(np.median(np.array(live.record.done)[1:].sum(axis=0)))
        sends, receives = theirs.get(p, (np.nan, np.nan))
        rows.append((p, answered, float(sum(live.messages)), *executable_messages(p), sends, receives))
    heads = columns(
        "processes count; run count; graph count; executable_sends count sends, executable; "
        "executable_receives count receives, executable; thesis_sends count; thesis_receives count"
    )
    return Table(
        "messages",
        "Messages (Table 4.2)",
        "Run: tasks and answers sent by the matrix product (without the messages that end the slaves). "
        "Executable: messages on the walks of that many processes through the disassembly of the program in "
        "appendix B of the thesis.",
        heads,
        tuple(rows),
    )


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
    return beside(
        "speedups",
        "Speedup over two processes, matrix product",
        "Of the makespan, and of the mean over processes. The speedup cannot exceed the number of slaves: "
        "three on four processes, seven on eight.",
        ("processes",),
        ("real_makespan", "simulated_makespan", "real_mean", "simulated_mean"),
        rows,
    )


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
    return charts.grouped(
        "times",
        "Time of each process (Tables 4.1, 4.3 to 4.5, Figs 4.5, 4.6)",
        "Left: here; right: the thesis, which simulates with random loops. Process 0 is the master.",
        panels,
        columns=2,
        height=2.7,
    )


def loops_plot(found: Sequence[SlavesRun]) -> Plot:
    """Figures 4.2 and 4.4: iterations of the slaves' loop."""
    panels = []
    for live in found:
        p = live.record.case.ranks
        due = [0.0, *([1.0 / (p - 1)] * (p - 1))]
        series = {"drawn": (100 * live.turns).tolist(), "done": (100 * np.array(due)).tolist()}
        panels.append(Panel(live.name, [str(r) for r in range(p)], series, "% of all iterations", "process"))
    return charts.grouped(
        "loops",
        "Iterations of the slaves' loop (Figs 4.2, 4.4)",
        "Drawn: one simulation with random loops, as in the thesis. Done: the iterations of the program. "
        "Loops with messages are never random.",
        panels,
        columns=4,
        height=2.6,
    )
