"""All studies: looked up by name or experiment, and described as text."""

import textwrap
from difflib import get_close_matches
from pathlib import Path

from msgspec.structs import replace

from fembench.base.config import read_toml
from fembench.base.errors import shown
from fembench.errors import InputError
from fembench_studies.study import Study

STUDIES = tuple(
    replace(study, name=name)
    for name, study in read_toml(Path(__file__).with_name("studies.toml"), dict[str, Study]).items()
)
WIDTH = 100
TOOLS = {
    "app NAME": "run a small program (farm or task graph), predicted before it runs",
    "pasl FILE": "task graph, PAMELA model and run time of a farm application in PASL",
    "schedule GRAPH": "schedule a task graph on unequal hosts with HEFT and others",
    "graph GRAPH": "measures of an execution graph, and its export to SimGrid and LogGOPSim",
    "modeller PROFILE": "a machine profile as a file of the HLogP modeller",
}
NEXT = """Next steps:
  fembench study thesis-004 --list         list its experiments
  fembench study explain thesis-004        what the source did, and what is measured again
  fembench study thesis-004 --quick        run all of it, with few repetitions
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
    """The study that has an experiment of that name. Raises InputError if none has it."""
    found = [study for study in STUDIES if experiment in study.names]
    if not found:
        known = [*(s.name for s in STUDIES), *(name for s in STUDIES for name in s.names), *_words()]
        near = get_close_matches(experiment, known, 1)
        hint = f"; did you mean '{near[0]}'?" if near else "; `fembench study` lists the studies"
        raise InputError(f"unknown study or experiment '{shown(experiment)}'{hint}")
    return found[0]


def overview() -> str:
    """One line per study and tool, and the next steps."""
    return "\n".join(
        [
            "Studies, each repeating the measurements of one source:",
            *_columns({study.name: study.sentence for study in STUDIES}),
            "",
            "Tools that the studies use:",
            *_columns(TOOLS),
            "",
            NEXT,
        ]
    )


def listing(study: Study) -> str:
    """One line per experiment."""
    return "\n".join(_columns({e.name: e.sentence for e in study.experiments}, indent=0))


def explanation(study: Study, only: tuple[str, ...] = ()) -> str:
    """A study on one screen; with `only`, just what these experiments
    measure and what to look at."""
    head = [f"{study.name}: {study.sentence}", f"Source: {study.source}.", ""]
    about = {
        "What the source did": study.did,
        "What is measured again, and how": study.again,
        "How long it takes": study.takes,
        "What to look at": study.look,
    }
    for title, text in () if only else about.items():
        head += [f"{title}:", textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ")]
    for one in (e for e in study.experiments if e.name in only):
        look = one.look or study.each
        head += [f"{one.name}: {one.sentence}.", *([f"  In the page: {look}."] if look else [])]
    command = " ".join([study.name, ",".join(only)]).rstrip()
    return "\n".join([*head, "", f"Run it: fembench study {command} --quick"])


def _columns(texts: dict[str, str], indent: int = 2) -> list[str]:
    width = max(map(len, texts))
    return [f"{'':{indent}}{name:<{width}}  {text}" for name, text in texts.items()]


def _words() -> list[str]:
    return [*(tool.split()[0] for tool in TOOLS), "explain"]
