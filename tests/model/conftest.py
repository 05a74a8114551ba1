"""Files that the tests of predictions share."""

import pytest
from planted_machine import planted_machine

from fembench.records.profile import save_profile


@pytest.fixture
def machine_file(tmp_path):
    """The file of a profile of four ranks on two hosts, the second of half the speed."""
    path = tmp_path / "machine.json"
    save_profile(planted_machine([1, 1, 0.5, 0.5], ("a", "a", "b", "b"), noise=0.02), path)
    return str(path)


@pytest.fixture
def grid_file(tmp_path):
    """The file of a validation by that profile; beside it is `held.toml`, the runs held out."""
    path = tmp_path / "grid.toml"
    path.write_text('machine = "machine.json"\ntraining = "train"\nheld_out = "held"\npredictions = "said"\n')
    (tmp_path / "held.toml").write_text('name = "held"\n[[cases]]\nmesh = ["m2", "m3"]\nranks = 4\n')
    return str(path)
