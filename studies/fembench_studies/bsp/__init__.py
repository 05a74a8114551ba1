"""Bulk-synchronous programs over blocks that migrate between ranks."""
