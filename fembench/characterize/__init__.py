"""Measure the speed of ranks and the cost of messages: from samples to a profile."""
