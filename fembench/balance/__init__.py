"""Rebalancing while a job runs: policies (pure functions), a virtual clock, blocks that migrate."""
