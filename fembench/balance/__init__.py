"""Rebalancing while a job runs: policies, a virtual clock, blocks that migrate."""
