"""Predictions from a machine profile: for other ranks, shares, hosts and networks."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.units import count, plural
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.methods.lookup import CPU, product_name
from fembench.model.cg import Correction, prices
from fembench.model.closed_form import ClosedForm
from fembench.model.configuration import difference
from fembench.model.correct import learn, measured
from fembench.model.drifted import changes, known_from, readings_of, stale
from fembench.model.forecast import Forecast, balanced, forecast, with_collectives
from fembench.model.machine import Machine, faster_network
from fembench.model.rates import Rates, rates_of
from fembench.model.slots import Slot, chosen, machine_of, slots_of
from fembench.model.workload import Workload, problem_of, workload
from fembench.records.case import Case
from fembench.records.hlogp import GivenLink
from fembench.records.phases import CG, NAMES
from fembench.records.prediction import (
    ANALYTIC,
    SIMULATION,
    Observed,
    Predicted,
    Prediction,
    sealed,
)
from fembench.records.profile import Profile, load_profile, provisional
from fembench.records.quiet import disturbance
from fembench.records.record import Environment, Record, StateReading, now_utc
from fembench.records.times import began

BALANCED = "balanced"  # shares with which all ranks compute for the same time
SLACK = 0.05  # parts are not exactly equal
ROUNDS = 5  # of balancing, of which the best is used


@dataclass(frozen=True)
class Predictor:
    """A machine, as measured or edited, with a correction fitted to runs on it."""

    profile: Profile
    digest: str  # SHA-256 of the profile's file
    rates: Rates
    edits: tuple[str, ...] = ()  # of the hosts, see slots.py
    link: GivenLink | None = None
    factor: float = 1.0  # by which the network is faster
    contention: bool | None = None  # None: as measured
    storage: str = "sym"
    correction: Correction | None = None
    learned: tuple[str, ...] = ()  # ids of the runs
    environments: tuple[Environment, ...] = ()  # theirs
    iterations: dict[str, int] = field(default_factory=dict)  # mesh hash -> iterations of a converged run
    state: tuple[StateReading, ...] = ()  # of the hosts, in order of time

    @property
    def provisional(self) -> str:
        """Why predictions may be wrong: what disturbed the profile, or runs; "" otherwise."""
        runs = disturbance(self.environments, "times learned")
        return "; ".join(filter(None, [provisional(self.profile), runs]))

    def slots(self, ranks: int) -> list[Slot]:
        """The slots of a run. Raises InputError."""
        slots = slots_of(self.profile, self.storage, self.edits)
        return chosen(self.profile, slots, ranks)

    def place(self, ranks: int) -> tuple[list[Slot], Machine, list[str]]:
        """Slots, machine and names of the hosts of a run, by rank. Raises InputError."""
        slots = self.slots(ranks)
        machine = machine_of(self.profile, slots, self.link, self.contention)
        if self.factor != 1:
            machine = faster_network(machine, self.factor)
        measured = slots_of(self.profile, self.storage)[:ranks]
        linked = self.link is not None and len(set(machine.host)) > 1
        if not linked and self.factor == 1 and slots == measured:
            machine = with_collectives(machine, self.profile)
        names = [h.name for h in self.profile.environment.hosts]
        return slots, machine, [names[s.model] for s in slots]

    def workload(self, case: Case, mesh: Mesh | None = None) -> Workload:
        """The workload of each rank; 'balanced' shares are computed. Raises InputError."""
        mesh = resolve(case.question.mesh) if mesh is None else mesh
        return workload(self.settled(case, mesh, self.slots(case.placement.ranks)), mesh)

    def predict(self, case: Case, mesh: Mesh | None = None) -> Forecast:
        """The forecast of one run, by simulation. Raises InputError."""
        if any(edit.startswith("share:") for edit in self.edits):
            raise InputError("machines = share:N: ranks that share cores; expected method = analytic")
        slots, machine, hosts = self.place(case.placement.ranks)
        return forecast(self.workload(case, mesh), slots, self.rates, machine, hosts, self.correction)

    def beyond(self, work: Workload) -> list[str]:
        """Warnings, a line each, if a part is larger than the largest size in the
        profile, or a device gets one cell."""
        slots, found = self.slots(work.ranks), []
        for name, unit, units in (
            (product_name(work.case.method), work.product_unit, work.product_units()),
            ("updates", "equations", work.parts.dofs),
        ):
            known = [self.rates.largest(s.rank, name) for s in slots]
            most, at_most = max((u, k) for u, k in zip(units, known))
            if most > (1 + SLACK) * at_most:
                found.append(
                    f"{plural(work.ranks, 'rank')}: {name} of {count(most)} {unit} per rank; the profile "
                    f"covers up to {count(at_most)}, and speed is held constant beyond"
                )
        for rank, (cells, kind) in enumerate(zip(work.parts.cells, work.case.devices)):
            if kind != CPU and cells == 1:
                found.append(
                    f"{plural(work.ranks, 'rank')}: rank {rank} ({kind}) gets one cell: leave it out"
                )
        return found

    def settled(self, case: Case, mesh: Mesh, slots: Sequence[Slot]) -> Case:
        """The case with balanced shares as numbers; any other case unchanged."""
        if case.placement.shares != BALANCED:
            return case
        found: list[tuple[float, Case]] = []
        case = case.with_(shares="")
        for _ in range(ROUNDS if case.placement.ranks > 1 else 1):
            work = workload(case, mesh)
            priced = prices(work, slots, self.rates, self.correction)
            found.append((max(p.computing for p in priced), case))
            case = case.with_(shares=balanced(work, priced))
        return min(found, key=lambda item: item[0])[1]


def open_study(machine: Profile | Path | str, **options) -> Predictor:
    """The predictor of a profile or its file; `options` are its fields. Raises InputError."""
    if isinstance(machine, Profile):
        profile, content = machine, json_text(machine).encode()
    else:
        profile, content = load_profile(machine), Path(machine).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return Predictor(profile, digest, rates_of(profile), state=profile.state, **options)


def taught(study: Predictor, records: Sequence[Record]) -> Predictor:
    """The predictor, corrected by runs on its machine. Raises InputError."""
    if study.edits or study.factor != 1:
        raise InputError(
            "learning needs the machine as measured; expected no other machines or network in addition"
        )
    if on_devices := [record.id for record in records if record.environment.devices]:
        raise InputError(f"{on_devices[0]} ran on devices: expected runs on cores to learn from")
    if threaded := [record.id for record in records if record.case.placement.threads > 1]:
        raise InputError(f"{threaded[0]} had several threads per rank: expected runs with one to learn from")
    found = learn(records, study.rates, study.place)
    converged = [r for r in records if r.solve.converged and not r.case.stop.iterations]
    iterations = {r.mesh.hash: r.solve.iterations for r in converged}
    return dataclasses.replace(
        study,
        correction=found,
        learned=tuple(r.id for r in records),
        environments=tuple(r.environment for r in records),
        iterations=iterations,
        state=(*study.state, *readings_of(records)),
    )


def prediction_of(study: Predictor, found: Forecast) -> Prediction:
    """The prediction by simulation, to be saved before the run."""
    return _sealed(
        study,
        found.work,
        iteration=found.iteration,
        low=found.low,
        high=found.high,
        assembly=found.assembly,
        phases=found.phases,
        limit=found.limits[0],
        learned=study.learned,
        method=SIMULATION,
    )


def bound_of(study: Predictor, work: Workload, found: ClosedForm, learned: Sequence[Record]) -> Prediction:
    """The prediction in closed form, to be saved before the run."""
    return _sealed(
        study,
        work,
        iteration=found.expected.iteration,
        low=found.iteration.low,
        high=found.iteration.high,
        assembly=found.expected.assembly,
        phases={},
        limit=found.bottleneck,
        learned=tuple(r.id for r in learned),
        method=ANALYTIC,
    )


def _sealed(study: Predictor, work: Workload, **said: Any) -> Prediction:
    link = study.link
    network = f"given: {link.latency:g} s, {link.bandwidth:g} bytes/s" if link else "measured"
    if study.factor != 1:
        network += f", {study.factor:g} times faster"
    names = [h.name for h in study.profile.environment.hosts]
    return sealed(
        Predicted(
            created=now_utc(),
            case=work.case,
            profile=study.digest,
            mesh=work.mesh_hash,
            hosts=tuple(names[slot.model] for slot in study.slots(work.ranks)),
            network=network,
            synthetic=study.profile.environment.synthetic,
            problem=problem_of(work.case),
            state=study.state,
            provisional=study.provisional,
            **said,
        )
    )


def observed(prediction: Prediction, record: Record) -> Observed:
    """The error of a prediction for a run. Raises InputError if the run is INVALID, or
    not the one that was predicted."""
    said = prediction.predicted
    if record.verdict.status == "INVALID":
        raise InputError(f"record {record.id} is INVALID: {record.verdict.reason}")
    if other := difference(said, record):
        raise InputError(f"record {record.id}: {other}; expected the run that was predicted")
    found = measured(record)
    mean = found.phases.mean(axis=0)
    took = found.iteration
    return Observed(
        record=record.id,
        added=now_utc(),
        iteration=took,
        error=said.iteration / took - 1,
        inside=said.low <= took <= said.high,
        began=began(record),
        stale=stale(changes(said.state, readings_of([record])), known_from(said.learned)),
        phases={
            name: (said.phases.get(name, 0.0) - float(mean[k])) / took
            for k, name in enumerate(NAMES)
            if name in said.phases and k != CG
        },
    )
