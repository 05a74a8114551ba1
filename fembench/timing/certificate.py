"""The clock certificate (rule C2): the clock a run may use, checked before and after.

The processor's counter may be used if it ticks at a constant rate, also in sleep states
(`constant_tsc`, `nonstop_tsc`; guaranteed on AArch64), if the kernel has not rejected
it, and if repeated calibrations against CLOCK_MONOTONIC_RAW agree within 1e-4. A run
uses the cheapest clock that may be used and records why.
"""

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from fembench.records.record import ClockCertificate
from fembench.timing import clocks
from fembench.timing.clocks import Clock, Pair, Rate

LIMIT = 1e-4  # relative difference of ticks/s
FLAGS = ("constant_tsc", "nonstop_tsc")
FALLBACK = "perf_counter_ns"
ALIKE = 1.25  # reading costs within this factor count as equal
Costs = dict[str, float]  # clock -> ns per reading
DISTRUST = ("hpet", "acpi_pm", "jiffies")  # Linux falls back to these when the TSC fails its watchdog
CPUINFO = Path("/proc/cpuinfo")
CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def tsc_flags(cpuinfo: Path = CPUINFO) -> tuple[str, ...]:
    """The members of FLAGS that the kernel reports for every processor."""
    try:
        lines = [x for x in cpuinfo.read_text().splitlines() if x.startswith("flags")]
    except OSError:
        return ()
    return tuple(flag for flag in FLAGS if lines and all(flag in line.split() for line in lines))


def clocksource(path: Path = CLOCKSOURCE) -> str:
    """The kernel's own clock, or 'unknown'."""
    try:
        return path.read_text().strip()
    except OSError:
        return "unknown"


def objection() -> str:
    """Why the counter cannot be trusted on this machine; "" if it can."""
    if not clocks.has_tsc():
        return "no counter: the compiled module is not built, or the processor has none"
    if platform.machine() in ("aarch64", "arm64"):
        return ""
    missing = [flag for flag in FLAGS if flag not in tsc_flags()]
    if missing:
        return f"processor without {' and '.join(missing)}"
    source = clocksource()
    return f"the kernel has replaced the TSC by {source}" if source in DISTRUST else ""


def relative_difference(a: Rate, b: Rate) -> float:
    """|a − b| / b of two rates."""
    return abs(a.ticks_per_second - b.ticks_per_second) / b.ticks_per_second


def worst_costs(ranks: Sequence[Costs]) -> Costs:
    """For each clock that every rank may use, the highest cost of a reading on any rank."""
    return {name: max(c[name] for c in ranks) for name in ranks[0] if all(name in c for c in ranks)}


class Certifier:
    """Chooses the clock before a run (`start`) and checks it afterwards (`finish`)."""

    def __init__(self, asked: str = "auto", agree: Callable[[Costs], Costs] = lambda costs: costs) -> None:
        """`agree` combines all ranks' costs, so that all choose one clock. Collective."""
        clocks.check_name(asked)
        self.asked = asked
        self._agree = agree

    def start(self) -> ClockCertificate:
        """The clock to use, its rate and costs, in 25 ms; `finish` decides on `certified`.

        `tsc` falls back to the system's clock and gives the reason. Collective.
        """
        wanted = self.asked != FALLBACK
        reason, drift = self._check_counter() if wanted else ("", 0.0)
        name, self._chosen = self._choose(reason) if wanted else (FALLBACK, "")
        if name != "tsc" and wanted and not reason:
            reason = "others are cheaper to read" if "tsc" in self._chosen else "not certified on every rank"
        rate = self._before.ticks_per_second if name == "tsc" else 1e9
        self.clock = clocks.open_clock(name, ticks_per_second=rate)
        self._begin = _stamp(self.clock)
        self._start = self._describe(reason, drift)
        return self._start

    def _check_counter(self) -> tuple[str, float]:
        """(objection to the counter or "", drift) from the flags and two calibrations."""
        reason = objection()
        if reason:
            return reason, 0.0
        first = clocks.calibrate()
        self._before = clocks.calibrate()
        drift = relative_difference(first, self._before)
        return (f"ticks/s differ by {drift:.1e} within 20 ms" if drift > LIMIT else ""), drift

    def _choose(self, objection: str) -> tuple[str, str]:
        """The clock to use, the cheapest for every rank, and why. Collective."""
        names = [FALLBACK] if objection else ["tsc", FALLBACK]
        costs = self._agree({n: clocks.reading_ns(self._opened(n)) for n in names})
        if self.asked == "tsc":
            return next(n for n in names if n in costs), ""
        least = min(costs.values())
        name = next(n for n, cost in costs.items() if cost <= ALIKE * least)
        return name, f"; cheapest of {', '.join(f'{n} {cost:.3g} ns' for n, cost in costs.items())}"

    def _opened(self, name: str) -> Clock:
        rate = self._before.ticks_per_second if name == "tsc" else None
        return clocks.open_clock(name, ticks_per_second=rate)

    def _describe(self, reason: str, drift: float) -> ClockCertificate:
        clock = self.clock
        why = f"instead of tsc: {reason}" if reason else "the system's monotonic clock"
        if clock.name == "tsc":
            why = "flags and calibration before the run"
        return ClockCertificate(
            name=clock.name,
            ticks_per_second=clock.ticks_per_second,
            asked=self.asked,
            certified=True,
            reason=why + self._chosen,
            drift=drift,
            read_ns=clocks.read_ns(clock),
            quantum_ns=clocks.quantum_ns(clock),
            span_ns=clocks.span_cost(clock.name, clock.ticks_per_second),
        )

    def finish(self) -> ClockCertificate:
        """The certificate of the whole run, in 10 ms; its rate is needed to read times."""
        begin, end = self._begin, _stamp(self.clock)
        whole = clocks.rate_between(begin, end)
        if self.clock.name != "tsc":
            drift = abs(whole.ticks_per_second / 1e9 - 1)
            return structs.replace(self._start, drift=drift)
        drift = max(self._start.drift, relative_difference(clocks.calibrate(), self._before))
        good = drift <= LIMIT
        reason = f"{' '.join(FLAGS)}, ticks/s " if platform.machine() == "x86_64" else "ticks/s "
        reason += f"{'agree within' if good else 'differ by'} {LIMIT if good else drift:.0e} before and after"
        reason += self._chosen
        # more precise on a short run
        rate = min(whole, self._before, key=lambda r: r.uncertainty)
        return structs.replace(
            self._start, certified=good, reason=reason, drift=drift, ticks_per_second=rate.ticks_per_second
        )


def _stamp(clock: Clock) -> Pair:
    """Simultaneous readings of `clock` and CLOCK_MONOTONIC_RAW."""
    if clock.name == "tsc":
        return clocks.pair()
    raw = clocks.monotonic_raw
    before, ticks, after = min(((raw(), clock.read(), raw()) for _ in range(50)), key=lambda t: t[2] - t[0])
    return Pair(ticks, (before + after) // 2, after - before)


def worst_of(certificates: Sequence[ClockCertificate]) -> ClockCertificate:
    """The worst certificate of all ranks: an uncertified one, else the largest drift."""
    worst = max(certificates, key=lambda c: (not c.certified, c.drift))
    return structs.replace(worst, ranks=tuple(c.name for c in certificates))


def certify(asked: str = "auto", seconds: float = 0.1) -> ClockCertificate:
    """The certificate of an idle run of `seconds`, as `fembench doctor` shows it."""
    certifier = Certifier(asked)
    certifier.start()
    time.sleep(seconds)
    return certifier.finish()
