"""The bandwidth that a run's product is held against, planted."""

import pytest

from fembench.bench import iteration_work


@pytest.mark.parametrize(
    ("matrix", "before", "expected"),
    [
        (1000, iteration_work.Roofs(1000, 9.0, ()), 9.0),  # a disturbance after the sets halves nothing
        (1000, iteration_work.Roofs(1000, 4.0, ()), 5.0),
        (1000, iteration_work.Roofs(999, 9.0, ()), 5.0),  # read from less memory than the matrix takes
        (1 << 30, iteration_work.Roofs(1 << 29, 9.0, ()), 9.0),  # both are as large as is measured
    ],
)
def test_the_roof_is_the_better_of_two_over_as_much_memory(monkeypatch, matrix, before, expected):
    monkeypatch.setattr(iteration_work, "roof", lambda n_bytes: 5.0)
    assert iteration_work.better_roof(matrix, before) == expected
