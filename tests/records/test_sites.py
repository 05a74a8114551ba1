"""Hosts grouped into sites, and which pairs of them are measured."""

import pytest

from fembench.base.errors import InputError
from fembench.records.sites import by_site, grouped_as, sites_of

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


def test_few_hosts_have_a_class_each_pair_and_many_one_each_site():
    four, five = ("a", "b", "c", "d"), ("a", "b", "c", "d", "e")
    how, classes = grouped_as("", four, ("here",) * 4)
    assert how == "all"
    assert len(classes.names) == 1 + 4 * 3
    how, classes = grouped_as("", five, ("here",) * 5)
    assert (how, classes) == ("classes", by_site(("here",) * 5))
    assert grouped_as("classes", four, ("here",) * 4)[0] == "classes"
    assert len(grouped_as("all", five, ("here",) * 5)[1].names) == 21
