"""Weights: target share of each rank, with interval, source and age.

Written by `fembench weights`, read by `run` and `sweep`. Schema history:
    1  first
"""

import datetime
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from fembench.base.config import write_json
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.record import Frozen
from fembench.records.schema import check_time, read

WEIGHTS_SCHEMA = 1
FAST = 0.9  # of the speed of the fastest host: what a host needs to be one of the fast
UNDECIDED = "tune reached no verdict on these weights"  # begins a note
Rule = Literal["time", "rate", "comm", "tasks", "given"]
RULES = get_args(Rule)[:-1]  # by which shares follow from measurements


class RankShare(Frozen, frozen=True):
    """The target share of one rank."""

    host: str
    share: float  # of the cells; all sum to 1
    low: float | None = None  # 95 % interval; None: too few samples, or a rule that gives none
    high: float | None = None
    cost: float = 0.0  # computing per cell, in seconds or relative; 0: unknown
    device: str = ""  # what the rank computed on: "cpu", or a kind of device; "": not recorded


class Weights(Frozen, frozen=True):
    """Shares of all ranks, and their origin."""

    schema: int
    rule: Rule
    created: str  # ISO 8601, UTC
    measured: str  # date of the oldest source
    source: tuple[str, ...]  # ids of records, or files
    ranks: tuple[RankShare, ...]
    mesh: str = ""  # of the sources
    mesh_hash: str = ""
    storage: str = ""
    precond: str = ""
    tasks: tuple[tuple[str, int], ...] = ()  # rule tasks: (host, number of its equal tasks)
    synthetic: str = ""  # how heterogeneity was emulated (rule E8)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Weights(shares {as_text(self)}; by {self.rule}; measured {self.measured[:10]})"


def shares_of(weights: Weights) -> tuple[float, ...]:
    """(P,) shares that sum to 1."""
    return tuple(r.share for r in weights.ranks)


LOUD = (UNDECIDED, "DISTURBED", "OVERSUBSCRIBED", "PROVISIONAL")  # begins of such notes


def loud_notes(weights: Weights) -> list[str]:
    """The notes that say why the shares may be far off."""
    return [note for note in weights.notes if note.startswith(LOUD)]


def as_text(weights: Weights) -> str:
    """The shares in the format of `--shares`: '0.7,0.3'."""
    return ",".join(f"{share:.9g}" for share in shares_of(weights))


def save_weights(weights: Weights, path: Path | str) -> None:
    """Write weights as JSON, whole or not at all."""
    write_json(path, weights)


def load_weights(path: Path | str) -> Weights:
    """The weights in a file. Raises InputError for another, or a sum that is not 1."""
    if Path(path).is_dir():
        how = f"use `fembench weights {path} -o weights.json` first"
        raise InputError(f"{path}: a folder; expected a file of weights: {how}")
    weights = read(path, Weights, WEIGHTS_SCHEMA, "weights", has="ranks", verb="tune")
    total = sum(shares_of(weights))
    if not weights.ranks or min(shares_of(weights)) <= 0 or abs(total - 1) > 1e-6:
        raise InputError(f"{path}: shares sum to {total:.6g}; expected positive shares that sum to 1")
    check_time(weights.measured, f"{path}: measured")
    return weights


def weights_in(given: Weights | Path | str) -> Weights:
    """Weights as given, or those in a file. Raises InputError."""
    return given if isinstance(given, Weights) else load_weights(given)


def age_seconds(weights: Weights, now: str) -> float:
    """Seconds since the oldest source was measured; `now` as `now_utc` gives it."""
    then, here = (datetime.datetime.fromisoformat(text) for text in (weights.measured, now))
    return (here - then).total_seconds()


def mismatch(weights: Weights, hosts: Sequence[str]) -> str:
    """Why the weights do not fit these hosts, one per rank; '' if they do."""
    mine = [r.host for r in weights.ranks]
    if len(mine) != len(hosts):
        return f"weights for {plural(len(mine), 'rank')}, the run has {len(hosts)}"
    for rank, (theirs, here) in enumerate(zip(mine, hosts)):
        if theirs != here:
            return f"weights for rank {rank} on {theirs}, but it runs on {here}"
    return ""


def stale_hosts(weights: Weights, costs: dict[str, float], tolerance: float = 0.1) -> list[str]:
    """Hosts whose relative cost has changed by more than `tolerance` since then.

    `costs`: host -> seconds per cell now, on any common scale. If two hosts drifted
    apart, both are named, because the one that changed cannot be identified.
    """
    before: dict[str, list[float]] = {}
    for rank in weights.ranks:
        if rank.cost > 0 and costs.get(rank.host, 0) > 0:
            before.setdefault(rank.host, []).append(rank.cost)
    ratios = {host: costs[host] * len(c) / sum(c) for host, c in before.items()}
    if not ratios or max(ratios.values()) / min(ratios.values()) - 1 <= tolerance:
        return []
    middle = statistics.median(ratios.values())
    return sorted(host for host, ratio in ratios.items() if abs(ratio / middle - 1) > tolerance / 3)
