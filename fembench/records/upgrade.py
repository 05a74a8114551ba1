"""Files of earlier schemas, brought up to date step by step when they are read.

A step converts the tree of a file from one schema to the next. It never changes afterwards: its names and
defaults are those of its schema. Whoever raises a schema number adds a step here, and a file of the previous
schema to the tests.
"""

from collections.abc import Callable
from typing import Any

from fembench.base.errors import InputError

Tree = dict[str, Any]
Step = Callable[[Tree], Tree]
_CASE_1 = {  # the groups into which schema 2 puts the fields of schema 1
    "question": "mesh problem",
    "method": "solver storage precond variant petsc_options overlap exchange",
    "stop": "tolerance tolerance_kind max_iterations iterations",
    "placement": "ranks shares partitioner replicated seed",
    "balancing": "balance blocks_per_rank look_every first_look band drain",
    "effort": "sets warmups seconds clock trace_iterations",
    "synthetic": "emulate dilate emulate_change",
    "output": "fields label",
}


def _case_in_groups(old: Tree) -> Tree:
    old = {"problem": "thesis", "tolerance_kind": "absolute", **old}  # defaults of schema 1
    if old["problem"] == "thesis":
        old["problem"] = "corner-load"
    group_of = {name: group for group, names in _CASE_1.items() for name in names.split()}
    made: Tree = {}
    for name, value in old.items():
        if name in group_of:
            made.setdefault(group_of[name], {})[name] = value
        elif name in _CASE_1:
            made[f"{name} of schema 2"] = value  # an unknown name, which the reader rejects
        else:
            made[name] = value  # unknown as well
    return made


def _problem(old: Tree) -> Tree:
    return {**old, "name": "corner-load"} if old.get("name") == "thesis" else old


def _placement(old: Tree) -> Tree:
    return {"hosts": "", "per_node": 0, **old}


def _effort(old: Tree) -> Tree:
    return {"precision": 0.0, "max_seconds": 20.0, **old}


def _both(first: Step, second: Step) -> Step:
    return lambda tree: second(first(tree))


def _within(key: str, change: Step) -> Step:
    """A step that changes one part of a file; a file without that part is rejected by the reader."""
    return lambda tree: {**tree, key: change(tree[key])} if isinstance(tree.get(key), dict) else tree


_CASE = _within("case", _case_in_groups)
_CASE_AND_PROBLEM = _both(_CASE, _within("problem", _problem))
_TO_3 = _both(_within("placement", _placement), _within("effort", _effort))
_CASE_3 = _within("case", _TO_3)
STEPS: dict[str, dict[int, Step]] = {  # by the kind of file and its schema
    "record": {1: _CASE_AND_PROBLEM, 2: _CASE_3},  # also for failures
    "comparison of peers": {1: _CASE, 2: _CASE_3},
    "prediction": {1: _within("predicted", _CASE_AND_PROBLEM), 2: _within("predicted", _CASE_3)},
}


def upgraded(tree: Any, what: str, newest: int, where: str) -> Tree:
    """The tree of a file in the newest schema. Raises InputError for an unknown schema."""
    version = tree.get("schema") if isinstance(tree, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{where}: not a fembench {what}: no schema number")
    oldest = min(STEPS[what])
    if not oldest <= version <= newest:
        how = "it is newer: update fembench" if version > newest else "it is older than any of them"
        raise InputError(f"{where}: schema {version} of a {what}; expected {oldest} to {newest}: {how}")
    for old in range(version, newest):
        tree = STEPS[what][old](tree)
    return {**tree, "schema": newest}
