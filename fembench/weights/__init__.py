"""What part of the work each rank is to get, where that follows from, and what it gains."""
