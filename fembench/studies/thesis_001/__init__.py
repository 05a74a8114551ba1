"""HLogP: rings, fork and join, schedules and messages, measured again."""
