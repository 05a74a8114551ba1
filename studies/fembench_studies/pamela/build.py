"""Task graph to PAMELA model: where tasks compute, and the messages (Herai 2005, 4.4.3, Figs 4.13 to 4.16).

Batches of one task run on the coordinator. Others are dealt to the workers: S[k,p] tasks of batch k on
machine p. The network is one bus (App. A) or one link per machine (4.4.3).
"""

from collections.abc import Mapping
from typing import Literal

from fembench.errors import InputError
from fembench_studies.pamela.pamela import (
    PATH,
    Node,
    PamelaLoop,
    PamelaModel,
    Sequence,
    Use,
    sequence,
)
from fembench_studies.pamela.pasl import Batch, BatchGraph
from fembench_studies.pamela.series_parallel import layered, repeated, steps

Network = Literal["bus", "links"]


def build(
    graph: BatchGraph,
    bodies: Mapping[str, Node],
    sizes: Mapping[tuple[str, int], float],
    network: Network = "bus",
) -> PamelaModel:
    """The model of an application. Raises InputError.

    `bodies`: code or function called by it -> its body; `sizes`: ("codeSize" | "dataSizeIn" | "dataSizeOut",
    batch from 0) -> bytes.
    """
    missing = [b.code for b in graph.batches if b.code not in bodies]
    if missing:
        raise InputError(f"no source of {missing[0]}; expected a function of that name")
    form = steps(graph)[1]
    parts = {"L": layered(graph), PATH: form} if repeated(form) else {"L": form}
    for batch in graph.batches:
        parts[f"L_{batch.number}"] = _batch(graph, batch, sizes, network)
    tasks = {b.number - 1: b.code for b in graph.batches}
    return PamelaModel(parts | dict(bodies), tasks, dict(sizes))


def _batch(graph: BatchGraph, batch: Batch, sizes: Mapping[tuple[str, int], float], network: Network) -> Node:
    """𝔹 of a batch: its tasks, then its messages to each successor."""
    k = batch.number - 1
    consumers = [graph.batch(n) for n in graph.successors(batch.number)]
    done: list[Node] = []
    if batch.cardinality == 1:
        done.append(Use("COORD", f"task[{k},0](COORD)"))
    else:
        results = [_send("p", "COORD", f"dataSizeOut(task[{k},0])", network) for _ in consumers]
        done.append(_all_tasks(k, sequence(Use("p", f"task[{k},0](p)"), *results)))
    for consumer in (c for c in consumers if c.cardinality > 1):
        to = consumer.number - 1
        if ("codeSize", to) in sizes:
            code = _send("COORD", "p", f"codeSize(task[{to},0])", network)
            done.append(PamelaLoop("seq", "p", "1", "P", code))
        done.append(_all_tasks(to, _send("COORD", "p", f"dataSizeIn(task[{to},0])", network)))
    return sequence(*done) if len(done) > 1 else Sequence((done[0],))


def _all_tasks(k: int, body: Node) -> Node:
    return PamelaLoop("par", "p", "1", "P", PamelaLoop("par", "i", "1", f"S[{k},p]", body))


def _send(source: str, target: str, size: str, network: Network) -> Use:
    resource = "net" if network == "bus" else "net[0]" if source == "COORD" else "net[p]"
    return Use(resource, f"send[{source},{target}]({size})")
