"""Builders are imported when they are asked for, and before anything is timed."""

import subprocess
import sys

CODE = """
import sys
from fembench.methods.lookup import Combination, variants
import fembench.records.case
assert not [name for name in sys.modules if name.startswith("fembench.solve")]
from fembench.solve.from_names import load_builders
for variant in variants():
    load_builders(Combination(precond="two-level", variant=variant.name))
    assert variant.build.split(":")[0] in sys.modules, variant.name
"""


def test_declarations_import_no_solver_and_loading_them_imports_what_a_set_needs():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
