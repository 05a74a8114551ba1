"""The clock certificate on machines that are not this one."""

import pytest

from fembench.base.errors import InputError
from fembench.timing import certificate, clocks
from fembench.timing.certificate import Certifier, certify, tsc_flags, worst_costs
from fembench.timing.clocks import Rate

needs_tsc = pytest.mark.skipif(not clocks.has_tsc(), reason="no processor counter")


@pytest.fixture
def good_machine(monkeypatch, tmp_path):
    """An x86-64 machine with an invariant TSC, whatever this one is."""
    cpuinfo, source = tmp_path / "cpuinfo", tmp_path / "clocksource"
    cpuinfo.write_text("processor: 0\nflags\t: fpu constant_tsc nonstop_tsc sse\n")
    source.write_text("tsc\n")
    monkeypatch.setattr(certificate.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(certificate, "tsc_flags", lambda: tsc_flags(cpuinfo))
    monkeypatch.setattr(certificate, "clocksource", lambda: source.read_text().strip())
    return cpuinfo, source


@needs_tsc
def test_an_invariant_counter_is_certified(good_machine):
    result = certify("auto", 0.02)
    assert (result.name, result.certified) == ("tsc", True), result.reason
    assert result.drift <= 1e-4
    assert result.ticks_per_second == pytest.approx(clocks.calibrate().ticks_per_second, rel=1e-4)
    assert clocks.calibrate(0.02).uncertainty < 1e-3
    assert 0 < result.quantum_ns < 1e4


WITHOUT = "flags : fpu constant_tsc\nflags : fpu constant_tsc nonstop_tsc\n"


@needs_tsc
@pytest.mark.parametrize(
    ("file", "text", "asked", "reason"),
    [
        (0, WITHOUT, "auto", "processor without nonstop_tsc"),
        (0, WITHOUT, "tsc", "processor without nonstop_tsc"),
        (1, "hpet\n", "auto", "the kernel has replaced the TSC by hpet"),
    ],
)
def test_a_counter_that_is_not_invariant_is_not_used_and_it_is_said(good_machine, file, text, asked, reason):
    good_machine[file].write_text(text)
    result = Certifier(asked).start()
    assert (result.name, result.certified, result.asked) == ("perf_counter_ns", True, asked)
    found, _, choice = result.reason.partition("; cheapest of ")
    assert found == f"instead of tsc: {reason}"
    assert "tsc" not in choice
    assert result.ticks_per_second == 1e9


@needs_tsc
def test_a_counter_that_changes_its_rate_at_the_start_is_not_used(good_machine, monkeypatch):
    rates = iter([Rate(2.0e9, 1e-6), Rate(2.001e9, 1e-6)])
    monkeypatch.setattr(clocks, "calibrate", lambda: next(rates))
    result = Certifier().start()
    assert result.name == "perf_counter_ns"
    assert result.drift == pytest.approx(5e-4, rel=0.01)


@needs_tsc
def test_a_counter_that_changes_its_rate_during_the_run_is_not_certified(good_machine, monkeypatch):
    certifier = Certifier()
    rate = clocks.calibrate().ticks_per_second
    certifier.start()
    monkeypatch.setattr(clocks, "calibrate", lambda: Rate(rate * 1.01, 1e-6))
    result = certifier.finish()
    assert (result.name, result.certified) == ("tsc", False)
    assert result.drift == pytest.approx(0.01, rel=0.05)
    assert "differ by 1e-02" in result.reason


@pytest.mark.row("004:3.1")
@needs_tsc
@pytest.mark.parametrize(
    ("costs", "taken"),
    [
        ({"tsc": 12, "perf_counter_ns": 24}, "tsc"),
        ({"tsc": 900, "perf_counter_ns": 40}, "perf_counter_ns"),  # a counter that traps
        ({"tsc": 24, "perf_counter_ns": 20}, "tsc"),  # alike: runs stay comparable
    ],
)
def test_the_clock_that_is_cheapest_to_read_is_taken_and_the_costs_are_said(
    good_machine, monkeypatch, costs, taken
):
    monkeypatch.setattr(clocks, "reading_ns", lambda clock: costs[clock.name])
    certifier = Certifier()
    for result in (certifier.start(), certifier.finish()):
        assert (result.name, result.certified) == (taken, True)
        assert (
            f"cheapest of tsc {costs['tsc']} ns, perf_counter_ns {costs['perf_counter_ns']} ns"
            in result.reason
        )
    assert Certifier("tsc").start().name == "tsc"  # asked for by name


@needs_tsc
def test_all_ranks_take_the_clock_that_is_cheapest_where_it_costs_most(good_machine, monkeypatch):
    mine = {"tsc": 10.0, "perf_counter_ns": 20.0}
    monkeypatch.setattr(clocks, "reading_ns", lambda clock: mine[clock.name])

    def beside(theirs):
        return Certifier(agree=lambda costs: worst_costs([costs, theirs])).start()

    assert beside({"tsc": 100.0, "perf_counter_ns": 25.0}).name == "perf_counter_ns"
    without = beside({"perf_counter_ns": 25.0})
    assert without.name == "perf_counter_ns"
    assert without.reason.startswith("instead of tsc: not certified on every rank; cheapest of")


def test_a_reading_costs_what_a_loop_of_readings_takes_per_reading(monkeypatch):
    ticks = iter(range(0, 10**6, 7))  # seven ticks a reading, at 1e8 a second
    clock = clocks.Clock("planted", ticks.__next__, 1e8)
    assert clocks.reading_ns(clock) == pytest.approx(70.0)


def test_without_a_counter_the_system_clock_serves(monkeypatch):
    monkeypatch.setattr(clocks, "has_tsc", lambda: False)
    result = Certifier("tsc").start()
    assert (result.name, result.certified) == ("perf_counter_ns", True)
    assert "no counter" in result.reason


def test_the_clock_of_the_system_is_certified_and_its_drift_is_known():
    result = certify("perf_counter_ns", 0.001)
    assert (result.name, result.certified) == ("perf_counter_ns", True)
    assert result.reason == "the system's monotonic clock"
    assert result.drift < 0.05


def test_an_unknown_clock_is_refused_before_anything_is_measured():
    with pytest.raises(InputError, match="nearest known is 'tsc'"):
        Certifier("ticks")


def test_no_cpuinfo_means_no_flags(tmp_path):
    assert tsc_flags(tmp_path / "absent") == ()
    (tmp_path / "empty").write_text("")
    assert tsc_flags(tmp_path / "empty") == ()
