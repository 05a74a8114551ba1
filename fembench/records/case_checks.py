"""Checks that the values of a case fit together."""

import math
import typing

from fembench.base.plugins import plugin
from fembench.methods.lookup import mismatch, mismatch_balance, mismatch_blocking
from fembench.methods.policies import POLICIES

if typing.TYPE_CHECKING:
    from fembench.records.case import Case


def check(case: "Case") -> None:
    """Raises ValueError naming the field, which msgspec turns into an error with its place in the file."""
    _check_method(case)
    if case.method.exchange == "blocking":
        _check_blocking(case)
    if case.balancing.balance:
        _check_balance(case)
    elif case.balancing.drain or case.synthetic.emulate_change or case.synthetic.hot_spot:
        raise ValueError("drain, emulate_change, hot_spot: expected a policy, as in balance = 'amortised'")
    _check_numbers(case)


def _check_method(case: "Case") -> None:
    if line := mismatch(case.method):
        raise ValueError(line)
    if case.method.petsc_options and case.method.solver != "petsc":
        raise ValueError("petsc_options: expected solver = 'petsc'")


def _check_blocking(case: "Case") -> None:
    if case.method.overlap:
        raise ValueError("exchange 'blocking' overlaps nothing: expected overlap = false (--no-overlap)")
    if line := mismatch_blocking(case.method):
        raise ValueError(f"exchange 'blocking' with {line}")
    if case.balancing.balance:
        raise ValueError("exchange 'blocking' with balance: expected no balance")


def _check_balance(case: "Case") -> None:
    b = case.balancing
    if b.balance not in POLICIES and plugin("policies", b.balance) is None:
        raise ValueError(f"balance = '{b.balance}': expected one of {', '.join(POLICIES)}")
    if line := mismatch_balance(case.method):
        raise ValueError(f"balance with {line}")
    for name in ("blocks_per_rank", "look_every", "first_look"):
        if getattr(b, name) < 1:
            raise ValueError(f"{name} = {getattr(b, name)}: expected at least 1")
    if not 0 < b.band < 1:
        raise ValueError(f"band = {b.band}: expected a number between 0 and 1")
    if not 0 <= b.hysteresis < 1:
        raise ValueError(f"hysteresis = {b.hysteresis}: expected a number from 0 up to, but not including, 1")
    if not 0 <= b.ageing <= 1:
        raise ValueError(f"ageing = {b.ageing}: expected a number from 0 to 1")
    for name in ("widen_after", "cooldown"):
        if getattr(b, name) < 0:
            raise ValueError(f"{name} = {getattr(b, name)}: expected 0 or more")


def _check_numbers(case: "Case") -> None:
    values = case.flat()
    for name in ("max_iterations", "iterations", "sets", "warmups", "trace_iterations"):
        if values[name] < 0:
            raise ValueError(f"{name} = {values[name]}: expected 0 or more")
    for name in ("seconds", "precision", "max_seconds"):
        if not 0 <= values[name] < math.inf:
            raise ValueError(f"{name} = {values[name]}: expected a finite number of 0 or more")
    if not 1 <= case.synthetic.dilate < float("inf"):
        raise ValueError(f"dilate = {case.synthetic.dilate}: expected a finite number of at least 1")
    if not 0 <= case.stop.tolerance < float("inf"):
        raise ValueError(f"tolerance = {case.stop.tolerance}: expected a finite number of 0 or more")
