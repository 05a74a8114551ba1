"""Calzeta and de Souza (2008) repeated: simulated execution graphs of two small programs."""

from collections.abc import Sequence

from fembench.report.page import Section
from fembench_studies.attempts import Attempts
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.study import Study, StudyExperiment, StudyOutcome, StudyRequest
from fembench_studies.thesis_003 import slaves_live
from fembench_studies.thesis_003.slaves_live import SlavesRun
from fembench_studies.thesis_003.slaves_tables import (
    claims,
    error_table,
    loops_plot,
    messages_table,
    process_table,
    speedup_table,
    times_plot,
)

EXPERIMENTS = (
    StudyExperiment(
        "integral",
        "an integral on eight processes, simulated and run (Table 4.1)",
        "the error of the mean hides the errors of single processes",
    ),
    StudyExperiment(
        "product",
        "a matrix product on 2, 4 and 8 processes, simulated and run (Tables 4.2 to 4.5)",
        "messages per process, and the speedup over two processes",
    ),
)


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


STUDY = Study(
    name="thesis-003",
    title="Calzeta and de Souza (2008) measured again",
    source=(
        "E. P. Calzeta and T. A. D. de Souza, simulation of the execution graph (Sao Jose do Rio Preto, 2008)"
    ),
    did=(
        "The binary of a program was disassembled into blocks, each with its cycles. The iterations of loops "
        "without messages were drawn from an exponential distribution. The mean of five simulations was "
        "compared with runs on up to eight processes."
    ),
    again=(
        "An integral and a matrix product run on equal emulated machines (SYNTHETIC). Each run is predicted "
        "twice from one calibration: with the true numbers of iterations, and with random ones as in the "
        "source."
    ),
    takes="about 2 minutes on two cores with --quick",
    look=(
        "Claims: limits beside what was found. Findings: three measures of error. The gap between both "
        "predictions is the cost of random loops."
    ),
    experiments=EXPERIMENTS,
    measure=measure,
)
