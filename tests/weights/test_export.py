import pytest

from fembench.cli.parser import page
from fembench.cli.verbs import verb_parser
from fembench.cli.weights import KINDS
from fembench.partition.shares import parse_shares
from fembench.records.weights import RankShare, Weights, save_weights
from fembench.workflows.command import EXPORTS, metis, plain


def weights(shares, hosts=None):
    hosts = hosts or ["a"] * len(shares)
    return Weights(
        schema=1,
        rule="time",
        created="2026-01-02T03:04:05+00:00",
        measured="2026-01-02T03:04:05+00:00",
        source=("x",),
        ranks=tuple(RankShare(host=h, share=s) for h, s in zip(hosts, shares)),
    )


@pytest.mark.parametrize(
    ("name", "shares", "text"),
    [
        ("metis", [0.75, 0.25], "0 = 0.750000000\n1 = 0.250000000\n"),
        ("shares", [0.5, 0.25, 0.25], "0.5,0.25,0.25\n"),
        ("scotch", [0.75, 0.25], "cmpltw 2 750000 250000\n"),
    ],
)
def test_each_format_says_shares_as_its_program_reads_them(name, shares, text):
    assert EXPORTS[name].text(weights(shares)) == text


def test_openfoam_cuts_by_the_weights_of_its_dictionary():
    text = EXPORTS["openfoam"].text(weights([0.75, 0.25]))
    assert "numberOfSubdomains 2;\nmethod scotch;" in text
    assert "metisCoeffs { processorWeights (750000 250000); }" in text


@pytest.mark.parametrize("name", EXPORTS)
def test_an_exported_file_is_never_fitted_to_a_terminal(name, monkeypatch, tmp_path, output):
    made = weights([1 / 40] * 40)
    save_weights(made, tmp_path / "w.json")
    monkeypatch.setenv("COLUMNS", "40")
    assert output("weights", str(tmp_path / "w.json"), "--export", name) == EXPORTS[name].text(made)


def test_shares_in_the_file_of_metis_sum_to_one():
    lines = metis(weights([1 / 7] * 7)).splitlines()
    assert sum(float(line.split("=")[1]) for line in lines) == pytest.approx(1, abs=1e-8)


def test_plain_shares_are_read_back_by_the_option_of_a_run():
    shares = [0.568453444, 0.3, 0.131546556]
    assert parse_shares(plain(weights(shares)), 3) == pytest.approx(shares, rel=1e-8)


def test_what_a_format_declares_is_what_the_command_line_offers():
    text = " ".join(page(verb_parser("weights"), 100).split())
    assert all(f"{name}: {one.help}" in text for name, one in EXPORTS.items())
    assert KINDS["export"] == tuple(EXPORTS)
