"""The simulated engine: what it is, and what becomes of requests inside."""
