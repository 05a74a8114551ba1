"""What a user types: the verb `study`, and options of other verbs."""
