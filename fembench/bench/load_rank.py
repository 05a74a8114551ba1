"""What the rank of `predict --now` on another host runs: `python -m fembench.bench.load_rank FOLDER`."""

import sys
from pathlib import Path

import msgspec

from fembench.bench.load_now import measured_here
from fembench.bench.serve import serve
from fembench.dist.comm import abort_on_exception, world

if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(
        serve(Path(sys.argv[1]), world_comm, lambda text: msgspec.json.encode(measured_here()), "load.json")
    )
