"""Old names of verbs and options work for one release and say what to type."""

import pytest

from fembench.cli import renamed
from fembench.cli.main import main
from fembench.cli.parser import option_strings
from fembench.cli.renamed import RENAMED, Renaming, advice, renewed
from fembench.cli.verbs import verb_parser, verbs


@pytest.mark.parametrize("entry", RENAMED, ids=str)
def test_an_old_name_becomes_the_new_one(entry):
    before = [entry.verb, "a"] if entry.verb else []
    words, used = renewed([*before, *entry.old.split(), "b", "--", *entry.old.split()])
    assert words == [*before, *entry.new.split(), "b", "--", *entry.old.split()]
    assert used == [entry]
    if entry.verb:  # --option=value is the same
        assert renewed([entry.verb, entry.old.replace(" ", "=")])[1] == [entry]
    assert renewed(["mesh", "info", entry.old]) == (["mesh", "info", entry.old], [])


@pytest.mark.parametrize("entry", RENAMED, ids=str)
def test_the_new_name_exists_and_the_old_does_not(entry):
    if not entry.verb:
        assert entry.new.split()[0] in verbs()
        assert entry.old not in verbs()
    else:
        known = option_strings(verb_parser(entry.verb))
        assert entry.new.split()[0] in known
        assert entry.old not in known


@pytest.mark.parametrize(
    "words",
    [
        "reproduce thesis-004 --quick --only E7,E9 --fast a:2 --slow c",
        "app pi --ranks 5 --emulate 1,1,1,0.5,0.5",
        "pasl pi.pas --source pi.py --free random -P 32",
        "characterize --network --method I",
        "characterize --network --method=II",
        "schedule graph.dot --hosts a:1,b:1 --method heft,cpop -o schedules.csv",
    ],
)
def test_a_command_of_the_release_before_is_understood_by_the_new_parser(words):
    (verb, *rest), _ = renewed(words.split())
    verb_parser(verb).parse_args(rest)


@pytest.fixture
def once(monkeypatch):
    """Two renamings that only this test knows."""
    table = (Renaming("", "clocks", "timers"), Renaming("timers", "--count", "--calls"))
    monkeypatch.setattr(renamed, "RENAMED", table)


@pytest.mark.parametrize("words", [["--count", "3"], ["--count=3"]])
def test_a_renamed_verb_and_option_run_and_say_what_to_type_on_stderr(once, capsys, words):
    assert main(["clocks", "--json", *words]) == 0
    said = capsys.readouterr()
    assert '"calls": 3' in said.out
    late = "the old name works in this release only"
    assert said.err.splitlines() == [
        f"fembench: 'fembench clocks' is now 'fembench timers'; {late}",
        f"fembench: 'fembench timers --count' is now 'fembench timers --calls'; {late}",
    ]


def test_the_advice_names_both():
    assert advice(Renaming("", "app", "study app")).startswith("'fembench app' is now 'fembench study app'")
