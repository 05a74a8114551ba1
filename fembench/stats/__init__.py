"""Medians, intervals, paired comparison, drift."""
