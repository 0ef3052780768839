"""Reads logs and says what they can and cannot show. Never imports a policy."""
