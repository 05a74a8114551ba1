"""What every rank of a balanced job runs: `python -m fembench.balance.rank FOLDER`."""

import time

BEGIN = time.perf_counter()  # the first line of the program: start-up is counted from here

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from fembench.balance.session import start_balanced  # noqa: E402
from fembench.bench.rank import main  # noqa: E402
from fembench.ranks.comm import abort_on_exception, world  # noqa: E402

if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(main(Path(sys.argv[1]), world_comm, BEGIN, start_balanced))
