"""What a computer is: processors, caches, control groups, memory bandwidth, provenance, the check-up."""
