"""`python -m fembench`: the same as the command `fembench`."""

import sys

from fembench.cli.entry import main

sys.exit(main())
