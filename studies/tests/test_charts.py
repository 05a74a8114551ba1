"""What the charts of a study show, in a sentence made of their values."""

from math import nan

import pytest

from fembench_studies.charts import Panel, finding

BOTH = Panel("version A", ["2", "4"], {"cpu, here": [2.0, 3.0], "cpu, thesis": [1.0, 2.0]}, "s")


@pytest.mark.parametrize(
    ("panels", "whole", "said"),
    [
        (
            [BOTH],
            False,
            "The values here are 1.50 to 2.00 times those of the thesis, 1.75 in the median of 2.",
        ),
        (
            [
                Panel("a, here", ["1"], {"x": [1.0], "y": [2.0]}, "s"),
                Panel("a, thesis", ["1"], {"x": [4.0]}, "s"),
            ],
            True,
            "The value here is 0.75 times that of the thesis.",
        ),
        (
            [Panel("", ["1", "2"], {"here": [1.0, nan], "thesis": [0.0, 2.0]}, "s")],
            False,
            "The largest value is 2 (tasks 2, thesis), the smallest 0 (tasks 1, thesis).",
        ),
        (
            [
                Panel("m1", ["2", "4"], {"cg": [1234.5, 0.2]}, "s", "ranks"),
                Panel("m2", ["2"], {"cg": [3]}, "s"),
            ],
            False,
            "The largest value is 1 234 (ranks 2, cg, m1), the smallest 0.2 (ranks 4, cg, m1).",
        ),
        ([Panel("", ["a"], {"": [0.5]}, "", "")], False, "The largest value is 0.5 (a)."),
        ([Panel("", ["1"], {"here": [nan]}, "s")], False, ""),
        ([], False, ""),
    ],
)
def test_a_chart_says_how_values_lie_to_those_of_the_source_or_their_ends(panels, whole, said):
    assert finding(panels, whole=whole) == said
