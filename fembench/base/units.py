"""Numbers for people: seconds, bytes and counts in the unit that reads best."""


def seconds(value: float) -> str:
    """'1.23 s', '4.56 ms', '7.89 µs' or '12.3 ns'."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return (
                f"{value / scale:.3g} {unit}" if abs(value) < 1000 * scale else f"{value / scale:.0f} {unit}"
            )
    return f"{value / 1e-9:.3g} ns" if value else "0 s"


def size(n_bytes: float) -> str:
    """'1.5 GiB', '20 MiB', '512 B'."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(n_bytes) >= 1024**power:
            return f"{n_bytes / 1024**power:.3g} {unit}"
    return f"{n_bytes:.0f} B"


def count(n: float) -> str:
    """'12 345' with thin grouping, as tables use it."""
    return f"{n:,.0f}".replace(",", " ")
