"""The front door: a reverse proxy and an ASGI middleware, one edge in two homes.

`AdmissionMiddleware` decides about each request of an ASGI app, answers the refused
ones, watches the answers of the others and reports how they ended. `admitperf gateway`
is that middleware around a proxy app; `admitperf.gateway.vllm` is the same inside
vLLM's own API server.
"""
