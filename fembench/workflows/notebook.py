"""Runs for notebooks and scripts: records, and tables that pandas takes.

    import fembench

    runs = fembench.load("results/scaling")
    runs.overview()                     # every case with its verdict; shown as a table in a notebook
    runs.phases().to_pandas()           # a DataFrame, if pandas is installed
    runs.speedup("cg")["efficiency"]    # one column as an array
    runs[0].case                        # the raw record of a run: see the record schema

Nothing here needs MPI: a laptop can read what a cluster measured.

The functions of `import fembench` beside the workflows are also here: verb, shares.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

from fembench.base.arguments import typed
from fembench.base.commands import interpreter
from fembench.base.errors import InputError, RunFailedError
from fembench.base.progress import progress, telling
from fembench.base.units import plural
from fembench.records.quiet import disturbance
from fembench.records.record import Record
from fembench.records.store import load as load_record
from fembench.records.store import load_all
from fembench.records.weights import Weights, loud_notes, save_weights
from fembench.report import runs as run_tables
from fembench.report import speedup as scaling
from fembench.report import times
from fembench.report.conclusions import conclusions
from fembench.report.results import Result, results
from fembench.report.speedup import all_speedups
from fembench.report.table import Table
from fembench.report.tables import every_table
from fembench.report.weak import strong, weak_points
from fembench.report.work import weights_table
from fembench.weights.make import by_time

if TYPE_CHECKING:
    from fembench.report.plots.canvas import Plot


@typed
def load(path: Runs | Path | str) -> Runs:
    """Runs that were measured before.

    path: a results folder, or the file of one record; runs are returned as they are

    Raises InputError if there is no record, or a file is not a record.
    """
    if isinstance(path, Runs):
        return path
    return Runs([load_record(path)] if Path(path).is_file() else load_all(path), str(path))


class Runs(Sequence[Record]):
    """Records of runs, with the tables of the report."""

    def __init__(self, records: Iterable[Record], source: str = "", beside: Iterable[Record] = ()) -> None:
        """`beside`: other records, with which the conclusions compare these."""
        self.records = tuple(records)
        self.source = source
        self._beside = tuple(beside)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Record | Runs:
        chosen = self.records[index]
        return Runs(chosen, self.source) if isinstance(chosen, tuple) else chosen

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        verdicts = [r.verdict.status for r in self]
        counts = ", ".join(f"{verdicts.count(status)} {status}" for status in dict.fromkeys(verdicts))
        where = f" in {self.source}" if self.source else ""
        return f"{plural(len(self), 'run')}{where}: {counts or 'none'}"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.overview()._repr_html_()}"

    @typed
    def where(self, condition: Callable[[Record], bool]) -> Runs:
        """Those that meet a condition, as `lambda r: r.verdict.status == "VALID"`, or
        `lambda r: r.case.placement.ranks == 2`.
        """
        return Runs(filter(condition, self), self.source)

    @cached_property
    def results(self) -> list[Result]:
        """Repeated runs of one case, pooled."""
        return list(results(self.records))

    @property
    def disturbed(self) -> str:
        """A line on other work that disturbed the times; "" if none is known of."""
        return disturbance([record.environment for record in self], "times")

    def conclusions(self) -> list[str]:
        """What the runs show, in sentences: what was found, what limits it, what to do."""
        own = {record.id for record in self}
        found = [(r.record.id in own, r) for r in results((*self.records, *self._beside))]
        return conclusions([r for mine, r in found if mine], beside=[r for mine, r in found if not mine])

    def overview(self) -> Table:
        """One row per case: verdict, equations, iterations, time of cg."""
        return run_tables.overview(self.results)

    def summary(self) -> Table:
        """One row per case: time of partition, assembly, cg and the whole run."""
        return times.summary(self.results)

    def phases(self) -> Table:
        """One row per case and phase: seconds on the slowest rank, interval, that rank."""
        return times.phases(self.results)

    @typed
    def speedup(self, quantity: str = "cg", base: int = 0) -> Table:
        """Speedup and efficiency of one time, with the base of every row.

        `quantity` is a phase or a sum of the report ("cg", "assembly", "assembly + cg",
        "run", …); `base` is the number of ranks of the base, 0 for the fewest. Raises
        InputError for an unknown quantity, or if nothing ran on `base` ranks.
        """
        known = list(dict.fromkeys(name for r in self.results for name in r.times))
        if known and quantity not in known:
            raise InputError(f"speedup of '{quantity}': expected one of {', '.join(known)}")
        found = all_speedups(self.results, quantity, base)
        return scaling.speedups(strong(found, weak_points(self.results, base)), quantity)

    def weights(self) -> Table:
        """One row per rank of each case: the share that would balance it, its interval."""
        return weights_table(self.results)

    def plot(self, name: str) -> Plot:
        """A plot of the report by its name. Raises InputError with all names."""
        from fembench.report.plots.gallery import gallery

        found = {plot.name: plot for plot in gallery(self.results)}
        if not found:
            raise InputError(f"plot '{name}': expected at least one run")
        if name not in found:
            raise InputError(f"plot '{name}': expected one of {', '.join(found)}")
        return found[name]

    def tables(self) -> dict[str, Table]:
        """Every table of the report that has rows, by name."""
        return _Tables((table.name, table) for table in every_table(self.records))

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


class _Tables(dict[str, Table]):
    """Tables by name, of which names are shown."""

    def __missing__(self, name: object) -> Table:
        raise InputError(f"table {name!r}: expected one of {', '.join(self)}")

    def __repr__(self) -> str:
        return f"{plural(len(self), 'table')}: {', '.join(self)}"


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
def shares(
    runs: Runs | Path | str,
    *,
    path: Path | str | None = None,
    tell: Callable[[str], None] | None = None,
) -> Weights:
    """The shares of the ranks by measured time.

    runs: all on one number of ranks; or their folder, or the file of a record
    path: a file to write them to, for `run` and `sweep`
    tell: told if other work disturbed the runs or they are PROVISIONAL, as notes of the
    shares say too

    Raises InputError, also for INVALID runs.
    """
    found = by_time(list(load(runs)))
    with telling(tell):
        for note in loud_notes(found):
            progress(f"note: {note}")
    if path:
        save_weights(found, path)
    return found
