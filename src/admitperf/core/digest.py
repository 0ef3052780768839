"""BLAKE2 without the rest of `hashlib`, whose OpenSSL part costs 3 ms to import."""

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter that builds it in elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]
