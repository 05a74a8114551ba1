"""Ranks that share cores: planted programs whose times are hand arithmetic, and what this machine does."""

import shutil

import pytest
from mpi_program import BEGIN, END, compiled
from msgspec import structs
from planted_machine import flat_class, planted_machine, planted_network

from fembench.base.errors import InputError
from fembench.model.engine import simulate
from fembench.model.graph import Compute, ExecutionGraph, Receive, Send
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.records.profile import save_profile
from fembench_studies.binaries import rehearsal
from fembench_studies.binaries.links import Link, link_of
from fembench_studies.binaries.rehearsal import rehearse
from fembench_studies.binaries.sharing import AT_ONCE, Handover, measured_handover, place, shared_finishes


def plan_of(*programs, switch=None):
    """The plan of these programs, whose messages take no time."""
    graph = ExecutionGraph(phases=("compute", "message"), programs=programs)
    machine = even_machine(len(programs), latency=0.0, per_byte=0.0, overhead=0.0, switch=switch)
    return make_plan(graph, machine)


def compute(seconds):
    return Compute(0, seconds)


def send(to):
    return Send(to, 8, 1, blocking=True)


def receive(source):
    return Receive(source, 8, 1, blocking=True)


def test_a_core_computes_for_one_rank_at_a_time_and_a_switch_takes_time():
    plan = plan_of((compute(1.0),), (compute(2.0),))
    assert shared_finishes(plan, (0, 1), AT_ONCE).tolist() == [1.0, 2.0]
    assert shared_finishes(plan, (0, 0), AT_ONCE).tolist() == [1.0, 3.0]
    assert shared_finishes(plan, (0, 0), Handover(0.5, 9.0)).tolist() == [1.0, 3.5]


def test_a_core_whose_ranks_all_wait_is_idle_while_two_compute_on_the_other():
    first, second = (compute(1.0), send(2)), (compute(1.0), send(3))
    plan = plan_of(first, second, (receive(0), compute(1.0)), (receive(1), compute(1.0)))
    assert shared_finishes(plan, place(4, 2, 0), AT_ONCE).tolist() == [1.0, 2.0, 2.0, 3.0]
    assert shared_finishes(plan, place(4, 2, 1), AT_ONCE).tolist() == [1.0, 1.0, 2.0, 2.0]


def test_a_rank_that_does_not_wait_keeps_its_core_for_its_turn_only():
    stages = (compute(1.0), send(1)) * 3, (receive(0), compute(1.0)) * 3
    assert shared_finishes(plan_of(*stages), (0, 0), Handover(0.0, 9.0)).tolist() == [3.0, 6.0]
    assert shared_finishes(plan_of(*stages, switch=8), (0, 0), Handover(0.0, 9.0)).tolist() == [5.0, 6.0]


def test_with_a_core_for_each_rank_nothing_differs_from_other_simulations():
    ring = [
        (compute(1.0 + r), Send((r + 1) % 3, 8, 1, blocking=True), receive((r - 1) % 3)) for r in range(3)
    ]
    plan = plan_of(*(program * 4 for program in ring))
    assert shared_finishes(plan, (0, 1, 2), AT_ONCE).tolist() == simulate(plan).finish.tolist()


def test_places_are_even_and_differ():
    assert [place(4, 2, k) for k in range(4)] == [(0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0), (0, 0, 1, 1)]
    assert place(3, 4, 0) == (0, 1, 2)
    for number in range(3):
        assert sorted(place(9, 3, number)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_switch_and_a_turn_are_measured_here():
    found = measured_handover()
    assert 0 < found.switch < 1e-3
    assert 1e-4 < found.turn < 1.0


FARM = """
  int task = 0, busy = 0, none = 0;
  if(!rank){
    for(int p = 1; p < size; p++){ MPI_Send(&task, 1, MPI_INT, p, 1, MPI_COMM_WORLD); busy++; }
    for(int left = 60 - busy; busy > 0; ){
      MPI_Status s;
      MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &s);
      if(left-- > 0) MPI_Send(&task, 1, MPI_INT, s.MPI_SOURCE, 1, MPI_COMM_WORLD);
      else { MPI_Send(&none, 1, MPI_INT, s.MPI_SOURCE, 0, MPI_COMM_WORLD); busy--; }
    }
  } else for(;;){
    MPI_Status s;
    MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    if(!s.MPI_TAG) break;
    volatile double x = 0;
    for(long i = 0; i < 300000; i++) x += i;
    MPI_Send(&task, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
"""


@pytest.mark.parametrize(("cores", "least", "most"), [(4, 15, 25), (2, 26, 34)])
def test_a_worker_that_shares_its_core_with_another_one_gets_fewer_tasks(tmp_path, cores, least, most):
    path = compiled(tmp_path, BEGIN + FARM + END)
    rows = rehearse(path, (), 4, Link(1e-6, 5e9), cores)[0].rows  # ranks 2 and 3 share a core, if any
    tasks = [int((one["kind"] == rehearsal.SEND).sum()) for one in rows[1:]]
    assert sum(tasks) == 60
    assert least <= tasks[0] <= most


def test_a_link_is_stated_or_read_from_a_profile(tmp_path):
    assert link_of("1e-6,5e9") == Link(1e-6, 5e9, 1e-6, None)
    near = flat_class("same host", 3e-7, 5e-7, 1e-10, 4096)
    path = tmp_path / "machine.json"
    save_profile(planted_machine([1, 1], network=planted_network(near=near)), path)
    found = link_of(str(path))
    assert found == Link(pytest.approx(5e-7 + 8e-10), pytest.approx(1e10), pytest.approx(3e-7), 4096)


def test_a_profile_without_messages_within_a_host_is_refused(tmp_path):
    save_profile(structs.replace(planted_machine([1, 1]), network=None), tmp_path / "machine.json")
    with pytest.raises(InputError, match="no messages within a host"):
        link_of(str(tmp_path / "machine.json"))
    with pytest.raises(InputError, match="SECONDS,BYTES/S"):
        link_of("none.json")
