"""The effort of a study, and the loop that measures its runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fembench.errors import AllocationLostError, FembenchError

Made = TypeVar("Made")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class ProgramEffort:
    """How much a study that runs programs under MPI measures."""

    repetitions: int
    samples: int  # per operation, in a calibration
    counts: tuple[int, ...] = ()  # numbers of workers or processes
    scale: float = 1.0  # of the work
    dilate: float = 1.0  # SYNTHETIC: smallest factor by which all ranks are slowed down
    real_repetitions: int = 0  # of runs with real messages
    passes: int = 1  # at most, over runs with real messages


class Attempts:
    """Reports progress, and collects failures."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.failed: list[str] = []

    def each(
        self, wanted: Sequence[tuple[str, Callable[[], Made | None]]], line: Callable[[Made], str]
    ) -> list[Made]:
        """Results of all (name, function to measure it); a failure is
        reported, and the next one runs.

        Raises AllocationLostError.
        """
        found = []
        for k, (name, make) in enumerate(wanted, 1):
            place = f"[{k}/{len(wanted)}] "
            try:
                made = make()
            except AllocationLostError:
                raise
            except FembenchError as error:
                self.fail(f"{name}: {error}", place)
                continue
            if made is not None:
                self.tell(place + line(made))
                found.append(made)
        return found

    def fail(self, text: str, place: str = "") -> None:
        """Report a failure."""
        self.failed.append(text)
        self.tell(f"{place}FAILED: {text}")
