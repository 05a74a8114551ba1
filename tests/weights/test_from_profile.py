"""Rule `rate` from a machine profile: planted speeds are the shares, whatever disturbs all ranks alike."""

import msgspec
import numpy as np
import pytest
from planted_profile import CELLS, PHASES, planted_profile

from fembench.base.errors import InputError
from fembench.base.units import count
from fembench.partition.shares import normalise
from fembench.records.profile import save_profile
from fembench.records.record import DeviceFacts
from fembench.records.weights import load_weights, shares_of
from fembench.weights.from_profile import by_profile


@pytest.mark.row("001:7.3.1")
@pytest.mark.parametrize("speeds", [(1, 1, 0.5, 0.25), (1, 0.7), (1, 0.13)])
def test_planted_speeds_are_found_within_3_percent(speeds):
    found = by_profile(planted_profile(speeds, noise=0.01, visits=20), "machine.json")
    assert shares_of(found) == pytest.approx(normalise(speeds), rel=0.03)
    for rank in found.ranks:
        assert rank.low <= rank.share <= rank.high


def test_what_disturbs_all_ranks_of_a_visit_does_not_move_the_shares_and_one_visit_has_no_interval():
    half = np.where(np.arange(9) % 2, 0.5, 1.0)
    for visits, common in ((9, half), (1, None)):
        found = by_profile(planted_profile((1, 0.5), visits=visits, common=common), "")
        assert shares_of(found) == pytest.approx((2 / 3, 1 / 3))
        assert (found.ranks[0].low is None) == (visits == 1)


def test_speeds_are_those_with_all_ranks_of_the_host_at_once():
    # two at once on a leave each 1/sqrt(2) of its speed, the one on b has all of its own
    found = by_profile(planted_profile((1, 1, 1), hosts=("a", "a", "b")), "")
    assert shares_of(found) == pytest.approx(normalise((0.5**0.5, 0.5**0.5, 1)))


@pytest.mark.parametrize("storage", ["sym", "csr"])
@pytest.mark.parametrize("iterations", [0, 10, 1000])
def test_phases_are_mixed_by_the_time_of_so_many_iterations(storage, iterations):
    slow = {("product", storage): (1.0, 0.5)}  # rank 1 has half the speed in the product alone
    cost = {phase: 1 / rate for phase, (_, _, rate) in PHASES.items()}
    whole = cost["assembly", ""] + iterations * (cost["product", storage] + cost["updates", ""])
    longer = whole + iterations * cost["product", storage]
    found = by_profile(planted_profile((1, 1), slower=slow), "", iterations=iterations, storage=storage)
    assert shares_of(found) == pytest.approx(normalise((1 / whole, 1 / longer)))
    assert found.ranks[1].cost / found.ranks[0].cost == pytest.approx(longer / whole)


def test_the_largest_size_is_taken_and_a_range_is_named_only_if_sizes_differ():
    profile = planted_profile((1, 1))
    largest = CELLS["memory"]
    assert f"speeds at {count(largest)} cells per rank" in by_profile(profile, "").notes
    kept = tuple(s for s in profile.speeds if (s.rank, s.phase, s.cells) != (1, "assembly", largest))
    fewer = by_profile(msgspec.structs.replace(profile, speeds=kept), "").notes
    smaller = max(s.cells for s in kept if s.cells < largest)
    assert f"speeds at {count(smaller)} to {count(largest)} cells per rank" in fewer


def test_a_device_gets_the_share_of_its_line_over_the_measured_parts():
    """A device that takes 6 ms longer than a core on any part."""
    profile = planted_profile((1, 1), hosts=("a", "b"))
    late = list(profile.speeds)
    each = 1 / 1e7 + 100 * (1 / 4e8 + 1 / 4e9)  # seconds per cell of a core
    for k, s in enumerate(late):
        if s.rank == 0 and s.phase == "assembly":
            rate = s.units / (s.cells / 1e7 + 6e-3)
            late[k] = msgspec.structs.replace(s, speed=rate, samples=(rate,) * 8)
    gpu = msgspec.structs.replace(
        profile.environment, devices=(DeviceFacts("Some GPU", 1 << 40), DeviceFacts())
    )
    mixed = msgspec.structs.replace(profile, speeds=tuple(late), device="gpu,cpu", environment=gpu)
    for n in (100_000, 1_000_000):
        found = by_profile(mixed, "", cells=n)
        assert found.ranks[0].share == pytest.approx((n - 6e-3 / each) / 2 / n, rel=1e-3)
        assert f"for a mesh of {n} cells: devices by a line of time over cells" in found.notes
    assert "devices are slower on small parts: name the mesh (--mesh)" in by_profile(mixed, "").notes
    assert [rank.device for rank in found.ranks] == ["gpu", "cpu"]
    tiny = by_profile(mixed, "", cells=10_000)  # a core computes them in 4 ms
    assert (tiny.ranks[0].low, tiny.ranks[1].low is None) == (None, False)
    assert any(note.startswith("leave rank 0 (Some GPU) out: its fixed time") for note in tiny.notes)
    emulated = by_profile(msgspec.structs.replace(mixed, emulate="1,1"), "", cells=100_000)
    assert shares_of(emulated)[0] > 0.49  # as its speed, whatever the start of its kernels takes
    assert not any("line" in note for note in emulated.notes)
    small = msgspec.structs.replace(gpu, devices=(DeviceFacts("Some GPU", 30_000_000), DeviceFacts()))
    full = by_profile(msgspec.structs.replace(mixed, environment=small), "", cells=1_000_000)
    assert full.ranks[0].share < 0.5 * found.ranks[0].share


def test_what_was_not_measured_is_refused():
    with pytest.raises(InputError, match="no product ebe of rank 0; products: csr, sym"):
        by_profile(planted_profile((1, 1)), "", storage="ebe")
    with pytest.raises(InputError, match="expected 0 or more"):
        by_profile(planted_profile((1, 1)), "", iterations=-1)


def test_the_verb_makes_weights_of_a_profile_and_labels_emulated_ones(tmp_path, output):
    profile = planted_profile((1, 0.5))
    environment = msgspec.structs.replace(profile.environment, synthetic="emulated speeds 1,0.5")
    machine, out = tmp_path / "machine.json", tmp_path / "weights.json"
    save_profile(msgspec.structs.replace(profile, environment=environment), machine)
    text = output("weights", str(machine), "--rule", "rate", "-o", str(out))
    assert "SYNTHETIC: emulated speeds 1,0.5" in text
    weights = load_weights(out)
    assert (weights.rule, weights.source) == ("rate", (str(machine),))
    assert output("weights", str(out), "--export", "shares") == "0.666666667,0.333333333\n"


@pytest.mark.parametrize("options", [["--rule", "time"], ["--machine", "m.json"], ["--ranks", "3"]])
def test_what_a_profile_cannot_tell_is_refused_in_one_line(tmp_path, refusal, options):
    save_profile(planted_profile((1, 1)), tmp_path / "machine.json")
    refusal("weights", str(tmp_path / "machine.json"), *options)
