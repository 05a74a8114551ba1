"""The program that `predict --now` runs on another host: `python -m fembench.characterize.load_rank DIR`."""

import sys
from pathlib import Path

import msgspec

from fembench.characterize.load_now import measured_here
from fembench.launch.serve import serve
from fembench.ranks.comm import abort_on_exception, world

if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(
        serve(Path(sys.argv[1]), world_comm, lambda text: msgspec.json.encode(measured_here()), "load.json")
    )
