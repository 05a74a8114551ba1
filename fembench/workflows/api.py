"""Functions of `import fembench` beside the workflows: verb, shares, page."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from fembench.base.arguments import typed
from fembench.base.commands import interpreter
from fembench.base.errors import InputError, RunFailedError
from fembench.base.progress import progress, telling
from fembench.records.weights import Weights, loud_notes, save_weights
from fembench.weights.make import by_time
from fembench.workflows.notebook import Runs


@typed
def verb(*words: str) -> str:
    """What `fembench WORDS` prints; it runs in a process of its own.

    words: the verb, then its options, as in "timers", "--json"

    Raises RunFailedError, with what it said last, if its exit status is not 0, and
    InputError without a verb.
    """
    if not words:
        raise InputError("verb: expected the name of a verb")
    line = [*interpreter(), "-m", "fembench", *words]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise RunFailedError(f"fembench {words[0]}: {lines[-1].removeprefix('fembench: ')}")
    return done.stdout


@typed
def page(runs: Runs | Path | str, *, against: Runs | Path | str | None = None) -> Path:
    """Build the report of a results folder; returns the path of its index.html. Raises InputError.

    runs: what `sweep` returned, or the folder
    against: other runs, or their folder, to compare with
    """
    from fembench.report.page import build
    from fembench.report.tables import other_campaign

    return build(_folder(runs), against=None if against is None else other_campaign(_folder(against)))


def _folder(runs: Runs | Path | str) -> Path:
    folder = Path(runs.source if isinstance(runs, Runs) else runs)
    if not folder.is_dir():
        raise InputError(f"page of {folder}: not a folder of results; expected one of a sweep")
    return folder


@typed
def shares(
    runs: Runs, *, path: Path | str | None = None, tell: Callable[[str], None] | None = None
) -> Weights:
    """The shares of the ranks by measured time.

    runs: all on one number of ranks
    path: a file to write them to, for `run` and `sweep`
    tell: told if other work disturbed the runs or they are PROVISIONAL, as notes of the
    shares say too

    Raises InputError, also for INVALID runs.
    """
    found = by_time(list(runs))
    with telling(tell):
        for note in loud_notes(found):
            progress(f"note: {note}")
    if path:
        save_weights(found, path)
    return found
