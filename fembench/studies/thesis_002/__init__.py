"""MigBSP++: rebalancing of bulk-synchronous programs, measured again."""
