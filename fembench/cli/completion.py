"""Tab completion, made from the parsers (needs shtab)."""

import re

from fembench.cli.parser import every_action
from fembench.cli.verbs import build_parser

FILES = re.compile(r"FILE|RECORD|GRAPH|GRID|CAMPAIGN|CLUSTER|MESH|EXE|PATH|RECORDS|.*\.(toml|json|py)")
FOLDERS = re.compile(r"DIR|FOLDER")


def completion(shell: str) -> str:
    """The script for a shell that completes verbs, options and choices."""
    import shtab

    parser = build_parser()
    for action in every_action(parser):
        words = action.metavar.split("|") if isinstance(action.metavar, str) else []
        if any(FILES.fullmatch(word) for word in words):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif any(FOLDERS.fullmatch(word) for word in words):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)
