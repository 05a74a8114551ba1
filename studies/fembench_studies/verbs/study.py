"""Repeat the source studies, and run their small programs.

Without arguments, it lists the studies in one sentence each. With the name of a study,
it runs all of it or some of its experiments. You can stop it at any time: the same
command continues where it stopped.

Examples:
  fembench study                                       # the studies in one sentence each, and next steps
  fembench study thesis-004 --list                     # its experiments
  fembench study explain thesis-004 E7                 # what the source did, and what is repeated
  fembench study thesis-004 --quick                    # all of it, in about twelve minutes on two cores
  fembench study thesis-004 E7,E9 --quick              # two of its experiments, on a separate page
  fembench study E7 --quick                            # one experiment, by its name alone
  fembench study thesis-004 --fast a:2,b:2 --slow c    # on real hosts: two cores of a and b, one of c
  fembench study app pi --ranks 3                      # a small program; likewise pasl FILE, schedule GRAPH
  fembench study app task.py --ranks 3                 # a task of your own (docs: howto/farm)
"""

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fembench_studies.sentences import SENTENCES

ON_HOSTS = "thesis-004"  # the only study whose experiments can run on given hosts
TOOLS = ("app", "pasl", "schedule", "graph", "modeller")  # modules beside this one
OPTIONS = """
experiments [NAME,…]: only these experiments (default: all)
--list: list the experiments of the study and stop
--quick: fewer sets and iterations; all tables and plots
--page: measure nothing; build the page from existing results
--results DIR: folder for records and page (default: results/STUDY[-quick])
"""
HOSTS = """
[hosts] without these options, hosts are emulated (SYNTHETIC)
--fast HOST[:CORES],…: fast hosts, all equal (default: two cores each)
--slow HOST[:CORES],…: slow hosts, all equal (default: one core each)
"""
EXPLAIN = """
study STUDY: a study, or one of its experiments
experiments [NAME,…]: only these experiments
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import declare
    from fembench.cli.parser import split

    words = parser.add_subparsers(
        dest="word",
        metavar="NAME",
        title="arguments",
        description="a study, one of its experiments (--list names them), explain, or a tool",
    )
    for name, sentence in SENTENCES.items():
        child = words.add_parser(name, help=sentence, description=f"Repeat the study: {sentence}.")
        declare(child, OPTIONS + (HOSTS if name == ON_HOSTS else ""))
    for name in TOOLS:
        module = _tool(name)
        description, examples = split(module.__doc__ or "")
        line = description.partition("\n")[0].rstrip(".")
        line = line[:1].lower() + line[1:]
        module.arguments(words.add_parser(name, help=line, description=description, epilog=examples))
    declare(
        words.add_parser("explain", help="what the source of a study did, what is repeated, and how"), EXPLAIN
    )


def _tool(name: str) -> Any:
    return importlib.import_module(f"fembench_studies.verbs.{name}")


def spelled_out(words: Sequence[str]) -> list[str]:
    """The words of the command line, an experiment's name preceded by
    its study. Raises InputError."""
    known = (*SENTENCES, *TOOLS, "explain")
    if len(words) < 2 or words[0] != "study" or words[1] in known or words[1].startswith("-"):
        return list(words)
    from fembench_studies.catalogue import owner_of

    return ["study", owner_of(words[1].split(",")[0]).name, *words[1:]]


def run(options: argparse.Namespace) -> int:
    if options.word in TOOLS:
        return int(_tool(options.word).run(options))
    from fembench_studies import catalogue

    if not options.word:
        print(catalogue.overview())
        return 0
    name = options.study if options.word == "explain" else options.word
    if name not in SENTENCES and not options.experiments:  # explain E7
        options.experiments, name = name, catalogue.owner_of(name).name
    study = catalogue.study_named(name)
    only = study.chosen(options.experiments)
    if options.word == "explain":
        print(catalogue.explanation(study, only))
    elif options.list:
        print(catalogue.listing(study))
    else:
        return _measure(options, study, only)
    return 0


def _measure(options: argparse.Namespace, study, only: tuple[str, ...]) -> int:
    """Run the study and print the path of its page. Raises InputError."""
    from fembench.base.progress import progress, working
    from fembench.cli.options import typed_command
    from fembench.launch.allocation import allocation
    from fembench_studies.page import run_study
    from fembench_studies.study import HostsAsked, StudyRequest

    folder = Path(options.results or f"results/{study.name}{'-quick' if options.quick else ''}")
    hosts = HostsAsked()
    if study.name == ON_HOSTS:
        fast, slow = (tuple(filter(None, text.split(","))) for text in (options.fast, options.slow))
        hosts = HostsAsked(fast, slow)
    request = StudyRequest(
        folder,
        options.quick,
        allocation("").slots,
        only=only,
        only_kept=options.page,
        command=typed_command(),
        hosts=hosts,
    )
    with working(f"study: {study.name}"):
        page = run_study(study, request, progress)
    print(f"{page.findings}\n\nrecords: {folder}\nreport:  {page.path}")
    return 0 if page.good else 1
