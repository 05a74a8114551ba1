"""Hosts grouped into sites, and which pairs of them are measured."""

import pytest

from fembench.base.errors import InputError
from fembench.records.sites import (
    by_pair,
    by_site,
    grouped_as,
    guessed,
    kind_of,
    sites_of,
    switch_of,
    with_nodes,
)

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


@pytest.mark.row("001:F7")
def test_hosts_of_a_site_on_two_switches_have_a_class_of_their_own():
    hosts, switches = tuple("abcde"), ("s1", "s1", "s2", "s2", "s3")
    _, classes = grouped_as("", hosts, ("lab",) * 5, (), switches)
    assert classes.names == ("same host", "lab", "lab, other switch")
    assert classes.pair_class[0] == (0, 1, 2, 2, 2)
    assert classes.pairs == ((0, 0), (0, 1), (0, 2))


@pytest.mark.parametrize(
    ("address", "switches"),
    [("s0.s4.n7", "s0.s4"), ("n7", ""), ("s0.s4.n8", ""), ("", "")],  # that of the host where mpiexec runs
)
def test_the_switches_of_a_host_are_those_that_slurm_names_to_its_own_ranks(address, switches):
    assert switch_of("n7.cluster.org", {"SLURM_TOPOLOGY_ADDR": address}) == switches


def test_ranks_of_a_host_that_differ_in_numa_node_alone_add_no_class():
    """Two ranks on two nodes measure the class of their host: there is nothing to compare it with."""
    classes, across = with_nodes(by_pair(("a", "b")), (0, 0, 1, 1, 1), (0, 1, 0, 0, 1))
    assert classes.names == ("same host", "a > b", "b > a", "same host, other NUMA node")
    assert across == (3, 3)
    classes, across = with_nodes(by_pair(("a", "b")), (0, 0, 1, 1), (0, 1, 0, 1))
    assert (len(classes.names), across) == (3, (-1, -1))
    _, across = with_nodes(by_pair(("a", "b")), (0, 0, 0, 1, 1), (0, 0, 1, 0, 0))
    assert across == (3, -1)  # b has one NUMA node


def test_hosts_without_a_named_processor_are_reported():
    kinds = [kind_of("", 8), kind_of("Xeon", 8)]
    assert guessed(("a", "b"), [kinds[1]] * 2) == []
    (note,) = guessed(("a", "b"), kinds)
    assert note.startswith("a: processor unknown; hosts with equally many CPUs")
    (note,) = guessed(tuple("abcdef"), [kinds[0]] * 6)
    assert note.startswith("a, b, c, d: processor unknown")


def test_few_hosts_have_a_class_each_pair_and_many_one_each_site():
    four, five = ("a", "b", "c", "d"), ("a", "b", "c", "d", "e")
    how, classes = grouped_as("", four, ("here",) * 4)
    assert (how, len(classes.names)) == ("all", 1 + 4 * 3)
    how, classes = grouped_as("", five, ("here",) * 5)
    assert (how, classes) == ("classes", by_site(("here",) * 5))
    assert grouped_as("classes", four, ("here",) * 4)[0] == "classes"
    assert len(grouped_as("all", five, ("here",) * 5)[1].names) == 21


def test_pairs_of_hosts_of_one_kind_share_a_class_for_ranks_of_a_host_and_those_of_two_kinds_do_not():
    alike, unlike = by_pair(("a", "b"), ("old", "old")), by_pair(("a", "b"), ("old", "new"))
    assert alike.names == ("same host", "a > b", "b > a")
    assert set(unlike.names) == {"same host, old", "same host, new", "a > b", "b > a"}
