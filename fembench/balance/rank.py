"""The program of every rank of a balanced job: `python -m fembench.balance.rank FOLDER`."""

import time

BEGIN = time.perf_counter()  # the first line of the program: start-up is counted from here

import sys  # noqa: E402

from fembench.balance.session import start_balanced  # noqa: E402
from fembench.bench.rank import program  # noqa: E402
from fembench.launch.serve import serve  # noqa: E402

if __name__ == "__main__":
    sys.exit(serve(program(BEGIN, start_balanced), sys.argv[1]))
