"""The simulated engine behind HTTP, in wall-clock time.

It needs the extra `sim` (aiohttp); nothing else in the package imports from here but
the command `admitperf sim serve`. What it answers: docs/reference/simulated-server.md.
"""
