"""What a computer is: processors, caches, control groups, provenance, the check-up."""
