"""The reverse proxy behind the front door: replicas, and the gateway's own pages.

Needs aiohttp, of the extra `gateway`. An app for granian: `ProxyApp`.
"""
