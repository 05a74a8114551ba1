"""The closed loop: measure equal ranks, derive weights, partition with them, prove the gain."""
