"""The four farm applications of Herai 2005 as models: kernels, PASL and sizes of
messages (Tabs 5.2 to 5.6).

The thesis prints only the kernel of π (App. A). The others follow its descriptions: for
the primes, each task has an equal part of the numbers, with a block that runs only for
primes; for the matrices, each task squares one matrix, then applies + - * / to every
element or to randomly selected ones. Loop lengths are chosen so that two machines take
about as long as in the thesis, and so that the conditional block has about the share of
the worst case that the thesis' estimates imply.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fembench.base.config import read_toml
from fembench_studies.pamela import pasl
from fembench_studies.pamela.build import build
from fembench_studies.pamela.pamela import Node, PamelaModel
from fembench_studies.pamela.source import analyse

App = Literal["pi", "prim", "mat", "rand"]
VERSIONS = {"A": (100, 0), "B": (100, 1), "C": (200, 0), "D": (200, 1)}  # tasks, index of the size
SIZES: dict[App, tuple[int, int]] = {
    "pi": (1_000_000_000, 2_000_000_000),  # points of all tasks
    "prim": (500_000, 1_000_000),  # last number
    "mat": (128, 256),  # rows of a matrix; one matrix per task
    "rand": (128, 256),
}
SELECTED = 0.25  # of the elements, in rand
REGISTRY = {"random": "random_double"}
TEXTS = read_toml(Path(__file__).with_name("farms.toml"), dict[str, str])
BODY: dict[App, tuple[str, ...]] = {  # parts of the text of a farm
    "pi": ("ends", "pi"),
    "prim": ("ends", "prim"),
    "mat": ("ends", "squared", "mat"),
    "rand": ("ends", "squared", "rand"),
}


@dataclass(frozen=True)
class FarmApplication:
    """An application, ready for evaluation."""

    model: PamelaModel
    tasks: int
    q: float  # probability that its conditional is true


def program(app: App, version: str) -> FarmApplication:
    """One of the sixteen versions, from 'pi', 'A' to 'rand', 'D'."""
    tasks, which = VERSIONS[version]
    size = SIZES[app][which]
    each = size // tasks
    elements = size * size
    numbers = {"tasks": tasks, "each": each, "size": size, "elements": elements, "turns": 4 * size}
    text = "".join(TEXTS[part] for part in BODY[app]).format(**numbers)
    source = analyse(text, where=app, registry=REGISTRY)
    graph = pasl.parse(TEXTS["graph"].format(app=app, tasks=tasks), app)
    bodies: dict[str, Node] = {b.code: source.body(b.code) for b in graph.batches}
    message = 8.0 * elements if app in ("mat", "rand") else 64.0
    sizes = {("dataSizeIn", 1): message, ("dataSizeOut", 1): message, ("codeSize", 1): 879.0}
    model = build(graph, bodies | source.bodies, sizes)
    return FarmApplication(model, tasks, true_share(app, size))


def true_share(app: App, size: int) -> float:
    """Probability that the conditional is true: points in the circle,
    primes, selected elements."""
    if app == "prim":
        return share_of_primes(size)
    return {"pi": 0.7853981633974483, "rand": SELECTED}.get(app, 0.0)


def share_of_primes(last: float) -> float:
    """Approximate fraction of the numbers up to the last that is prime (5.4.3)."""
    return 1 / (math.log(last) - 1)
