"""Plots as SVG text: `canvas` is the door to matplotlib, the other modules draw."""
