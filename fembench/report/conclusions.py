"""What runs show, in plain words: what was found, what limits it, and what to do.

Every number was measured, or computed from what was measured. No number of ranks is
called faster or slower than another if the interval of the ratio of their times has 1.
"""

import shlex
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from fembench.base.units import count, digits, few, fixed, plural
from fembench.records import phases as ph
from fembench.records.binding import OVERSUBSCRIBED, held_in, partly_cached, sharing_device
from fembench.records.case import FIELDS, Case
from fembench.records.compare import ranks_in_words
from fembench.records.quiet import disturbance, foreign_work
from fembench.records.record import Record
from fembench.records.times import Times
from fembench.records.validity import SETS, WARMUPS, warmups_of
from fembench.report.bases import DEVICES, RANKS, bases, ratio_range
from fembench.report.factors import useful
from fembench.report.headline import merit, rated, scale, sound, usable
from fembench.report.measures import CG, SOLVE, part_of_cg, rank_times
from fembench.report.results import Result, crowded, environments, of_real_hosts
from fembench.report.roofline import product_point
from fembench.report.slow_hosts import host_advice
from fembench.stats.outliers import RELEVANT
from fembench.weights.host_speed import HostSpeeds

NEAR = 0.8  # of the measured bandwidth: from there on, it limits
LARGE = 0.2  # of cg: from there on, waiting or messages limit
NONE = "No single limit stands out"
SCALES = 0.9  # computation scaling: below, it is told
GROWN = 1 + RELEVANT  # bandwidths closer than that are the same
ASKED = ("question", "method", "placement")  # groups of the fields that `tune` is given as well
TUNED = {"emulate", "dilate", *(n for n, f in FIELDS.items() if f.group in ASKED)} - {
    "mesh",
    "ranks",
    "shares",
}
MOST = 4  # numbers of ranks that are named
FEWEST_EQUATIONS = 20_000  # per rank: with fewer, messages dominate
LEFT_OUT = "{} cases are left out of these sentences, but not of the tables."


def conclusions(found: Sequence[Result], failed: int = 0, beside: Sequence[Result] = ()) -> list[str]:
    """Sentences on results, the most urgent first.

    failed: runs without a record; beside: other results, to compare these with
    """
    real = of_real_hosts(found)
    disturbed = disturbance(environments(real), "times")
    failures = f"{plural(failed, 'run')} failed: no number includes them." if failed else ""
    said = [disturbed and f"{disturbed}.", failures, _verdict(real, bool(disturbed))]
    used = usable(real)
    quiet = [r for r in used if not r.disturbed]
    fit = [r for r in quiet if not crowded(r)]
    others = [r for r in usable(beside) if sound(r)]
    by_ranks = _by_ranks(fit, others) if fit else {}
    all_quiet = len(quiet) == len(used)
    if fit:
        told = _of_ranks(by_ranks, [*fit, *others], label=len(real) > 1)
        said += told if all_quiet else told[:-1]  # not: run what was run, but disturbed
    said += [_no_choice(used) if len(by_ranks) < 2 else ""]
    said += [LEFT_OUT.format("DISTURBED")] if fit and not all_quiet else []
    said += [LEFT_OUT.format("SYNTHETIC")] if len(real) < len(found) else []
    said += [_shared_cores(used)]
    slow = _slow_hosts(fit, found[0].speeds) if found else ""
    return list(filter(None, [*said, slow]))


def _no_choice(used: Sequence[Result]) -> str:
    """Why nothing follows on the number of ranks, if several were run, but DISTURBED ones; or ""."""
    alone = [r for r in used if not crowded(r)]
    by_ranks = _by_ranks(alone, []) if alone else {}
    loud = [n for n, r in by_ranks.items() if r.disturbed]
    if len(by_ranks) < 2 or not loud:
        return ""
    which = ranks_in_words(loud[0]) if len(loud) == 1 else f"{few(list(map(str, loud)), MOST)} ranks"
    each = environments(by_ranks[n] for n in loud)
    n = sum(bool(foreign_work([one])) for one in each)
    some = "" if n == len(each) else f"{n} of {len(each)} "
    were = "was" if some and n == 1 else "were"
    return f"Nothing follows on the number of ranks to use: {some}runs on {which} {were} DISTURBED."


def _shared_cores(found: Sequence[Result]) -> str:
    """Why nothing follows from OVERSUBSCRIBED cases; "" if there is none."""
    crowd = [r for r in found if crowded(r)]
    if not crowd:
        return ""
    hosts = max((r.record.environment.hosts for r in crowd), key=len)
    share = f"more ranks than cores share {'this host' if len(hosts) == 1 else 'these hosts'}"
    cores = sum(host.cores for host in hosts)
    remedy = f"; use up to {plural(cores, 'rank')}" if cores else ""
    if device := next(filter(None, (sharing_device(r.record.environment) for r in crowd)), ""):
        share, remedy = device, "; use one rank per device"
    some = f" in {len(crowd)} of {len(found)} cases" if len(found) > 1 else ""
    return f"{OVERSUBSCRIBED}{some}: {share}, so their times are no basis for advice{remedy}."


def _verdict(found: Sequence[Result], disturbed: bool) -> str:
    """Which runs are not VALID, and why; a disturbance has said it already."""
    runs = [one for r in found for one in zip(r.pool.records, r.runs)]
    if len(runs) == 1:
        return _of_one(*runs[0], disturbed)
    counts = [(s, sum(one.verdict.status == s for one, _ in runs)) for s in ("INVALID", "PROVISIONAL")]
    looks = sum(one.verdict.status == "PROVISIONAL" and bool(_too_few(one, times)) for one, times in runs)
    few_sets = f" ({looks} with fewer than {WARMUPS} warm-ups or {SETS} sets)" if looks else ""
    words = [f"{n} {s}{few_sets if s == 'PROVISIONAL' else ''}" for s, n in counts if n]
    why = "see Why runs are not VALID"
    if runs and any(n == len(runs) for _, n in counts):
        return f"All {words[0].replace(' ', ' runs are ', 1)}: {why}."
    return f"Of {len(runs)} runs, {' and '.join(words)}: {why}." if words else ""


def _of_one(record: Record, times: Times, disturbed: bool) -> str:
    status = record.verdict.status
    if status == "VALID":
        return ""
    why = " ".join(record.verdict.sentences())
    if status == "INVALID":
        return f"The run is INVALID: its times do not count. {why}"
    if lacking := _too_few(record, times):
        return f"A quick look, PROVISIONAL: {lacking}; by default, a run takes enough."
    return "" if disturbed else f"The run is PROVISIONAL. {why}"


def _too_few(record: Record, times: Times) -> str:
    """'1 warm-up instead of 2 and 3 sets instead of 10': what a VALID run has more of, as rule D1 says."""
    counts = (warmups_of(record), WARMUPS, "warm-up"), (len(times.timed), SETS, "set")
    return " and ".join(f"{plural(n, noun)} instead of {least}" for n, least, noun in counts if n < least)


def _by_ranks(found: Sequence[Result], beside: Sequence[Result]) -> dict[int, Result]:
    """ranks -> the fastest result, of the question that was run on most numbers of ranks."""
    largest = {r.series: r for r in sorted(found, key=scale)}
    everyone = [*found, *beside]
    each = [_alike(r, everyone) or {r.ranks: r} for r in largest.values()]

    def by_size(one: dict[int, Result]) -> tuple[int, tuple[int, int], float]:
        results = one.values()
        return len(one), max(map(scale, results)), max(map(merit, results))

    return max(each, key=by_size)


def _alike(result: Result, everyone: Sequence[Result]) -> dict[int, Result]:
    """ranks -> the fastest result of the same question and method."""
    found: dict[int, Result] = {}
    for r in bases(result, (r for r in everyone if r.mesh == result.mesh), RANKS):
        if r.ranks not in found or _seconds(r) < _seconds(found[r.ranks]):
            found[r.ranks] = r
    return dict(sorted(found.items()))


def _seconds(result: Result) -> float:
    return result.times[rated(result)].median


def _of_ranks(by_ranks: dict[int, Result], everyone: Sequence[Result], label: bool) -> list[str]:
    """What more ranks gain, what limits them, and how many to use.

    label: whether a sentence says that its runs are PROVISIONAL
    """
    fewest, *more = by_ranks.values()
    use = _enough(by_ranks) if more else fewest
    limit = _limit(use)
    said = [
        (_gain(fewest, use) if more else _rate(use), [fewest, use]),
        (_choice(by_ranks, use) if more else "", [fewest, *more]),
        (_elsewhere(use, everyone), []),
        (limit, [use]),
        (_longer(fewest, use) if limit.startswith(NONE) else "", [fewest, use]),
        (_more(by_ranks, use), []),
    ]
    told = [_labelled(text, used) if label else text for text, used in said]
    if use.record.environment.synthetic:
        first = 0 if told[0] else 1
        told[first] = f"On emulated hosts, {told[first][0].lower()}{told[first][1:]}"
    return told


def _labelled(said: str, used: Sequence[Result]) -> str:
    """The sentence, which says if it rests on a run that is PROVISIONAL."""
    label = _provisional(*used)
    if not said or label in said:
        return said
    first, dot, rest = said.removesuffix(".").partition(". ")
    labelled = f"{first[:-1]}; {label})" if first.endswith(")") else f"{first} ({label})"
    return f"{labelled}{dot}{rest}."


def _provisional(*used: Result) -> str:
    """'PROVISIONAL' if one of these is not VALID, or ""."""
    return "" if all(r.pool.status == "VALID" for r in used) else "PROVISIONAL"


def _elsewhere(use: Result, everyone: Sequence[Result]) -> str:
    """'With --device gpu, one rank is 1.99 times as fast (1.97–2.01).': other devices; "" if none are."""
    mesh = replace(use.record.mesh, hash="")  # a box that is built in parallel has another
    same = (r for r in everyone if replace(r.record.mesh, hash="") == mesh)
    best = min(bases(use, same, DEVICES), key=_seconds)
    ratio, low, high = _faster(use, best)
    if best.pool.case.method.device == use.pool.case.method.device or not low > 1:
        return ""
    verb = "are" if best.ranks > 1 else "is"
    faster = f"{best.in_words} {verb} {fixed(ratio)} times as fast {_ends(low, high, use, best)}"
    return f"With --device {best.pool.case.method.device}, {faster}."


def _rate(one: Result) -> str:
    """'2 ranks solve m at 155 million equations x iterations per second (152–158).'"""
    took = one.times[rated(one)]
    low, high = (merit(one) * took.median / end / 1e6 for end in (took.high, took.low))
    interval = f" ({digits(low)}–{digits(high)})" if np.isfinite([low, high]).all() else ""
    done = "equations x iterations" if rated(one) == CG else "equations, set-up included,"
    who = f"{one.ranks} ranks solve" if one.ranks > 1 else "One rank solves"
    return f"{who} {one.mesh} at {digits(merit(one) / 1e6)} million {done} per second{interval}."


def _faster(a: Result, b: Result) -> tuple[float, float, float]:
    """How many times as fast as `a` another result is, with the ends of the interval."""
    low, high = ratio_range(a.times[rated(a)], b.times[rated(b)])
    return _seconds(a) / _seconds(b), low, high


def _enough(by_ranks: dict[int, Result]) -> Result:
    """The fewest ranks that are not shown to be slower than the fastest.

    They are shown to be faster than the fewest, if the fastest is; without intervals, the fastest.
    """
    fewest = next(iter(by_ranks.values()))
    best = min(by_ranks.values(), key=_seconds)
    ends = {n: _faster(r, best)[1] for n, r in by_ranks.items() if r is not best}
    if not np.isfinite(list(ends.values())).all():
        return best
    use = next(r for n, r in by_ranks.items() if r is best or ends[n] <= 1)
    return use if use is fewest or _faster(fewest, use)[1] > 1 else best


def _gain(fewest: Result, use: Result) -> str:
    """'2 ranks are 1.90 times as fast as one rank on m (1.88–1.92).'"""
    if use is fewest:
        return ""
    ratio, low, high = _faster(fewest, use)
    times = f"{fixed(ratio)} times as fast as {fewest.in_words} on {use.mesh}"
    if not np.isfinite([low, high]).all():
        return f"In these runs, {use.in_words} were {times}: too few sets for an interval."
    return f"{use.in_words} are {times} {_ends(low, high, fewest, use)}."


def _ends(low: float, high: float, *used: Result) -> str:
    """'(1.88–1.92; PROVISIONAL)': an interval, and the verdict if it is not VALID."""
    return f"({'; '.join(filter(None, [f'{fixed(low)}–{fixed(high)}', _provisional(*used)]))})"


def _choice(by_ranks: dict[int, Result], use: Result) -> str:
    """'Use 2 ranks: 4 ranks are 1.02 times as fast (0.98–1.06), which shows no gain.'"""
    others = [r for r in by_ranks.values() if r is not use]
    at_least = [_faster(r, use)[1] for r in others]
    if not np.isfinite(at_least).all():
        asked = few([str(n) for n in by_ranks], MOST)
        return f"Of {asked} ranks, {use.ranks} took the least time; repeat with {SETS} sets to be sure."
    more = [r for r in others if r.ranks > use.ranks]
    words = f"Use {use.in_words} for {use.mesh}"
    if not more:
        slower = len(others) > 1 and min(at_least) > 1
        return f"{words}: fewer are shown to be slower." if slower else f"{words}."
    other = min(more, key=_seconds)
    ratio, low, high = _faster(use, other)
    verdict = "which is slower" if high < 1 else "which shows no gain"
    ends = _ends(low, high, use, other)
    return f"{words}: {other.in_words} are {fixed(ratio)} times as fast {ends}, {verdict}."


def _limit(one: Result) -> str:
    """What most limits the rate of a run, as far as it was measured."""
    waiting, messages = (part_of_cg(one.runs, *phases) for phases in (ph.WAITING, ph.OWN_MESSAGES))
    if one.ranks > 1 and max(waiting, messages) >= LARGE:
        return _waiting(one, waiting) if waiting >= messages else _messages(one, messages)
    them = "them" if one.ranks > 1 else "it"
    level, point = held_in(one.record), product_point(one)
    if level:
        return f"{level} holds the matrix: these are rates of a cache; a larger mesh shows those of memory."
    if point is None or not np.isfinite(point.roof):
        return ""
    of = f"{100 * point.of_roof:.0f} % of the {digits(point.roof / 1e9)} GB/s measured in the same run"
    if _by_memory(one):
        return f"Memory bandwidth limits {them}: the {point.phase} uses {of}."
    spent = f", waiting takes {100 * waiting:.0f} % of cg" if one.ranks > 1 else ""
    return f"{NONE}: the {point.phase} uses {of}{spent}."


def _longer(fewest: Result, use: Result) -> str:
    """That more ranks compute longer in all than the fewest, for the same work; "" if they do not."""
    if use is fewest or use.record.environment.synthetic:
        return ""
    base, here = useful(fewest.runs), useful(use.runs)
    scaling = float(base.sum() / here.sum())
    if scaling >= SCALES or scaling >= here.mean() / use.times[SOLVE].median:
        return ""
    longer = f"{use.in_words} compute {fixed(1 / scaling)} times as long in all as {fewest.in_words}"
    return f"{longer} (computation scaling {fixed(scaling)}): cores that share memory often do."


def _by_memory(one: Result) -> bool:
    """Whether its product uses nearly all of the bandwidth of the memory."""
    point = product_point(one)
    cached = held_in(one.record) or partly_cached(one.record)
    if cached or point is None:
        return False
    return bool(np.isfinite(point.roof) and point.of_roof >= NEAR)


def _waiting(one: Result, part: float) -> str:
    """That waiting limits a run: for a slow rank, or for all others."""
    computing = rank_times(one.runs, *ph.CG_COMPUTING)
    mean, most = computing.mean(), computing.max()
    waited = part * rank_times(one.runs, ph.CG).mean()
    begin = f"Waiting limits them, with {100 * part:.0f} % of cg: "
    if most - mean < waited / 2:
        return f"{begin}all ranks compute about equally long. {_larger(one)}"
    slow = int(computing.argmax())
    host = one.record.environment.host_of_rank[slow]
    pace = f"rank {slow} on {host} computes {most / mean:.2f} times as long as the mean"
    return f"{begin}{pace}. Find the shares that balance them: `{_tune(one.pool.case)}`."


def _tune(case: Case) -> str:
    """'fembench tune m --ranks 2 --device gpu,cpu'."""
    words = ["fembench", "tune", case.question.mesh, "--ranks", str(case.placement.ranks)]
    for name, value in case.said().items():
        if name in TUNED:
            option = name.replace("_", "-")
            words += [f"--no-{option}" if value is False else f"--{option}"]
            words += [] if isinstance(value, bool) else [format(value, "g" if name == "dilate" else "")]
    return shlex.join(words)


def _messages(one: Result, part: float) -> str:
    return f"Messages limit them, with {100 * part:.0f} % of cg. {_larger(one)}"


def _larger(one: Result) -> str:
    each = count(one.record.mesh.n_equations / one.ranks)
    return f"Each rank has {each} equations; with more (a larger mesh, or fewer ranks), this part shrinks."


def _more(by_ranks: dict[int, Result], use: Result) -> str:
    """Whether more ranks than were run may help."""
    hosts = use.record.environment.hosts
    cores = sum(host.cores for host in hosts)
    here = "this host" if len(hosts) == 1 else "these hosts"
    if use.ranks < max(by_ranks) or use.record.environment.devices or not cores:
        return ""
    threads = use.pool.case.placement.threads
    used = use.ranks * threads
    if used >= cores:
        each = "a rank" if threads == 1 else "a thread"
        return f"Every core has {each}: more ranks on {here} will not help."
    fewer = [r for n, r in by_ranks.items() if n < use.ranks]
    if _by_memory(use) and fewer and len(hosts) == 1:
        same = _no_more_bandwidth(fewer[-1], use)
        if same:
            return f"More ranks on {here} will not help: {same}."
    more = min(2 * use.ranks, cores // threads)
    if more == use.ranks or use.record.mesh.n_equations < FEWEST_EQUATIONS * more:
        return ""
    free = plural(cores - used, "core")
    return f"{free} of {here} had no rank: the same with --ranks {more} shows what more ranks gain."


def _no_more_bandwidth(fewer: Result, use: Result) -> str:
    """That more ranks reached no more bandwidth together than fewer; "" if they did."""
    a, b = (point.roof if (point := product_point(r)) else np.nan for r in (fewer, use))
    alike = f"{fewer.ranks} and {use.ranks} ranks together reach {digits(a / 1e9)} and {digits(b / 1e9)} GB/s"
    alike += f" ({_provisional(fewer, use)})" * bool(_provisional(fewer, use))
    return alike if b < GROWN * a else ""


def _slow_hosts(used: Sequence[Result], speeds: HostSpeeds) -> str:
    """The slow host and what to do, if one is known."""
    if advice := host_advice(used, speeds):
        return f"Slow hosts: {advice.do} ({advice.why})."
    if not speeds.slow:
        return ""
    one = speeds.slow[0]
    cause = one.cause or "no cause found"
    speed, low, high = (100 * value for value in (one.speed, one.low, one.high))
    return f"{one.name} is slow: {speed:.0f} % of the typical host ({low:.0f}–{high:.0f} %): {cause}."
