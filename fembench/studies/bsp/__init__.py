"""Bulk-synchronous programs over migratable blocks."""
