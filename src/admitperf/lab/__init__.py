"""Runs policies over what an engine's metrics said, and computes what they could say.

`trace` writes and reads the samples of `admitperf watch`, `judge` runs policies over
them, `reach` is the arithmetic of how high KV pressure can get.
"""
