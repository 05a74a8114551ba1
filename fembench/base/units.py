"""Numbers for people: seconds, bytes and counts in the unit that reads best."""

from collections.abc import Sequence


def seconds(value: float) -> str:
    """'1.23 s', '4.56 ms', '7.89 µs' or '12.3 ns'."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= 0.9995 * scale:  # 999.5 of a smaller unit round to 1
            return f"{digits(value / scale)} {unit}"
    return f"{value / 1e-9:.3g} ns" if value else "0 s"


def few(names: Sequence[str], most: int) -> str:
    """'a, b and 3 more'; if only one more would be left, it is named, too."""
    rest = len(names) - most
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:most])} and {rest} more"


def size(n_bytes: float) -> str:
    """'1.5 GiB', '20 MiB', '512 B'."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(n_bytes) >= 1023.5 * 1024 ** (power - 1):
            return f"{digits(n_bytes / 1024**power)} {unit}"
    return f"{n_bytes:.0f} B"


def bytes_of(text: str) -> int:
    """Bytes of '8', '64K', '4M' or '1G', powers of 1024. Raises ValueError for others."""
    number, power = text.strip(), 0
    if number[-1:].upper() in ("K", "M", "G"):
        number, power = number[:-1], "KMG".index(number[-1].upper()) + 1
    if not number.isascii() or not number.isdigit():
        raise ValueError(f"'{text}': expected bytes such as 8, 64K or 4M")
    return int(number) * 1024**power


def digits(value: float) -> str:
    """Three significant digits, never as a power of ten."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def count(n: float) -> str:
    """'12 345' with thin grouping, as tables use it."""
    return f"{n:,.0f}".replace(",", " ")


def plural(n: int, noun: str) -> str:
    """'1 warm-up', '2 warm-ups'."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def fixed(value: float, decimals: int = 2) -> str:
    """'0.85'; a number smaller than its last decimal shows has two significant digits."""
    return f"{value:.2g}" if 0 < abs(value) < 10.0**-decimals else f"{value:.{decimals}f}"


def percent(fraction: float, decimals: int = 1) -> str:
    """'23.2 %', as all output spells it."""
    return f"{fixed(100 * fraction, decimals)} %"


def span(value: float) -> str:
    """'6 s', '12 minutes', '1.5 h' or '3 days': how long something takes, or is ago."""
    if value < 99.5:
        return f"{value:.0f} s"
    if value < 99.5 * 60:
        return f"{value / 60:.0f} minutes"
    return f"{value / 3600:.1f} h" if value < 47.95 * 3600 else f"{value / 86400:.0f} days"


def clock(value: float) -> str:
    """'0:05', '12:30' or '1:02:03'."""
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
