"""Fetches metrics pages and says which signals they supply.

Off the request path, and only when asked. `fetch` gets a page, `target` knows where
pages come from, `survey` reads the signals off one or two of them.
"""
