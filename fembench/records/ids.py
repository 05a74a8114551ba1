"""Times and names of records."""

import datetime


def now_utc() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
