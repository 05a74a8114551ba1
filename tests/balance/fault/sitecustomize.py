"""On PYTHONPATH of a job: rank 1 is killed in the middle of receiving its first block."""

import os
import signal

if os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "")) == "1":
    from fembench.balance import block

    class Killed(block.Block):
        def __init__(self, *arguments, **fields):
            if fields.get("id", 99) < 2:  # one that began on rank 0: it has just arrived
                os.kill(os.getpid(), signal.SIGKILL)
            super().__init__(*arguments, **fields)

    block.Block = Killed
