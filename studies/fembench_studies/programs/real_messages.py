"""Ring, fork and join with real messages, predicted from the network measured by `characterize --network`.

A message of m bytes takes T = Os + L + Or, each from the profile of its two hosts (Mendes 2004, 3.10), and
longer after computing: a message of a ring always comes after a task, of the messages of a fork or join only
the first one does, and that after two, as repetitions follow one another. The times of tasks come from a
calibration made just before, in which each follows a message of m bytes. The prediction is

    ring   every rank computes and sends to the next: all tasks and all T
    fork   rank 0 computes, sends to children elsewhere, computes: both tasks and every Os (6.1)
    join   children elsewhere send to rank 0, which computes before and after: both tasks and every Or (6.1),
           or the messages of one child after the other if these take longer

MPI_Send of a large message returns when it has been received. So the next one of its sender waits for that,
and begins when its receiver has returned from the previous one.

It is written before the run; `compared_messages` compares them. Tasks are as long as their messages unless
their size is given, because a run in which messages hardly count does not test them.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from fembench.base.units import plural, seconds, size
from fembench.errors import InputError
from fembench.records.hlogp import NOTHING, Computed, MessageCost, message_cost
from fembench.records.network import PairClass
from fembench.records.prediction import MEASURED_NETWORK
from fembench.records.profile import Profile
from fembench_studies.programs.graphs import ROUND, burn_rounds
from fembench_studies.programs.job import launch
from fembench_studies.programs.partners import SMALL, ends_of, partners
from fembench_studies.programs.record import AppCase, AppPrediction, AppRecord, save_app
from fembench_studies.scheduling.task_graph import USUAL

KINDS = ("ring", "fork", "join")
REPETITIONS = 100
PROBE = 1000  # rounds
EXPECTED = "round trip by the profile"  # of a prediction's terms
GUESSES = 8  # of the length of tasks, until it is that of their messages
Calls = Literal["isend", "send"]


def case_of_messages(
    kind: str, ranks: int, calls: Calls, *, n_bytes: int, tasks: int = 0, units: int = 0, repetitions: int = 0
) -> AppCase:
    """The case of a graph; children of fork and join compute nothing. A task has `units` rounds of work; 0:
    as many as take the time of its messages (`sized`). Raises InputError."""
    if kind not in KINDS:
        raise InputError(f"{kind} with --machine: expected one of {', '.join(KINDS)}")
    if ranks < 2:
        raise InputError(f"{kind} on {ranks} rank: expected at least two, since messages need two ranks")
    tasks = tasks or (ranks * math.ceil(USUAL[kind] / ranks) if kind == "ring" else USUAL[kind])
    if tasks < 3 or n_bytes < 16 or min(units, repetitions) < 0:
        raise InputError(
            f"{kind} of {tasks} tasks, messages of {n_bytes} bytes: expected at least 3 tasks and 16 bytes"
        )
    edges, host, idle = {"ring": _ring, "fork": _fork, "join": _join}[kind](tasks, ranks)
    return AppCase(
        program=kind,
        ranks=ranks,
        tasks=len(host),
        size=units,
        n_bytes=n_bytes,
        order=tuple(range(len(host))),
        host=host,
        edges=edges,
        idle=idle,
        calls=calls,
        repetitions=repetitions or REPETITIONS,
    )


Parts = tuple[tuple[tuple[int, int], ...], tuple[int, ...], tuple[int, ...]]  # edges, hosts, idle tasks


def _ring(tasks: int, ranks: int) -> Parts:
    host = (*(t % ranks for t in range(tasks)), 0)
    return tuple((t, t + 1) for t in range(tasks)), host, (tasks,)


def _fork(tasks: int, ranks: int) -> Parts:
    children = range(1, tasks - 1)
    host = (0, *(1 + (t - 1) % (ranks - 1) for t in children), 0)
    return tuple((0, t) for t in range(1, tasks)), host, tuple(children)


def _join(tasks: int, ranks: int) -> Parts:
    children = range(tasks - 2)
    host = (*(1 + t % (ranks - 1) for t in children), 0, 0)
    return tuple((t, tasks - 1) for t in range(tasks - 1)), host, tuple(children)


class Costs(NamedTuple):
    """The messages between ranks, in the order of the edges."""

    ends: list[tuple[int, int]]  # ranks: sender and receiver
    messages: list[MessageCost]
    waits: list[bool]  # whether the sender waits until it has been received


def costs_of(case: AppCase, profile: Profile, task: float) -> Costs:
    """Os, L and Or of every message between ranks if a task takes `task` seconds. Raises InputError."""
    ends = ends_of(case)
    used = _classes_between(case, profile, ends)
    since = task if case.program == "ring" else _in_a_row(case) * task  # the previous message
    after, warm = Computed(since, since, swept=False), NOTHING
    before = [after if k == 0 or case.program == "ring" else warm for k in range(len(ends))]
    found = [message_cost(one, case.n_bytes, computed=computed) for one, computed in zip(used, before)]
    if min(cost.total for cost in found) <= 0:
        raise InputError(
            f"the profile's messages of {size(case.n_bytes)} by MPI_{case.calls.capitalize()} take no time: "
            "the machine was busy during the measurement; repeat `characterize --network`"
        )
    large = [one.switch is not None and case.n_bytes >= one.switch for one in used]
    return Costs(ends, found, [case.calls == "send" and one for one in large])


def _classes_between(case: AppCase, profile: Profile, pairs: Sequence[tuple[int, int]]) -> list[PairClass]:
    """The class of messages from the first to the second rank of each pair. Raises InputError."""
    classes, pair_class = classes_of(case, profile)
    placed = profile.environment.rank_host
    return [classes[pair_class[placed[p]][placed[q]]] for p, q in pairs]


def classes_of(case: AppCase, profile: Profile) -> tuple[tuple[PairClass, ...], Sequence[Sequence[int]]]:
    """(classes of messages by the case's MPI call, [host][host] -> class). Raises InputError."""
    network, placed = profile.network, profile.environment.rank_host
    if network is None:
        raise InputError(
            "the profile has no network: expected a profile of `fembench characterize --network`"
        )
    if case.ranks > len(placed):
        raise InputError(f"{plural(case.ranks, 'rank')}: the profile has {len(placed)}; expected no more")
    classes = network.classes if network.send_mode == case.calls else network.blocking
    if not classes:
        raise InputError(
            f"the profile has no messages by MPI_{case.calls.capitalize()}: measure them (--send)"
        )
    if not any(one.cold for one in classes):
        raise InputError(
            "the profile does not say how long messages take after computing; repeat `characterize --network`"
        )
    return classes, network.pair_class


def ring_makespan(computing: Sequence[float], messages: Sequence[MessageCost]) -> float:
    """Each rank computes, then sends to the next; the last one sends back to the first (3.10)."""
    return sum(computing) + sum(cost.total for cost in messages)


def fork_delay(overheads: Sequence[float], local: float) -> float:
    """Delay of the sender's own next task, after all its sends (6.1): the sum of Os; for a join, of Or."""
    return sum(overheads) + local


def error_percent(measured: float, estimated: float) -> float:
    """|estimated - measured| in per cent of the measured value."""
    return 100 * abs(estimated - measured) / measured


def messages_seconds(case: AppCase, costs: Costs, task: float) -> float:
    """Delay of the last task due to messages, if a task takes `task` seconds."""
    if case.program == "ring":
        return ring_makespan((), costs.messages)
    if case.program == "fork":
        return _sends(costs)
    return max(
        fork_delay([c.receive for c in costs.messages], 0.0),
        *(_one_child(costs, child, task) for child in sorted({source for source, _ in costs.ends})),
    )


def _sends(costs: Costs) -> float:
    """Delay of a fork by its sends."""
    now, ready = 0.0, dict.fromkeys((child for _, child in costs.ends), 0.0)
    for (_, child), cost, waits in zip(*costs):
        begin = max(now, ready[child]) if waits else now
        now, ready[child] = begin + cost.send, begin + cost.total
    return now


def _one_child(costs: Costs, child: int, task: float) -> float:
    """Delay of a join by one child, which sends while rank 0 computes for `task` seconds."""
    own = [(c, waits) for (source, _), c, waits in zip(*costs) if source == child]
    last, waits = own[-1]
    if waits:  # each message begins when the previous one has been received
        return own[0][0].receive + sum(c.total for c, _ in own[1:])
    return sum(c.send for c, _ in own) + last.latency + last.receive - task


def sized(case: AppCase, profile: Profile, round_seconds: float) -> AppCase:
    """The case with tasks as long as their messages, if its size is not given. Raises InputError."""
    costs_of(case, profile, 0.0)  # a wrong profile is an error before anything is measured
    if case.size:
        return case
    task, tasks = 0.0, _in_a_row(case)
    for _ in range(GUESSES):
        task = messages_seconds(case, costs_of(case, profile, task), task) / tasks
    return msgspec.structs.replace(case, size=max(round(task / round_seconds), 1))


def _in_a_row(case: AppCase) -> int:
    """Tasks on the way to the end of the last one."""
    return sum(t not in case.idle for t in range(case.tasks))


def round_time() -> float:
    """Seconds of a round of work on the processor here, roughly."""
    burn_rounds(PROBE)
    begin = time.perf_counter()
    burn_rounds(PROBE)
    return (time.perf_counter() - begin) / PROBE


def promise(case: AppCase, calibration: AppRecord, profile: Profile, source: str) -> AppPrediction:
    """The prediction of a future run. Raises InputError."""
    one = calibration.samples.get(ROUND, ())
    if len(one) < case.ranks or calibration.case.n_bytes != case.n_bytes:
        raise InputError(
            f"{calibration.id}: no rounds of work after messages of {size(case.n_bytes)} on "
            f"{plural(case.ranks, 'rank')}; expected a calibration of such a {case.program} with --machine"
        )
    low, middle, high = (computing(case, one, q) for q in (0.25, 0.5, 0.75))
    task = middle / _in_a_row(case)
    messages = messages_seconds(case, costs_of(case, profile, task), task)
    return AppPrediction(
        low=low + messages,
        high=high + messages,
        terms={
            "makespan": (middle + messages,) * 2,
            "messages": (messages,) * 2,
            "computing": (middle,) * 2,
            EXPECTED: (expected_trip(case, profile),) * 2,
        },
        model=f"{calibration.id}, {source}",
        compose="HLogP",
        conditionals="none",
        method=MEASURED_NETWORK,
    )


def computing(case: AppCase, rounds: Sequence[Sequence[float]], quantile: float = 0.5) -> float:
    """Seconds of all tasks, from samples of a round of work: `rounds`: [rank]."""
    working = (case.host[t] for t in range(case.tasks) if t not in case.idle)
    return sum(case.size * float(np.quantile(rounds[rank], quantile)) for rank in working)


def expected_trip(case: AppCase, profile: Profile) -> float:
    """Seconds that the round trips just before and after a run (`partners`) take by the
    profile, on average over the pairs. Raises InputError."""
    used = _classes_between(case, profile, list(partners(case).items()))
    return float(np.mean([sum(message_cost(one, m).total for m in (case.n_bytes, SMALL)) for one in used]))


def predicted_run(
    case: AppCase,
    profile: Profile,
    *,
    id: str,
    scratch: Path,
    source: str,
    say: Callable[[str], None],
    calibration: AppRecord | None = None,
    samples: int = 20,
    command: str = "",
    hostfile: str = "",
) -> AppRecord:
    """The record of a run that is predicted first, and calibrated before that if no calibration is given.

    `source`: name of the profile. Raises InputError or RunFailedError.
    """
    case = sized(case, profile, round_time())
    if calibration is None:
        say(f"calibrating: tasks on {case.ranks} ranks")
        calibration = launch(
            case,
            id=f"{id}-calibrated",
            scratch=scratch,
            command=command,
            hostfile=hostfile,
            calibrate=samples,
        )
        save_app(calibration, scratch / f"{id}-calibrated.json")
    before = promise(case, calibration, profile, source)
    whole, messages = (seconds(before.terms[name][0]) for name in ("makespan", "messages"))
    say(f"predicted: {whole}, including {messages} for messages")
    return launch(case, id=id, scratch=scratch, command=command, hostfile=hostfile, predicted=before)
