import math

import pytest

from fembench.base.errors import InputError
from fembench.partition.shares import normalise, parse_shares


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("7:1", [7, 1]),
        ("2,1,1", [2, 1, 1]),
        ("8*1", [1] * 8),
        ("2*1,3", [1, 1, 3]),
        ("3:2*0.5", [3, 0.5, 0.5]),
        (" 1 , 2 : 3 ", [1, 2, 3]),
        ("1e2:50", [2, 1]),
        ("5", [1]),
        ("2*1e308,1e308", [1, 1, 1]),
    ],
)
def test_shares_are_the_weights_over_their_sum(text, weights):
    shares = parse_shares(text, len(weights))
    assert shares == pytest.approx([w / sum(weights) for w in weights], rel=1e-15)
    assert parse_shares(text) == shares  # as many as there are
    assert math.fsum(shares) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("text", ["", "  "])
def test_no_shares_are_equal_shares(text):
    assert parse_shares(text, 3) == (1 / 3,) * 3


@pytest.mark.parametrize(
    ("text", "ranks", "message"),
    [
        ("7:1", 3, "shares '7:1' name 2 ranks; expected 3"),
        ("8*1", 7, r"shares '8\*1' name 8 ranks; expected 7"),
        ("2:-1", 2, "share -1; expected positive finite numbers"),
        ("2:0", 2, "share 0; expected positive finite numbers"),
        ("nan:1", 2, "share nan; expected positive finite numbers"),
        ("inf:1", 2, "share inf; expected positive finite numbers"),
        ("7;1", 2, "cannot read '7;1'; expected numbers as in 7:1, 2,1,1 or"),
        ("7:", 2, "cannot read ''"),
        ("a*1", 2, r"cannot read 'a\*1'"),
        ("1.5*1", 2, r"cannot read '1.5\*1'"),
        ("0*1,1", 1, r"'0\*1' repeats 0 times; expected at least once"),
        ("-2*1", 2, r"'-2\*1' repeats -2 times"),
        ("999999999999*1", 2, "name more than 1000000 ranks; expected 2"),
        ("1e308:1", 2, r"shares from 1 to 1e\+308; expected at least 1e-09 of the largest"),
        ("1:1e-300", 2, "shares from 1e-300 to 1; expected at least 1e-09 of the largest"),
        ("1", 0, "shares for 0 ranks; expected 1 to 1000000"),
    ],
)
def test_shares_that_do_not_fit_are_one_clear_line(text, ranks, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_shares(text, ranks)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weights", [[], [1, 0], [1, -2], [1, math.nan], [1, math.inf]])
def test_weights_that_are_no_shares_are_refused(weights):
    with pytest.raises(InputError, match=r"expected (one )?positive"):
        normalise(weights)
