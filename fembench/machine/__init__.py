"""Host facts, kernel rates, network parameters."""
