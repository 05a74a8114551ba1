"""Fixtures that every room's tests share."""

import pytest

from fembench.dist import comm as door


@pytest.fixture
def comm():
    """All ranks; a barrier ends the test, so a rank that left early is caught here."""
    world = door.world()
    yield world
    world.Barrier()
