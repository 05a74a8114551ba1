"""Gomes (2014) repeated: MigBSP++, rebalancing of bulk-synchronous programs."""
