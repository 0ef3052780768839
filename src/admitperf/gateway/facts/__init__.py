"""What a request says about itself, in its headers and in its body.

`Reader.read` turns both into the keywords of a policy call. Where each fact is looked
for is data (`conventions.py`), who is believed is `identity.py`, and what a body holds
is read in one pass without a tree (`body.py`).
"""
