"""An execution graph measured relative to one rank."""

import pytest
from known_programs import cg_chain

from fembench.base.errors import InputError
from fembench.model.engine import simulate
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench_studies.graphs.speedup import against_one_rank, operations, parallel

NET = {"latency": 50e-6, "per_byte": 8e-9, "overhead": 1e-6}


@pytest.mark.row("003:2.3-2.6", "003:A10")
def test_speedup_and_its_kin_follow_from_times_and_operations():
    found = parallel(T1=8.0, O1=8.0, Tn=2.5, On=9.0, n=4)
    assert found.speedup == 3.2
    assert found.efficiency == 0.8
    assert found.redundancy == 1.125
    assert found.utilisation == pytest.approx(9 / (4 * 2.5))
    assert found.quality == pytest.approx(8**3 / (4 * 2.5**2 * 9))


def test_the_work_of_unequal_ranks_is_counted_at_speed_1_and_a_base_has_one_rank():
    graph = cg_chain([0.01] * 4, 50, 2400)
    on = even_machine(4, speeds=(1, 1, 0.5, 1), **NET)
    result = simulate(make_plan(graph, on))
    assert operations(result, on.speeds) == pytest.approx(4 * 50 * 0.01 + result.overhead.sum())
    with pytest.raises(InputError, match="a graph of 4 ranks; expected one rank"):
        against_one_rank(graph, on, result)
