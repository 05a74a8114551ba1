"""The time that the rest of a campaign takes."""

import time


class Timekeeper:
    """The time left: the mean time of the finished runs times the number of runs left."""

    def __init__(self, to_do: int) -> None:
        self.to_do, self.done, self._begin = to_do, 0, time.monotonic()

    def one_more(self) -> None:
        self.done += 1

    @property
    def left(self) -> float | None:
        """Seconds left; None before the first run is done."""
        if not self.done:
            return None
        return (time.monotonic() - self._begin) / self.done * (self.to_do - self.done)
