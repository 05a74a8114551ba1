"""The program of every rank of `fembench characterize`: `python -m fembench.characterize.speeds_rank FOLDER`.

FOLDER holds job.json; rank 0 leaves profile.json there, or error.txt, and writes lines to progress.txt.
"""

import sys
from pathlib import Path

import msgspec

from fembench.characterize.speeds import CharacterizeJob, characterize
from fembench.launch.serve import expect, serve
from fembench.ranks.comm import Comm, abort_on_exception, world
from fembench.records.store import encode


def main(folder: Path, comm: Comm) -> int:
    """Run the job in `folder`; 0, or 2 if it could not be run."""

    def tell(text: str) -> None:
        if comm.rank == 0:
            with open(folder / "progress.txt", "a", encoding="utf-8") as stream:
                stream.write(f"{text}\n")

    def run(text: bytes) -> bytes | None:
        job = msgspec.json.decode(text, type=CharacterizeJob)
        expect(comm, job.ranks)
        profile = characterize(comm, job, tell)
        return None if profile is None else encode(profile)

    return serve(folder, comm, run, "profile.json")


if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(main(Path(sys.argv[1]), world_comm))
