"""What the five source theses did, measured again: their experiments and the methods that only they need."""
