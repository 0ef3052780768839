"""Response-time theory of `chronos_inspired`."""
