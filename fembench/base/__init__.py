"""Errors, units, atomic files, TOML and JSON: used by every room."""
