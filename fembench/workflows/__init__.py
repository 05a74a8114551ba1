"""What a verb does, as functions of values: all that joins measuring and reasoning."""
