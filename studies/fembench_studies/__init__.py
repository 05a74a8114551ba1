"""The measurements of the five source theses, repeated, and the
methods that nothing else needs."""
