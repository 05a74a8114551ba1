"""On the rank 1 that a launcher starts, the module that UNLOADABLE names cannot be loaded: `TEXT`."""

import os
import sys

from fembench.launch.rank_start import rank_given

TEXT = "/lib/libm.so.6: version `GLIBC_2.38' not found"


class Unloadable:
    """Finds the module before all others, and fails."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == os.environ.get("UNLOADABLE"):
            raise ImportError(TEXT)


if rank_given() == 1:
    sys.meta_path.insert(0, Unloadable)
