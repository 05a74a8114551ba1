"""Studies measured anew: their experiments on the hosts at hand, their tables with both numbers."""
