"""When this process began; the first import of a rank."""

import time

BEGIN = time.perf_counter()
