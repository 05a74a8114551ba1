"""Rules of validity by name, and the verdict that they lead to (docs/validity.md)."""

import msgspec

from fembench.base.units import plural

NAMES = {  # what is so if the rule is met
    "A1": "residual within the tolerance",
    "A2": "symmetric operator",
    "A3": "positive operator",
    "A4": "same energy as the reference",
    "A5": "same solution on any number of ranks",
    "B1": "stated work done",
    "B2": "phases add up to the total",
    "B3": "product not faster than memory",
    "B4": "shares as requested",
    "C1": "every rank timed every phase",
    "C2": "trustworthy clock",
    "C3": "phases long enough for the clock",
    "C4": "a core for every rank",
    "C5": "no core shared while others are free",
    "D1": "enough sets and warm-ups",
    "D3": "steady times and no steal",
    "D4": "parts add up to CG",
    "D5": "cheap time stamps",
    "D6": "no other programs on the cores",
    "E7": "known sources and build",
    "E8": "emulation labelled",
    "E9": "complete trace",
}
FAILS = {  # what is so if it is not met
    "A1": "the residual is too large",
    "A2": "the operator is not symmetric",
    "A3": "the operator is not positive",
    "A4": "the energy or the solution differs from the reference",
    "A5": "the solution depends on the number of ranks",
    "B1": "the stated work was not done",
    "B2": "the phases do not add up",
    "B3": "the product is faster than the memory",
    "B4": "the shares are not those requested",
    "C1": "times are missing",
    "C2": "the clock cannot be trusted",
    "C3": "a phase is too short for the clock",
    "C4": "ranks share cores",
    "C5": "ranks share a core while others are free",
    "D1": "more sets or warm-ups are needed",
    "D3": "the times drift, or a hypervisor took some",
    "D4": "the parts do not add up to CG",
    "D5": "the time stamps take too long",
    "D6": "other programs used the cores",
    "E7": "the sources or the build are uncertain",
    "E9": "the trace is incomplete",
}
MOST_SAID = 2  # reasons in sentences of their own
STATES = {True: "met", False: "not met", None: "not evaluated"}  # Rule.ok in words


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of docs/validity.md, applied to a run."""

    id: str  # "A1"
    ok: bool | None  # None: not evaluated
    value: str
    threshold: str
    note: str = ""

    @property
    def name(self) -> str:
        return named(self.id)

    @property
    def state(self) -> str:
        return STATES[self.ok]


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status: str  # VALID, PROVISIONAL, INVALID
    reasons: tuple[str, ...]  # one per rule that is not met
    rules: tuple[Rule, ...]
    version: int = 0  # of the rules; 0: not recorded

    def __repr__(self) -> str:
        return f"<Verdict {self.status}{self.reason and ': '}{self.reason}>"

    @property
    def reason(self) -> str:
        """The first rule that decides the status, with its value; "" for a VALID run."""
        deciding = (reason(rule) for rule in self.rules if leads_to(rule) == self.status != "VALID")
        return next(deciding, *self.reasons[:1] or ("",))

    def sentences(self) -> list[str]:
        """Why a run is not VALID, a sentence for each reason and each remedy, the gravest first."""
        broken = [rule for rule in self.rules if rule.ok is not True]
        broken.sort(key=lambda rule: leads_to(rule) != self.status)
        said = [text for rule in broken[:MOST_SAID] for text in _sentences(rule)]
        more = len(broken) - MOST_SAID
        return [*said, *([f"{plural(more, 'more reason')}: see `fembench check`."] if more > 0 else [])]


def _sentences(rule: Rule) -> list[str]:
    """'More sets or warm-ups are needed: median known to ± 3 % (D1).', and what to do."""
    first = f"{FAILS.get(rule.id, 'a rule is not met')}: {rule.value} ({rule.id})"
    if rule.ok is None:
        first = f"not evaluated: {NAMES.get(rule.id, 'a rule')} ({rule.id}; {rule.value})"
    return [f"{text[0].upper()}{text[1:]}." for text in (first, rule.note) if text]


def short(rule: Rule) -> str:
    """'median known to ± 3 % (D1)': the value of a rule that is not met, or why it has none."""
    return f"{rule.value} ({rule.id}{'' if rule.ok is False else ' not evaluated'})"


def named(id: str) -> str:
    """'enough sets and warm-ups (D1)'; of a rule of another version, its number."""
    return f"{NAMES[id]} ({id})" if id in NAMES else id


def reason(rule: Rule) -> str:
    """The text of a rule that is not met."""
    note = f"; {rule.note}" if rule.note else ""
    return f"{rule.name} {rule.state}: {rule.value}, expected {rule.threshold}{note}"


def leads_to(rule: Rule) -> str:
    """The verdict that a rule alone would lead to; ranks that share cores (C4) are timed right."""
    if rule.ok:
        return "VALID"
    wrong = rule.ok is False and rule.id[0] in "ABC" and rule.id != "C4"
    return "INVALID" if wrong else "PROVISIONAL"
