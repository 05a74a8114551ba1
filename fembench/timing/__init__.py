"""Clocks and their certificate, phase names, the tracer."""
