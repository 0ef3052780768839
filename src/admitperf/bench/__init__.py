"""Drives policies and measures them. So far: the demo, over a recorded run."""
