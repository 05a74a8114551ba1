"""How a running campaign stands: a small file that the process which starts its jobs keeps.

It is replaced every EVERY seconds, by a thread that reads what is there anyway. Nobody
waits for it: a folder that cannot be written, or a reader, changes nothing.

Who watches from another shell, also over a file server, only reads: no lock is taken.
"""

import contextlib
import datetime
import os
import platform
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec

from fembench.base.config import encode
from fembench.base.errors import EndedError, FembenchError, InputError, shown
from fembench.base.files import Owner, atomic_path
from fembench.base.progress import Doing, current
from fembench.base.units import clock, plural
from fembench.records.record import Record, now_utc
from fembench.records.schema import check_time, read
from fembench.records.store import load, record_paths

STATE = Path("runs", ".progress.json")  # in the folder of a campaign
SCHEMA = 1
EVERY = 2.0  # seconds
LONGEST = 200  # characters of a text
DONE = "done"
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e10)]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs there are, when the last one has ended."""

    runs: int = 0  # that are planned
    verdicts: dict[str, int] = {}  # of those that have a record
    failed: int = 0
    left: Seconds | None = None  # until all are done; None: not known
    disturbed: str = ""  # a line on other work that disturbed the times


class SweepState(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds."""

    schema: int = SCHEMA
    owner: Owner
    written: str  # ISO 8601, UTC
    doing: str  # "sweep: 3/20: m on 2 ranks"
    seconds: Seconds  # that this has taken
    stage: str  # "set 3 of about 12"; "" if not known
    counts: Counts
    end: str = ""  # "": it runs; DONE, or why it ended


class Standing:
    """How a campaign stands, as its file says until it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATE
        self._counts = Counts()
        self._since = time.monotonic()
        self._owner = Owner(os.getpid(), platform.node(), now_utc())

    def tell(self, counts: Counts) -> None:
        """From now on, these; the file says so at once."""
        self._counts = counts
        self._since = time.monotonic()
        self.write()

    def write(self, end: str = "") -> None:
        """Replace the file, if that can be done."""
        work, counts = current() or Doing("sweep: starting"), self._counts
        if counts.left is not None:
            passed = time.monotonic() - self._since
            counts = msgspec.structs.replace(counts, left=max(0.0, counts.left - passed))
        state = SweepState(
            owner=self._owner,
            written=now_utc(),
            doing=shown(work.text, LONGEST),
            seconds=round(time.monotonic() - work.began, 1),
            stage=shown(work.stage, LONGEST),
            counts=counts,
            end=shown(end, LONGEST),
        )
        with contextlib.suppress(OSError, FembenchError), atomic_path(self._path) as temporary:
            temporary.write_bytes(encode(state))

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(EVERY):
            self.write()


@contextlib.contextmanager
def standing(folder: Path) -> Iterator[Standing]:
    """Keep the file of a campaign; at the end, it says how the campaign ended."""
    kept = Standing(folder)
    ended = threading.Event()
    how = DONE
    kept.write()
    writer = threading.Thread(target=kept._keep, args=(ended,), daemon=True)
    writer.start()
    try:
        yield kept
    except KeyboardInterrupt:
        how = "interrupted"
        raise
    except BaseException as error:
        how = f"ended by {error}" if isinstance(error, EndedError) else str(error) or repr(error)
        raise
    finally:
        ended.set()
        writer.join()
        kept.write(how)


def read_state(path: Path) -> SweepState:
    """How a campaign stands, from its file. Raises InputError for anything else."""
    state = read(path, SweepState, SCHEMA, "the state of a campaign", has="counts", verb="sweep")
    check_time(state.written, f"{path}: written")
    return state


SILENT = 30.0  # seconds without news after which a campaign counts as killed
AGAIN = 3 * EVERY  # seconds in which a campaign that runs gives news, whatever the clocks of two hosts say


@dataclass(frozen=True)
class CampaignSight:
    """What is seen of a campaign at one moment."""

    state: SweepState
    silence: float  # seconds since it was written, at least
    gone: bool  # whether its process was on this host, and exists no more

    @property
    def silent(self) -> bool:
        """Whether it has ended without a word, as far as can be known."""
        return self.gone or (not self.state.end and self.silence > SILENT)

    @property
    def over(self) -> bool:
        """Whether no more news will come."""
        return bool(self.state.end) or self.gone

    @property
    def well(self) -> bool:
        """Whether it runs, or has done all it was asked to."""
        return self.state.end in ("", DONE) and not self.silent


@dataclass
class Watch:
    """Looks at the campaign of a folder, again and again."""

    folder: Path
    records: dict[Path, Record] = field(default_factory=dict)  # of all runs done, as they were seen first
    _last: SweepState | None = None
    _seen: float = 0.0  # when it was, by the clock of this process

    def look(self) -> CampaignSight:
        """How the campaign stands. Raises InputError if none has run in the folder."""
        state = self._read()
        gone = state.owner.host == platform.node() and not state.owner.alive
        if gone and not state.end:
            state = self._read()  # its last word
        now = time.monotonic()
        if state != self._last:
            # a file that is new to this process may be old; a later one is as new as it looks
            self._seen = now - (_age(state.written) if self._last is None else 0.0)
            self._last = state
        return CampaignSight(state, now - self._seen, gone and not state.end)

    def _read(self) -> SweepState:
        place = self.folder / STATE
        if self._last is None and not place.exists():
            what = "no campaign has run here" if self.folder.is_dir() else "no such folder"
            raise InputError(f"{self.folder}: {what}; expected the results folder of a sweep")
        try:
            os.listdir(place.parent)  # on NFS, this shows what other hosts have replaced
            return read_state(place)
        except (InputError, OSError):
            if self._last is None:
                raise
            return self._last  # a file server may be gone for a while

    def steady_look(self) -> CampaignSight:
        """The same; one that seems silent gets time to give news: clocks may differ."""
        end = time.monotonic() + AGAIN
        while (sight := self.look()).silent and not sight.over and time.monotonic() < end:
            time.sleep(EVERY / 4)
        return sight

    def new_records(self) -> list[Record]:
        """Records of runs that were not there before, in their order; damaged files are left out."""
        new = {}
        for path in (path for path in record_paths(self.folder) if path not in self.records):
            with contextlib.suppress(InputError):
                new[path] = load(path)
        self.records |= new
        return sorted(new.values(), key=lambda record: record.created)


def _age(written: str) -> float:
    """Seconds since a time, by the clock of this host; 0 if that is behind."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return max(0.0, (now - datetime.datetime.fromisoformat(written)).total_seconds())


def sentences(sight: CampaignSight) -> Iterator[str]:
    """What is going on, how many runs are done, with which verdicts, and the disturbance."""
    state, counts = sight.state, sight.state.counts
    doing = f"{state.doing} … {clock(state.seconds)}{', ' if state.stage else ''}{state.stage}"
    if sight.silent:
        who = f"pid {state.owner.pid} on host {state.owner.host}"
        yield f"Killed, or cut off: no news since {_when(state)} ({clock(sight.silence)} ago), from {who}."
        yield f"It was doing this: {doing}."
    elif state.end:
        yield "The campaign is done." if state.end == DONE else f"The campaign was stopped: {state.end}."
    else:
        yield f"{doing}."
    words = [f"{n} {verdict}" for verdict, n in counts.verdicts.items()]
    words += [f"{counts.failed} failed"] if counts.failed else []
    left = "" if counts.left is None or sight.silent or state.end else f"; about {clock(counts.left)} left"
    yield f"{_done(counts)}{': ' if words else ''}{', '.join(words)}{left}."
    if counts.disturbed:
        yield counts.disturbed
    elif any(counts.verdicts.values()):
        yield "No run was disturbed, as far as was measured."


def unfinished(folder: Path) -> list[str]:
    """A sentence on the campaign of a folder if it is not done; [] also if none has run there."""
    try:
        sight = Watch(folder).look()
    except (InputError, OSError):
        return []
    state = sight.state
    if state.end == DONE:
        return []
    how = f"was stopped: {state.end};" if state.end else "is still running:"
    how = f"is not done: no news since {_when(state)};" if sight.silent else how
    return [f"The campaign {how} {_done(state.counts)}."]


def _when(state: SweepState) -> str:
    """The time of the last news, by the clock of this place."""
    return datetime.datetime.fromisoformat(state.written).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _done(counts: Counts) -> str:
    """'2 of 12 runs done'; '2 runs done' if it is not known how many are planned."""
    done = sum(counts.verdicts.values())
    of = f"{done} of {plural(counts.runs, 'run')}" if counts.runs else plural(done, "run")
    return f"{of} done"
