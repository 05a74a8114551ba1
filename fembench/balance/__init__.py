"""Rebalancing while a job runs: policies (pure), a virtual clock, blocks that migrate between ranks."""
