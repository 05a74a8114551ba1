"""How the campaign of a folder stands, for another shell, also over a file server.

Only reads: no lock is taken and nothing is written, so a campaign cannot notice it.
"""

import contextlib
import datetime
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fembench.base.errors import InputError
from fembench.base.units import clock, plural
from fembench.records.record import Record
from fembench.records.store import load, record_paths
from fembench.workflows.sweep_state import DONE, EVERY, STATE, SweepState, read_state

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
    done = sum(counts.verdicts.values())
    if sight.silent:
        when = datetime.datetime.fromisoformat(state.written).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        yield f"Killed, or cut off: no news since {when} ({clock(sight.silence)} ago), from {_who(state)}."
        yield f"It was doing this: {doing(state)}."
    elif state.end:
        yield "The campaign is done." if state.end == DONE else f"The campaign was stopped: {state.end}."
    else:
        yield f"{doing(state)}."
    words = [f"{n} {verdict}" for verdict, n in counts.verdicts.items()]
    words += [f"{counts.failed} failed"] if counts.failed else []
    left = "" if counts.left is None or sight.silent or state.end else f"; about {clock(counts.left)} left"
    of = f"{done} of {plural(counts.runs, 'run')}" if counts.runs else plural(done, "run")
    yield f"{of} done{': ' if words else ''}{', '.join(words)}{left}."
    if counts.disturbed:
        yield counts.disturbed
    elif done:
        yield "No run was disturbed, as far as was measured."


def doing(state: SweepState) -> str:
    """'sweep: 3/20: m on 2 ranks … 0:05, set 3 of about 12'."""
    return f"{state.doing} … {clock(state.seconds)}{', ' if state.stage else ''}{state.stage}"


def _who(state: SweepState) -> str:
    return f"pid {state.owner.pid} on host {state.owner.host}"
