"""The demo: three policies before a simulated engine, or before a recorded run."""
