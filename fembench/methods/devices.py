"""What a rank computes on: the cores of its host, or a device.

"cpu"     "gpu" (all ranks)     "gpu,cpu" (by rank)     "gpu,15*cpu" (one and fifteen)
"""

from fembench.base.errors import InputError, shown
from fembench.base.units import plural

CPU = "cpu"
DEVICES = (CPU, "gpu", "opencl")
LARGEST_COUNT = 1_000_000  # ranks; a longer list is a typing error


def device_by_rank(text: str, ranks: int) -> tuple[str, ...]:
    """The device of each rank. Raises InputError."""
    words = [word.strip() for word in text.split(",")]
    found: list[str] = []
    for word in words:
        count, star, name = word.rpartition("*")
        if name.strip() not in DEVICES or (star and not count.strip().isdecimal()):
            raise InputError(f"device '{shown(text)}': expected names as in gpu, cpu or gpu,15*cpu")
        found += [name.strip()] * min(int(count or 1), LARGEST_COUNT)
    if len(words) == 1 and "*" not in text:
        return tuple(found * ranks)
    if len(found) != ranks:
        raise InputError(f"device '{shown(text)}' names {plural(len(found), 'rank')}; expected {ranks}")
    return tuple(found)
