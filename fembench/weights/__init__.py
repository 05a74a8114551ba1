"""Which share of the work each rank should get, why, and what that gains."""
