"""Speed of every rank and cost of every message, from samples to a machine profile."""
