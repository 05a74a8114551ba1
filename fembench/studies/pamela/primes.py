"""Probability that the conditional of a search for primes is true (Herai 2005, 5.4.3)."""

import math

from fembench.base.errors import InputError


def primes_up_to(x: float) -> float:
    """Approximate number of primes below x, x / (log x - 1); 0 below 3, near the pole of the formula."""
    return x / (math.log(x) - 1) if x >= 3 else 0.0


def share_of_primes(low: float, high: float) -> float:
    """Fraction of the numbers from low to high that is prime. Raises InputError."""
    if not 0 <= low < high:
        raise InputError(f"numbers from {low:g} to {high:g}: expected 0 <= low < high")
    return min((primes_up_to(high) - primes_up_to(low)) / (high - low), 1.0)
