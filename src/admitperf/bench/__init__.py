"""Drives policies and measures them: the benchmark, the demo, and `sim run`."""
