"""Measure the speed of every rank and the cost of messages: from samples to a machine profile."""
