"""Errors, units, atomic files, TOML and JSON: what every room stands on."""
