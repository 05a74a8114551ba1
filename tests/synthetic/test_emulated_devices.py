"""Emulated ranks on devices and on cores: what a profile says of them is what their run takes."""

import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs
from planted_profile import one_speed, planted_profile
from test_emulated_speeds import Clock, Ranks, lasting

from fembench.characterize.meter import Meter
from fembench.characterize.probes import BLOCK_FLOPS, Probe
from fembench.host.provenance import host_key
from fembench.model.predictor import Predictor
from fembench.model.rates import rates_of
from fembench.records.case import Case
from fembench.records.hlogp import parse_link
from fembench.records.phases import ASSEMBLY, AXPY, SEND, SPMV_INTERIOR, UNPACK
from fembench.synthetic import slowness, waits
from fembench.synthetic.slowness import EmulatedSlowness
from fembench.timing.tracer import make_tracer

START = 5e-3  # seconds to start a product on a device
# (phase, storage) -> (number in a run, unit, units per cell, seconds per unit on a device, on a core)
WORK = {
    ("assembly", ""): (ASSEMBLY, "cells", 1.0, 1e-5, 1e-5),
    ("product", "sym"): (SPMV_INTERIOR, "blocks", 2.5, 8e-6, 2e-6),
    ("updates", ""): (AXPY, "dofs", 0.5, 1e-7, 3e-7),  # little: the last all-reduce is amid them
    ("pack", ""): (SEND, "bytes", 0.1, 1e-6, 1e-9),
    ("unpack", ""): (UNPACK, "bytes", 0.1, 2e-6, 1e-9),
}
SIZES = {"L2": 50, "L3": 2_000, "memory": 100_000}  # cells
ROUNDS = (1.02, 1.016, 1.012, 1.008, 1.004, 1.0)  # how long calls take in each, over the least
IN_RUN = 1.01


def seconds(name, device, units):
    *_, on_device, on_core = WORK[name]
    return (START if name[0] == "product" else 0.0) + on_device * units if device else on_core * units


def together(meters, probe, works):
    """[rank] what a visit of all ranks of a host finds; each hears the others in the second pass."""
    said = []
    for allgather in (lambda mine: said.append(mine) or said, lambda mine: said):
        host, rates = SimpleNamespace(allgather=allgather), []
        for one, took in zip(meters, works):
            one._timed = lambda probe, calls, took=took: (took, took)
            rates.append(one.visit(probe, 1.0, 1.0, host))
    return rates


def profile_of(devices, case):
    """What `characterize` finds on one host, round by round."""
    speeds, dilate = map(float, case.synthetic.emulate.split(",")), case.synthetic.dilate
    meters = [Meter(make_tracer(), "stretched", dilate / s, on_device=d) for s, d in zip(speeds, devices)]
    found = []
    for name, (number, unit, per_cell, *_) in WORK.items():
        for level, cells in SIZES.items():
            units = int(per_cell * cells)
            probe = Probe(name[0], level, unit, units, 1, number, int, storage=name[1])
            usual = [seconds(name, device, units) for device in devices]
            rounds = [together(meters, probe, [slower * t for t in usual]) for slower in ROUNDS]
            found += [
                one_speed(rank, *name, level, 2, unit, per_cell, cells, np.array(rates))
                for rank, rates in enumerate(zip(*rounds))
            ]
    profile = planted_profile([1] * len(devices))
    return structs.replace(
        profile, device=case.method.device, emulate=case.synthetic.emulate, dilate=dilate, speeds=tuple(found)
    )


def in_a_run(clock, devices, case, parts):
    """[rank] seconds of (product, updates) of a run whose ranks have rehearsed and agreed."""
    speeds = [float(speed) for speed in case.synthetic.emulate.split(",")]
    works = [
        [
            (phase, IN_RUN * seconds(name, devices[rank], amounts[rank]))
            for phase, name, amounts in (
                (SPMV_INTERIOR, ("product", "sym"), parts.blocks),
                (AXPY, ("updates", ""), parts.dofs),
            )
        ]
        for rank in range(len(devices))
    ]
    units = [
        {"product": BLOCK_FLOPS * blocks, "vectors": dofs // 3}
        for blocks, dofs in zip(parts.blocks, parts.dofs)
    ]

    def rehearsed(rank):
        one = EmulatedSlowness(case.synthetic.dilate / speeds[rank], on_device=devices[rank])
        for _ in one.rehearsals(Ranks(), 0.0, most=1):
            for phase, work in works[rank]:
                lasting(one, clock, work, phase=phase)
        return one

    said = [(host_key(), rehearsed(rank).spent(units[rank])) for rank in range(len(devices))]
    found = []
    for rank, own in enumerate(works):
        one = rehearsed(rank)
        one.agree(Ranks(*said[:rank], *said[rank + 1 :]), units[rank], among=statistics.median)
        one.new_work(None)
        found.append([lasting(one, clock, work, phase=phase)[0] for phase, work in own])
    return np.array(found)


@pytest.mark.parametrize(
    ("devices", "shares"),
    [((True, False), "0.8,0.2"), ((True, False), "0.5,0.5"), ((True, False, False), "0.6,0.2,0.2")],
)
def test_the_interval_of_a_prediction_contains_the_run_of_emulated_devices_and_cores(
    monkeypatch, devices, shares
):
    """A device of the speed of four cores, whose kernels are four times as slow as theirs."""
    clock = Clock()
    for module in (slowness, waits):
        monkeypatch.setattr(module, "time", clock)
    case = Case.of(
        mesh="m1",
        ranks=len(devices),
        shares=shares,
        device=",".join("opencl" if device else "cpu" for device in devices),
        emulate=",".join("1" if device else "0.25" for device in devices),
        dilate=16.0,
    )
    profile = profile_of(devices, case)
    found = Predictor(profile, "", rates_of(profile), link=parse_link("1e-9,1e15")).predict(case)
    parts = found.work.parts
    product, updates = in_a_run(clock, devices, case, parts).T
    copied = [WORK["pack", ""][3] + WORK["unpack", ""][3], 0.0, 0.0]  # seconds per byte; those of cores: none
    copies = [IN_RUN * per_byte * sum(each) for per_byte, each in zip(copied, parts.message_bytes)]
    took = (product + copies).max() + updates.max()
    assert found.low <= took <= found.high
    assert found.high < 1.05 * found.low
