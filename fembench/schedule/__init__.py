"""What predictions are for: tasks of a graph on hosts, parts of a mesh on hosts (thesis-001, 6.2)."""
