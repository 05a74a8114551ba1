"""Elements, material, problems, constraints, local assembly."""
