"""Finds what is set up wrong between callers, gateway, engine and log."""
