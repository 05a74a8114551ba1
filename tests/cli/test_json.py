"""Every verb that prints a table prints it as JSON too, and nothing else on stdout."""

import argparse

import pytest
from planted_records import FROZEN

from fembench.cli.verbs import verb_parser, verbs
from fembench.synthetic import lab
from fembench.synthetic.lab_cluster import LabCluster, LabHost
from fembench.workflows import lab as lab_workflow

NO_TABLE = {"mesh box", "mesh convert", "lab run", "lab down"}


def parsers(verb):
    """(name, parser) of a verb, or of each of its actions."""
    parser = verb_parser(verb)
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return [(f"{verb} {n}", p) for a in actions for n, p in a.choices.items()] or [(verb, parser)]


@pytest.mark.parametrize("verb", [verb for verb in verbs() if verb != "study"])
def test_a_verb_that_prints_a_table_has_the_option(verb):
    for name, parser in parsers(verb):
        assert ("--json" in parser._option_string_actions) != (name in NO_TABLE), name


def test_a_graph_prints_its_ranks(answer):
    assert [row["rank"] for row in answer("trace", str(FROZEN))["ranks"]] == [0, 1]


def test_a_lab_prints_its_hosts(monkeypatch, answer):
    cluster = LabCluster(hosts=(LabHost(name="node8", cpus=(0,)),), name="pair")
    monkeypatch.setattr(lab, "set_speed", lambda *_: cluster)
    monkeypatch.setattr(lab_workflow, "as_table", lambda state: "no JSON")
    found = answer("lab", "speed", "node8", "0.5", "--name", "pair")
    assert found["hosts"][0]["name"] == "node8"
