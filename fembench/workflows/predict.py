"""Times of a case by number of ranks, predicted from a profile, and scored against a run."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fembench.base.errors import InputError
from fembench.base.progress import progress, working
from fembench.base.units import plural
from fembench.bench.fastest import reasons, settled
from fembench.characterize.load_now import loads_of
from fembench.launch.hosts import host_slots
from fembench.mesh.presets import resolve
from fembench.methods import lookup
from fembench.model.answers import (
    Answers,
    bounded_answers,
    fewest_ranks,
    simulated_answers,
)
from fembench.model.configuration import not_invalid
from fembench.model.drifted import changes, readings_of, state_text
from fembench.model.forecast import outcome_text
from fembench.model.heterogeneity import Slowdown, brought_up_to_date, calibrated_at, hosts_to_ask
from fembench.model.predictor import BALANCED, Predictor, observed, open_study, taught
from fembench.model.rates import Rates, slowed
from fembench.model.slots import parse_factor
from fembench.records.case import Case, new_case
from fembench.records.hlogp import parse_link
from fembench.records.network import PROVISIONAL
from fembench.records.prediction import add_outcome, load_prediction
from fembench.records.profile import disturbed
from fembench.records.record import Record
from fembench.records.store import load, load_each
from fembench.workflows.cases import storage_of


@dataclass(frozen=True)
class PredictAsked:
    """A case, a machine, and how to predict."""

    mesh: str
    machine: Path | str  # file of the profile
    ranks: Sequence[int] = ()  # (): as many as the profile has
    shares: str = ""  # as for `run`, and balanced; "": equal
    fields: Mapping[str, Any] = field(default_factory=dict)  # others of the case
    analytic: bool = False  # bounds in closed form, not a simulation
    learn: Sequence[Path | str | Record] = ()  # records, their files and folders, that correct the prices
    iterations: int = 0  # of a whole solution; 0: those of a learned run of the mesh
    deadline: float = 0.0  # seconds for the solution; 0: none
    link: str = ""  # SECONDS,BYTES/S[,SECONDS]: in place of the measured network
    network: str = "x1"  # how many times faster the network is
    contention: bool | None = None  # messages of a host one after another; None: as far as measured
    machines: Sequence[str] = ()  # edits: fastest, slowest, add:NAME*N, share:N
    now: bool = False  # for the present load of the hosts
    hostfile: str = ""  # with `now`: ask only these hosts


def predicted(asked: PredictAsked) -> tuple[Predictor, Answers]:
    """The answers, and what they rest on. Tells the profile's limits. Raises InputError."""
    study, learned = _study(asked)
    cases = _cases(asked, len(study.profile.environment.rank_host))
    for line in reasons(cases):
        progress(f"predict: {line}")
    with working(f"predict: {asked.mesh}"):
        answers = _answers(asked, study, cases, learned)
    _note(study, answers)
    return study, answers


def in_time(answers: Answers, deadline: float) -> str:
    """How many ranks meet the deadline. Raises InputError if none of these numbers does."""
    ranks = fewest_ranks(answers, deadline)
    verb = "suffices" if ranks == 1 else "suffice"
    return f"deadline {deadline:g} s: {plural(ranks, 'rank')} {verb}, at the upper end of the interval"


def scored(prediction: Path | str, against: Path | str) -> tuple[str, bool]:
    """(errors, disturbances and state of the machine; whether that changed) of a run and its prediction."""
    record = load(against)
    before = load_prediction(prediction)
    seen = observed(before, record)
    lines = [outcome_text(add_outcome(prediction, seen), record.id)]
    if before.predicted.provisional:
        lines.append(f"profile: {before.predicted.provisional}")
    if taken := disturbed(record.environment.hosts, "sets"):
        lines.append(f"run: {PROVISIONAL}{'; '.join(taken)}")
    lines.append(state_text(changes(before.predicted.state, readings_of([record]))))
    return "\n".join(lines), bool(seen.stale)


def _answers(asked: PredictAsked, study: Predictor, cases: list[Case], learned: list[Record]) -> Answers:
    """The runs, predicted by the chosen method."""
    mesh = resolve(asked.mesh)
    if asked.analytic:
        return bounded_answers(study, cases, mesh, asked.iterations, learned)
    iterations = asked.iterations or study.iterations.get(mesh.hash, 0)
    if asked.deadline and not iterations:
        raise InputError("--deadline needs --iterations, or --learn with a run of this mesh that converged")
    return simulated_answers(study, cases, mesh, iterations)


def _note(study: Predictor, answers: Answers) -> None:
    """Report the limits of the profile."""
    network = study.profile.network
    if network is not None and not any(one.cold for one in network.classes):
        progress(
            "note: the profile does not say how long messages take after computing; priced as in a ping-pong"
        )
    for line in [line for work in answers.works for line in study.beyond(work)]:
        progress(f"note: {line}")


def _study(asked: PredictAsked) -> tuple[Predictor, list[Record]]:
    """(the profile with learned rates, then edits; the runs used for learning)."""
    factor = parse_factor(asked.network)
    study = open_study(
        asked.machine,
        link=parse_link(asked.link, overhead=True) if asked.link else None,
        storage=lookup.storage_of(storage_of(asked.fields)).priced_as,
        contention=asked.contention,
    )
    records = [one for one in asked.learn if isinstance(one, Record)]
    paths = [one for one in asked.learn if not isinstance(one, Record)]
    learned, note = not_invalid([*records, *load_each(paths)])
    if note:
        progress(f"note: --learn: {note}")
    if asked.learn:
        study = taught(study, learned)
    if asked.now:
        study = dataclasses.replace(study, rates=_as_now(asked, study))
    return dataclasses.replace(study, edits=tuple(asked.machines), factor=factor), learned


def _as_now(asked: PredictAsked, study: Predictor) -> Rates:
    """The study's rates, each rank slowed by the load of its host since the profile."""
    profile, file = study.profile, asked.hostfile
    names = [host.name for host in host_slots(file)] if file else []
    slower: dict[int, Slowdown] = {}
    for samples in loads_of(hosts_to_ask(profile, names), Path("."), progress):
        found = brought_up_to_date(profile, samples)
        most = max(found.values())
        progress(
            f"{samples[0].host}: computing takes {most.factor:.2f} times as long now as in the profile, "
            f"by the clock ({most.low:.2f} to {most.high:.2f} in {plural(len(samples), 'sample')})"
        )
        slower |= found
    if missing := set(slower) - set(calibrated_at(profile)):
        progress(
            f"the profile has no kernels of {plural(len(missing), 'rank')}; taken to be those of an idle host"
        )
    progress(
        "message costs are those of the profile: underestimated under load, which delays messages more "
        "than computing (Mendes 2004, Table 4.41: L 6 to 7 times longer, of small messages up to 150 times)"
    )
    rates = slowed(study.rates, {rank: one.factor for rank, one in slower.items()})
    return dataclasses.replace(rates, uncertain=max(one.uncertain for one in slower.values()))


def _cases(asked: PredictAsked, ranks_of_profile: int) -> list[Case]:
    counts = list(dict.fromkeys(asked.ranks or [ranks_of_profile]))
    shares = "" if asked.shares == "equal" else asked.shares
    if len(counts) > 1 and shares not in ("", BALANCED):
        raise InputError(
            f"--shares {shares} with --ranks {','.join(map(str, counts))}: expected equal or balanced "
            "shares, or one number of ranks"
        )
    values = {**asked.fields, "mesh": asked.mesh, "storage": storage_of(asked.fields), "shares": shares}
    return [settled(new_case(values | {"ranks": n}, "options")) for n in counts]
