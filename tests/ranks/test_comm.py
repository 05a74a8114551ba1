"""MPI as fembench uses it."""

from types import SimpleNamespace

import pytest

from fembench.ranks import comm


@pytest.mark.parametrize(
    ("found", "size", "passed"),
    [
        (-0x7C000000, 4, 0x84000000),  # MPICH: 32 bits, with a sign
        (0xFFFFFFFF84000000, 4, 0x84000000),  # the same, extended
        (0x7FFF12345678, 8, 0x7FFF12345678),  # Open MPI: a pointer
    ],
)
def test_a_handle_is_passed_as_c_has_it(found, size, passed, monkeypatch):
    library = SimpleNamespace(_handleof=lambda object_: found, _sizeof=lambda object_: size)
    monkeypatch.setattr(comm, "MPI", library)
    assert comm._handle(None) == passed
