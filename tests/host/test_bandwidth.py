"""Bandwidth: what is counted, and that small arrays stay small."""

import time
from types import SimpleNamespace
from typing import ClassVar

import pytest

from fembench.host import machine_state as bandwidth
from fembench.host.machine_state import roof
from fembench.records.record import MODEST


class Slow:
    """Kernels that take 10 ms a call, whatever their size, by a clock of their own."""

    made: ClassVar[list[int]] = []
    now: ClassVar[float] = 0.0

    def __init__(self, n, alone=False):
        self.made.append(n)

    def read(self):
        Slow.now += 0.01

    def run(self, s):
        Slow.now += 0.01


@pytest.fixture
def slow(monkeypatch):
    Slow.made, Slow.now = [], 0.0
    monkeypatch.setattr(bandwidth, "time", SimpleNamespace(perf_counter=lambda: Slow.now))
    monkeypatch.setattr(bandwidth.kernels, "Stream", Slow)
    monkeypatch.setattr(bandwidth.kernels, "Triad", Slow)


def test_bytes_are_those_that_move(slow):
    assert roof(24_000_000, seconds=0.0) == pytest.approx(24e6 / 0.01)
    assert Slow.made == [3_000_000, 1_000_000]  # one array read; three arrays of the triad


@pytest.mark.parametrize(("asked", "used"), [(0, 1 << 14), (10**12, 1 << 27)])
def test_very_small_and_very_large_sizes_are_bounded(slow, asked, used):
    roof(asked, seconds=0.0)
    assert Slow.made == [used // 8, used // 24]


def test_repeated_triads_are_of_one_size_and_quick(slow, monkeypatch):
    monkeypatch.setattr(bandwidth, "BRIEF", 0.0)
    found = bandwidth.triads(24_000_000)
    assert Slow.made == [1_000_000]
    assert found == pytest.approx([24e6 / 0.01] * bandwidth.TRIADS)
    bandwidth.triads(1e12)
    assert 24 * Slow.made[1] <= MODEST


def test_repeated_triads_take_less_than_a_tenth_of_a_second_of_small_arrays():
    begin = time.perf_counter()
    bandwidth.triads(1 << 16)
    assert time.perf_counter() - begin < 0.1 + 0.4  # and what a crowded machine adds
