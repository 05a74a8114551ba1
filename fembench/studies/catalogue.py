"""All studies: by name, by experiment, and as text."""

import textwrap
from difflib import get_close_matches

from fembench.base.errors import InputError, shown
from fembench.studies.study import Study, StudyExperiment
from fembench.studies.thesis_000.farm_study import STUDY as FARMS
from fembench.studies.thesis_001.grid_study import STUDY as GRID
from fembench.studies.thesis_002.bsp_study import STUDY as BSP
from fembench.studies.thesis_003.slaves_study import STUDY as SLAVES
from fembench.studies.thesis_004.pairs_study import STUDY as PAIRS

STUDIES = (FARMS, GRID, BSP, SLAVES, PAIRS)
WIDTH = 100
TOOLS = {
    "app NAME": "run a small program (farm or task graph), predicted before it runs",
    "pasl FILE": "task graph, PAMELA model and run time of a farm application in PASL",
    "schedule GRAPH": "schedule a task graph on unequal hosts with HEFT, CPOP and others",
}
NEXT = """How to go on:
  fembench study thesis-004 --list         its experiments
  fembench study explain thesis-004        what the source did, and what is measured again
  fembench study thesis-004 --quick        all of it, with few repetitions
  fembench study thesis-004 E7,E9          two experiments; `fembench study E7` runs one
  fembench study app --help                the small programs; likewise pasl, schedule"""


def study_named(name: str) -> Study:
    """The study of that name. Raises InputError."""
    found = next((study for study in STUDIES if study.name == name), None)
    if found is None:
        raise InputError(
            f"unknown study '{shown(name)}'; expected one of {', '.join(s.name for s in STUDIES)}"
        )
    return found


def owner_of(experiment: str) -> Study:
    """The one study with an experiment of that name. Raises InputError where none or several have it."""
    found = [study for study in STUDIES if experiment in study.names]
    if len(found) > 1:
        names = ", ".join(study.name for study in found)
        raise InputError(f"experiment '{experiment}' is in {names}; name the study first")
    if not found:
        known = [*(s.name for s in STUDIES), *(name for s in STUDIES for name in s.names), *_words()]
        near = get_close_matches(experiment, known, 1)
        hint = f"; did you mean '{near[0]}'?" if near else "; `fembench study` lists the studies"
        raise InputError(f"unknown study or experiment '{shown(experiment)}'{hint}")
    return found[0]


def overview() -> str:
    """Every study and tool in one sentence each, and how to go on."""
    return "\n".join(
        [
            "Studies, each a source measured again:",
            *_columns({study.name: study.sentence for study in STUDIES}),
            "",
            "Tools that they are made with:",
            *_columns(TOOLS),
            "",
            NEXT,
        ]
    )


def listing(study: Study) -> str:
    """Every experiment in one sentence."""
    return "\n".join(_columns({e.name: e.sentence for e in study.experiments}, indent=0))


def explanation(study: Study, only: tuple[str, ...] = ()) -> str:
    """One screen: what the source did, what is measured again and how, how long it takes, what to look at."""
    head = [f"{study.name}: {study.sentence}", f"Source: {study.source}.", ""]
    chosen = [e for e in study.experiments if e.name in only]
    if chosen:
        head += [line for e in chosen for line in (*_about(e), "")]
    about = {
        "What the source did": study.did,
        "What is measured again, and how": study.again,
        "How long it takes": study.takes,
        "What to look at": study.look,
    }
    for title, text in about.items():
        head += [f"{title}:", textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ")]
    command = " ".join([study.name, ",".join(only)]).rstrip()
    return "\n".join([*head, "", f"Run it: fembench study {command} --quick"])


def _about(experiment: StudyExperiment) -> list[str]:
    look = [f"  In the page: {experiment.look}."] if experiment.look else []
    return [f"{experiment.name}: {experiment.sentence}.", *look]


def _columns(texts: dict[str, str], indent: int = 2) -> list[str]:
    width = max(map(len, texts))
    return [f"{'':{indent}}{name:<{width}}  {text}" for name, text in texts.items()]


def _words() -> list[str]:
    return [*(tool.split()[0] for tool in TOOLS), "explain"]
