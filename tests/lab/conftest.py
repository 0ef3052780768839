"""Servers for one test."""

import pytest
from tests.scrape.server import servers


@pytest.fixture
def serve():
    """Start a server on bytes, or on a function of the request."""
    with servers() as start:
        yield start
