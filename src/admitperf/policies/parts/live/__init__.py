"""Sessions between their calls."""
