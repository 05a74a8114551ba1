"""The chains of single operations compute what their names say, and are timed one by one."""

import time

import pytest
import reference_operations as twin

from fembench.kernels.backend import kernels

LARGE = 2147483629.0


def test_both_have_the_same_operations():
    assert set(kernels.OPERATIONS) == set(twin.OPERATIONS)


@pytest.mark.row("000:F7")
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("name", twin.OPERATIONS)
def test_an_operation_is_the_one_that_its_name_says(name, turns):
    x, y = (46341.0, LARGE) if name.startswith(("div", "mod")) else (3.0, 5.0)
    found = kernels.operation(name, turns, x, y)
    assert found == pytest.approx(twin.operation(name, turns, x, y), rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", twin.OPERATIONS)
def test_twice_the_operations_are_not_left_out_by_the_compiler(name):
    """A chain that was folded into one operation would take no time."""
    x, y = (46341.0, LARGE) if name.startswith(("div", "mod")) else (3.0, 5.0)
    begin = time.process_time()
    kernels.operation(name, 100_000, x, y)
    assert (time.process_time() - begin) / 1.6e6 > 4e-11  # seconds
