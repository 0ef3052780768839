"""Brings engines up for a benchmark, tries them, and takes them down again.

`up`, `smoke` and `down` are the three commands; `state` is what they know of each other
across processes; `engines` and `cloud` know how each kind is started.
"""
