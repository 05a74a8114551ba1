"""How much of a study is measured, and the loop that measures it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fembench.base.errors import FembenchError

Made = TypeVar("Made")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class ProgramEffort:
    """How much is measured where a study runs programs under MPI."""

    repetitions: int
    samples: int  # of each operation, in a calibration
    counts: tuple[int, ...] = ()  # of workers, or of processes
    scale: float = 1.0  # of the work
    dilate: float = 1.0  # SYNTHETIC: smallest factor by which all ranks compute more slowly
    real_repetitions: int = 0  # of runs whose messages are real


class Attempts:
    """Tells how the measurements go, and remembers those that failed."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.failed: list[str] = []

    def each(
        self, wanted: Sequence[tuple[str, Callable[[], Made | None]]], line: Callable[[Made], str]
    ) -> list[Made]:
        """Everything that (name, how to measure it) yields. A failure is reported, and the rest goes on."""
        found = []
        for k, (name, make) in enumerate(wanted, 1):
            place = f"[{k}/{len(wanted)}] "
            try:
                made = make()
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
