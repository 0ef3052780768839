"""How long an endpoint may take; apart, so that `--help` need not load a client."""

TIMEOUT_S = 5.0
"""Longest a page may take, redirects included. Plain choice: ten times the slowest
scrape seen on a saturated engine (0.53 s)."""
