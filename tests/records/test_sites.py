"""Hosts grouped into sites, and which pairs of them are measured."""

import pytest

from fembench.base.errors import InputError
from fembench.records.sites import by_site, grouped_as, guessed, kind_of, sites_of

HOSTS = ("sn02.uff.br", "sn04.uff.br", "n19.puc.br", "alone")


@pytest.mark.row("001:3.4")
def test_sites_are_the_domains_of_hosts_unless_they_are_given():
    assert sites_of(HOSTS) == ("uff.br", "uff.br", "puc.br", "here")
    assert sites_of(("a", "b", "c"), "x=a,b; y=c") == ("x", "x", "y")
    assert sites_of(("a", "b"), "x=a") == ("x", "here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "cannot read 'x'"),
        ("=a", "cannot read '=a'"),
        ("x=", "cannot read 'x='"),
        ("x=q", "no host q; expected one of a, b"),
        ("x=a;y=a", "host a is given twice"),
    ],
)
def test_sites_that_cannot_be_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        sites_of(("a", "b"), text)


@pytest.mark.row("001:F7", "001:7.3.6")
def test_hosts_of_several_kinds_have_a_class_each_pair_of_kinds():
    hosts, kinds = tuple("abcde"), ("old", "new", "old", "new", "new")
    how, classes = grouped_as("", hosts, ("lab",) * 5, kinds)
    assert how == "classes"
    expected = {"same host, old", "same host, new", "lab, old", "lab, new", "lab, old > lab, new"}
    assert set(classes.names) == expected | {"lab, new > lab, old"}
    for name, (a, b) in zip(classes.names, classes.pairs):  # a class is measured on hosts of its kinds
        assert {kinds[a], kinds[b]} == {kind for kind in ("old", "new") if kind in name}
    named = [[classes.names[k] for k in row] for row in classes.pair_class]
    assert (named[0][2], named[1][4], named[2][3]) == ("lab, old", "lab, new", "lab, old > lab, new")
    assert (named[2][2], named[4][4]) == ("same host, old", "same host, new")


def test_sites_that_are_of_one_kind_each_keep_their_names():
    classes = by_site(("x", "x", "y", "y"), ("old", "old", "new", "new"))
    assert set(classes.names) == {"same host, old", "same host, new", "x", "y", "x > y", "y > x"}
    assert by_site(("x", "x"), ("old", "old")) == by_site(("x", "x"))


def test_hosts_without_a_named_processor_are_reported():
    kinds = [kind_of("", 8), kind_of("Xeon", 8)]
    assert guessed(("a", "b"), [kinds[1]] * 2) == []
    (note,) = guessed(("a", "b"), kinds)
    assert note.startswith("a: processor unknown; hosts with equally many CPUs")


def test_few_hosts_have_a_class_each_pair_and_many_one_each_site():
    four, five = ("a", "b", "c", "d"), ("a", "b", "c", "d", "e")
    how, classes = grouped_as("", four, ("here",) * 4)
    assert how == "all"
    assert len(classes.names) == 1 + 4 * 3
    how, classes = grouped_as("", five, ("here",) * 5)
    assert (how, classes) == ("classes", by_site(("here",) * 5))
    assert grouped_as("classes", four, ("here",) * 4)[0] == "classes"
    assert len(grouped_as("all", five, ("here",) * 5)[1].names) == 21
