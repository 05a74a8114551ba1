"""A proof as text and as JSON."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from fembench.base.tables import table
from fembench.base.units import few, plural, seconds
from fembench.records.weights import Weights, shares_of
from fembench.stats.compare import FEWEST_NOISE
from fembench.stats.student import FEWEST
from fembench.stats.summary import fewest_for
from fembench.weights.advice import largest_gains
from fembench.weights.proof import Proof
from fembench.weights.scaling import CapturedGain

MOST_RANKS = 8  # whose shares are printed one by one
UNKNOWN = "unknown"
GAIN = "1 - median over pairs of weighted / equal"


def conclusions(proof: Proof, weights: Weights) -> list[str]:
    """What disturbed the runs, the verdict, the slowest host or rank, and what makes runs PROVISIONAL."""
    label = f"SYNTHETIC: {weights.synthetic}" if weights.synthetic else ""
    said = [label, proof.disturbed, proof.crowded, f"verdict: {proof.advice.text}", *_slow(proof, weights)]
    return list(filter(None, [*said, *proof.provisional]))


def tables(proof: Proof, weights: Weights, everything: bool = False) -> str:
    """Shares, times, gain and imbalance; `everything`: also by rank, and imbalance by phase."""
    if not everything:
        return f"{_in_line(weights)}\n\n{_times(proof)}"
    return "\n\n".join([_shares(proof, weights), _times(proof), _phases(proof)])


def _in_line(weights: Weights) -> str:
    """'shares: 0.680 : 0.320'; of many ranks, by host."""
    if len(weights.ranks) <= MOST_RANKS:
        return f"shares: {' : '.join(f'{share:.3f}' for share in shares_of(weights))}"
    hosts: dict[str, list[float]] = {}
    for rank in weights.ranks:
        hosts.setdefault(rank.host, []).append(rank.share)
    said = [f"{name} {sum(of):.3f} on {plural(len(of), 'rank')}" for name, of in hosts.items()]
    return f"shares: {few(said, MOST_RANKS)} (--all: by rank)"


def _shares(proof: Proof, weights: Weights) -> str:
    rows = [
        [rank, r.host, f"{r.share:.4f}", _range(r.low, r.high), f"{got:.4f}"]
        + [f"{100 * (got / r.share - 1):+.2f} %"]
        for rank, (r, got) in enumerate(zip(weights.ranks, proof.achieved))
    ]
    heads = ["rank", "host", "target share", "95 % interval", "achieved", "off target"]
    return table(heads, rows, align="rlrrrr")


def _times(proof: Proof) -> str:
    c, g = proof.advice.comparison, proof.captured
    known = isfinite(c.noise)
    noise = f"n = {plural(c.n, 'pair')}" if known else _needs(FEWEST_NOISE)
    inside = [_percent(1 - 1 / bound) for bound in c.interval] if c.interval else None
    bounds = f"95 %: {inside[0]} to {inside[1]}" if inside else f"interval unknown ({_needs(fewest_for())})"
    rows = [
        ["time per set, equal shares", seconds(proof.equal), "median over runs, as in the next rows"],
        [
            "time per set, weighted",
            seconds(proof.weighted),
            f"{proof.over_ideal:.3f} x ideal at the speeds of its own run",
        ],
        *([[f"weighted, without {proof.left_out}", seconds(proof.without), ""]] if proof.left_out else []),
        *[[f"time per set, {name}", seconds(time), ""] for name, time in proof.alone.items()],
        ["ideal: no rank waits", seconds(proof.ideal), "at the speeds of the equal runs"],
        ["gain", _percent(1 - 1 / c.ratio) if known else UNKNOWN, f"{GAIN}, {bounds}"],
        ["noise, A/A", _percent(c.noise) if known else UNKNOWN, noise],
        [
            "captured gain",
            _captured(g) if known else UNKNOWN,
            "; ".join(filter(None, [_interval(g, c.n), "at the speeds of each run"])),
        ],
        ["efficiency, equal", f"{proof.e_het[0]:.3f}", "E_het: of the summed speed of all ranks"],
        ["efficiency, weighted", f"{proof.e_het[1]:.3f}", ""],
        ["imbalance, equal", _percent(proof.imbalance[0]), "of computing time: max / mean - 1"],
        ["imbalance, weighted", _percent(proof.imbalance[1]), ""],
    ]
    return table(["measured", "value", ""], rows, align="lrl")


def _phases(proof: Proof) -> str:
    rows = [[name, _percent(a), _percent(b)] for name, a, b in proof.by_phase]
    return table(["imbalance by phase", "equal", "weighted"], rows, align="lrr")


def _slow(proof: Proof, weights: Weights) -> list[str]:
    """The slowest host or rank of the equal runs, and whether the weights disagree."""
    owners, slow = proof.owners, proof.speeds.slow
    what = "rank" if owners[0].startswith("rank ") else "host"
    head = f"slowest {what} in the equal runs"
    if not slow:
        why = "not available: DISTURBED" if proof.speeds.disturbed else proof.speeds.none_slow(what)
        return [f"{head}: {'too short to tell' if proof.too_short else why}"]
    one = slow[0]
    share = largest_gains(shares_of(weights), owners)[slow[0].name]
    ends = f"95 %: {100 * one.low:.0f} to {100 * one.high:.0f} %"
    said = f"{head}: {one.name}, {100 * one.speed:.0f} % of the typical {what} ({ends})"
    lines = ["; ".join(filter(None, [said, one.cause]))]
    if share > owners.count(one.name) / len(owners):
        lines.append(
            f"{one.name} was faster in the runs that the weights come from, hence its target share of "
            f"{share:.4f}: speeds changed between the runs"
        )
    return lines


def _range(low: float | None, high: float | None) -> str | None:
    return None if low is None else f"{low:.4f} – {high:.4f}"


def _captured(gain: CapturedGain) -> str:
    return "nothing to capture" if gain.nothing_to_capture else f"{gain.value:.2f}"


def _interval(gain: CapturedGain, pairs: int) -> str:
    if gain.interval:
        return f"95 %: {gain.interval.low:.2f} to {gain.interval.high:.2f}"
    if gain.nothing_to_capture:
        return ""
    return "interval unknown" + (f" ({_needs(FEWEST)})" if pairs < FEWEST else "")


def _needs(pairs: int) -> str:
    return f"needs at least {pairs} pairs"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def as_tree(proof: Proof, weights: Weights) -> dict[str, Any]:
    """The proof as plain values, for JSON."""
    c = proof.advice.comparison
    return {
        "equal_seconds": proof.equal,
        "weighted_seconds": proof.weighted,
        "ideal_seconds": proof.ideal,
        "weighted_over_ideal": proof.over_ideal,
        "left_out": proof.left_out,
        "alone_seconds": proof.alone,
        "without_seconds": proof.without if proof.left_out else None,
        "ratio": c.ratio,
        "ratio_interval": list(c.interval) if c.interval else None,
        "noise": c.noise,
        "pairs": c.n,
        "captured_gain": None if proof.captured.nothing_to_capture else proof.captured.value,
        "captured_interval": list(proof.captured.interval) if proof.captured.interval else None,
        "e_het": list(proof.e_het),
        "imbalance": list(proof.imbalance),
        "imbalance_by_phase": [list(row) for row in proof.by_phase],
        "speeds": [asdict(one) for one in proof.speeds.hosts],
        "speeds_unknown": proof.speeds.unknown,
        "shares": list(shares_of(weights)),
        "achieved": list(proof.achieved),
        "verdict": proof.advice.kind,
        "text": proof.advice.text,
        "synthetic": weights.synthetic,
        "provisional": list(proof.provisional),
        "oversubscribed": proof.crowded,
        "disturbed": proof.disturbed,
    }
