"""The experiments of every study by name, a sentence each, and which of them are asked for."""

from collections.abc import Sequence

from fembench.base.errors import InputError
from fembench.studies.thesis_002.bsp_plan import scenarios

EXPERIMENTS: dict[str, dict[str, str]] = {
    "thesis-000": {
        "pi": "Monte-Carlo π on the virtual park (Tables 5.7, 5.8)",
        "prim": "primes on the virtual park, conditionals at their worst (Tables 5.9, 5.10)",
        "primQ": "primes on the virtual park, conditionals by Q (Tables 5.11, 5.12)",
        "mat": "products of whole matrices on the virtual park (Tables 5.13, 5.14)",
        "rand": "selected elements of matrix products on the virtual park (Tables 5.15, 5.16)",
        "mpi-pi": "Monte-Carlo π as a farm under MPI, predicted before it runs",
        "mpi-primes": "primes as a farm under MPI, predicted before it runs",
        "mpi-matrices": "products of whole matrices as a farm under MPI, predicted before it runs",
        "mpi-partial": "selected elements as a farm under MPI, predicted before it runs",
    },
    "thesis-001": {
        "ring": "rings with real messages, predicted from this machine's measured network",
        "fork": "fork with real messages, predicted likewise: how much sends delay their sender (6.1)",
        "join": "join with real messages, predicted likewise: how much receives delay their receiver (6.1)",
        "held": "rings, fork, join held at the thesis' own Os, L, Or: checks the executor, not the model",
        "diamond": "schedules of a diamond of 25 tasks on ten hosts (6.2)",
        "fork-join": "schedules of a fork-join of 14 tasks on ten hosts (7)",
        "messages": "what messages between two ranks cost here (Tables 4.15, 5.1, 5.2)",
        "slowness": "H of loaded hosts from the thesis' own loads and clocks (Tables 4.27 to 4.29)",
    },
    "thesis-002": {
        f"{s.table}-{s.name}": f"{s.program} in {s.n_blocks} blocks (Table {s.table}, column {s.name})"
        for s in scenarios()
    },
    "thesis-003": {
        "integral": "an integral on eight processes, simulated and run (Table 4.1)",
        "product": "a matrix product on 2, 4 and 8 processes, simulated and run (Tables 4.2 to 4.5)",
    },
    "thesis-004": {
        "E0": "the hosts (Tables 5.1, 5.4)",
        "E1": "what reading a timer costs (Tables 5.2, 5.3)",
        "E2": "sizes and pictures of the meshes (Table 5.5)",
        "E3": "phases with one task per host (Tables 5.6 to 5.11)",
        "E4": "phases with all tasks on one host, on two cores and on one (Tables 5.12 to 5.17)",
        "E5": "time lines of two tasks on two cores and on one (Figs 5.20, 5.21)",
        "E6": "iterations against equations (Fig. 5.22)",
        "E7": "communication inside CG (Tables 5.18 to 5.23)",
        "E8": "send and receive inside one host (Table 5.24)",
        "E9": "totals of one host of each kind, and how much slower the slow one is (Tables 5.25, 5.26)",
        "E10": "runs 1 to 11: a fast and a slow host together (Table 5.27)",
        "E11": "pairs of hosts: fast, mixed, slow (Tables 5.28 to 5.30)",
        "E12": "the parts of Mesh 3 (Tables 5.31 to 5.33)",
        "E13": "weighted parts on a fast and a slow host (the thesis' future work)",
        "E14": "dense against sparse storage: why the speedups are super-linear",
    },
}


def chosen(study: str, text: str) -> tuple[str, ...]:
    """The experiments in 'E7,E9', in the study's order; () for '', which means all. Raises InputError."""
    known, asked = EXPERIMENTS[study], [name.strip() for name in text.split(",") if name.strip()]
    unknown = next((name for name in asked if name not in known), None)
    if unknown is not None or bool(text) != bool(asked):
        raise InputError(f"--only {text}: {study} has {', '.join(known)}; got '{unknown or text}'")
    return tuple(name for name in known if name in asked)


def wanted(name: str, only: Sequence[str]) -> bool:
    """Whether an experiment is among those asked for."""
    return not only or name in only


def report_name(only: Sequence[str]) -> str:
    """The folder of the page: 'report', or another for a page of some experiments."""
    return "-".join(("report", *only))


def listing(study: str) -> str:
    """Every experiment with its sentence, a line each."""
    known = EXPERIMENTS[study]
    width = max(map(len, known))
    return "\n".join(f"{name:<{width}}  {words}" for name, words in known.items())
