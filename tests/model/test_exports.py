"""Chrome's trace format."""

import json

import pytest
from known_programs import cg_chain

from fembench.model.engine import simulate
from fembench.model.exports import write_timeline
from fembench.model.machine import even_machine
from fembench.model.path import timeline
from fembench.model.planner import make_plan


@pytest.mark.row("003:exp")
def test_chromes_trace_holds_every_bar_in_microseconds(tmp_path):
    on = even_machine(3, latency=50e-6, per_byte=8e-9, overhead=1e-6)
    plan = make_plan(cg_chain([0.01] * 3, 4, 2400), on)
    result = simulate(plan, period=False)
    bars = list(timeline(result))
    write_timeline(bars, plan.phases, on, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    shown = [e for e in events if e["ph"] == "X"]
    assert len(shown) == len(bars)
    assert max(e["ts"] + e["dur"] for e in shown) == pytest.approx(1e6 * result.makespan)
    assert {e["name"] for e in shown} == {"compute", "message", "allreduce"}
