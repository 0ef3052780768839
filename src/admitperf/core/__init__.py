"""The decision itself: standard library only, no socket, no subprocess.

Read first: `policy.py`.
"""
