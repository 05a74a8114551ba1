"""Plots as SVG text: `canvas` is the door to matplotlib, the others say what is drawn."""
