"""Programs whose times are known in closed form, to test the simulators."""

from fembench.model.graph import (
    Collective,
    Compute,
    ExecutionGraph,
    Loop,
    Receive,
    Send,
    Wait,
)

PHASES = ("compute", "message", "allreduce")
COMPUTE, MESSAGE, ALLREDUCE = range(3)


def graph_of(programs, source="", hosts=()):
    return ExecutionGraph(phases=PHASES, programs=tuple(map(tuple, programs)), source=source, hosts=hosts)


def ping_pong(rounds, m):
    """Rank 0 sends, rank 1 sends back."""
    there, back = Send(1, m, MESSAGE, blocking=True), Receive(1, m, MESSAGE, blocking=True)
    other = (Receive(0, m, MESSAGE, blocking=True), Send(0, m, MESSAGE, blocking=True))
    return graph_of([[Loop(rounds, (there, back))], [Loop(rounds, other)]], f"ping-pong of {m} bytes")


def master_slaves(ranks, seconds, out, back):
    """Rank 0 sends `out` bytes to each other rank, which computes its part of `seconds` and answers."""
    slaves = range(1, ranks)
    master = [Send(r, out, MESSAGE, blocking=True) for r in slaves]
    master += [Receive(r, back, MESSAGE, blocking=True) for r in slaves]
    slave = (
        Receive(0, out, MESSAGE, blocking=True),
        Compute(COMPUTE, seconds / (ranks - 1)),
        Send(0, back, MESSAGE, blocking=True),
    )
    return graph_of([master, *[slave] * (ranks - 1)], "master and slaves")


def ring(ranks, rounds, m, seconds=0.0):
    """A token goes round: each rank computes, then sends it on."""
    first = (
        Compute(COMPUTE, seconds),
        Send(1 % ranks, m, MESSAGE, blocking=True),
        Receive(ranks - 1, m, MESSAGE, blocking=True),
    )
    others = [
        (
            Receive(r - 1, m, MESSAGE, blocking=True),
            Compute(COMPUTE, seconds),
            Send((r + 1) % ranks, m, MESSAGE, blocking=True),
        )
        for r in range(1, ranks)
    ]
    return graph_of([[Loop(rounds, body)] for body in (first, *others)], "ring")


def incast(senders, m):
    """All ranks but 0 send to it at once."""
    receiver = (*(Receive(r, m, MESSAGE) for r in range(1, senders + 1)), Wait(MESSAGE))
    return graph_of([receiver, *[(Send(0, m, MESSAGE, blocking=True),)] * senders], "incast")


def allreduces(ranks, m, turns=1):
    return graph_of([[Loop(turns, (Collective("allreduce", m, ALLREDUCE),))]] * ranks, "all-reduce")


def cg_chain(seconds, iterations, halo, *, inside=0.0, reductions=2):
    """CG of ranks in a row: messages with both neighbours, then `seconds`[rank], then all-reduces of 8 bytes.

    `inside` is the part of the computing that overlaps the messages.
    """
    return cg_graph(
        seconds,
        [[q for q in (r - 1, r + 1) if 0 <= q < len(seconds)] for r in range(len(seconds))],
        iterations,
        halo,
        inside=inside,
        reductions=reductions,
    )


def cg_graph(seconds, neighbours, iterations, halo, *, inside=0.0, reductions=2):
    """The same with any neighbours."""
    sums = [Collective("allreduce", 8, ALLREDUCE)] * reductions
    programs = [
        [
            Loop(
                iterations,
                (
                    *(Receive(q, halo, MESSAGE) for q in others),
                    *(Send(q, halo, MESSAGE) for q in others),
                    Compute(COMPUTE, inside * t),
                    Wait(MESSAGE),
                    Compute(COMPUTE, (1 - inside) * t),
                    *sums,
                ),
            )
        ]
        for t, others in zip(seconds, neighbours)
    ]
    return graph_of(programs, "CG")
