"""Which share of the work each rank should get, how that share is derived, and what it gains."""
