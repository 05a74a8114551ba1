"""Mendes (2004) repeated: HLogP predictions of rings, fork and
join, schedules and messages."""
