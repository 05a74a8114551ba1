import json

import pytest

from fembench.base.errors import InputError
from fembench.records.weights import (
    RankShare,
    Weights,
    age_seconds,
    as_text,
    load_weights,
    mismatch,
    save_weights,
    shares_of,
    stale_hosts,
)

WEIGHTS = Weights(
    schema=1,
    rule="time",
    created="2026-01-02T03:04:05+00:00",
    measured="2026-01-02T02:04:05+00:00",
    source=("run-1",),
    ranks=(
        RankShare(host="a", share=0.5, low=0.49, high=0.51, cost=1e-6),
        RankShare(host="b", share=0.3, cost=2e-6),
        RankShare(host="c", share=0.2, cost=3e-6),
    ),
)


def test_weights_are_read_as_they_were_written(tmp_path):
    save_weights(WEIGHTS, tmp_path / "w.json")
    assert load_weights(tmp_path / "w.json") == WEIGHTS
    assert (as_text(WEIGHTS), shares_of(WEIGHTS)) == ("0.5,0.3,0.2", (0.5, 0.3, 0.2))
    assert repr(WEIGHTS) == "Weights(shares 0.5,0.3,0.2; by time; measured 2026-01-02)"
    assert age_seconds(WEIGHTS, "2026-01-02T04:04:05+00:00") == 7200  # of the oldest source


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 99},
        {"ranks": []},
        {"ranks": [{"host": "a", "share": 0.7}]},
        {"ranks": [{"host": "a", "share": 1.5}, {"host": "b", "share": -0.5}]},
        {"rule": "guess"},
        {"colour": "red"},
    ],
)
def test_files_that_are_no_weights_are_refused(tmp_path, change):
    save_weights(WEIGHTS, tmp_path / "w.json")
    tree = json.loads((tmp_path / "w.json").read_text())
    (tmp_path / "w.json").write_text(json.dumps(tree | change))
    with pytest.raises(InputError, match=r"w\.json"):
        load_weights(tmp_path / "w.json")


def test_weights_fit_only_their_hosts_in_their_order():
    assert mismatch(WEIGHTS, ["a", "b", "c"]) == ""
    assert mismatch(WEIGHTS, ["a", "c", "b"]) == "weights for rank 1 on b, but it runs on c"
    assert mismatch(WEIGHTS, ["a", "b"]) == "weights for 3 ranks, the run has 2"


def test_a_host_that_became_slower_than_the_others_is_stale():
    assert stale_hosts(WEIGHTS, {"a": 1.0, "b": 2.0, "c": 3.0}) == []  # another unit, the same ratios
    assert stale_hosts(WEIGHTS, {"a": 1.0, "b": 2.1, "c": 3.0}) == []
    assert stale_hosts(WEIGHTS, {"a": 1.0, "b": 2.0, "c": 3.6}) == ["c"]
    assert stale_hosts(WEIGHTS, {"a": 1.0, "b": 2.4}) == ["a", "b"]  # which of them is not known
    assert stale_hosts(WEIGHTS, {}) == []
