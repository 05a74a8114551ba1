"""Import one module of fembench from a changed text: `mutations.py` puts this folder on PYTHONPATH.

FEMBENCH_MUTANT names a file with the module's name in its first line and the text in the others. Python runs
this at its start, so ranks and other processes that a test starts have the changed module, too.
"""

import importlib.machinery
import importlib.util
import os
import sys
import types


class Mutant(importlib.machinery.SourceFileLoader):
    """Loads a text instead of that of the file, which stays the module's `__file__`."""

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(text, self.path, "exec")


class Finder:
    """Finds the changed module where Python would find the true one."""

    @staticmethod
    def find_spec(
        name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != module:
            return None
        sys.meta_path.remove(Finder)  # only once: the next line asks all finders
        true = importlib.util.find_spec(name)
        sys.meta_path.insert(0, Finder)
        assert true
        assert true.origin
        return importlib.util.spec_from_file_location(name, true.origin, loader=Mutant(name, true.origin))


if file := os.environ.get("FEMBENCH_MUTANT"):
    with open(file, encoding="utf-8") as stream:
        module = stream.readline().strip()
        text = stream.read()
    sys.meta_path.insert(0, Finder)
