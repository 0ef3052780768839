"""What people type becomes an address, and what is shown of it holds no secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.scrape.address import Address, is_address
from admitperf.scrape.fault import ScrapeError


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("localhost:8000", "http://localhost:8000/metrics"),
        ("http://localhost:8000", "http://localhost:8000/metrics"),
        ("http://localhost:8000/", "http://localhost:8000/metrics"),
        ("HTTP://Engine.Example/m", "http://engine.example/m"),
        ("https://h/metrics/", "https://h/metrics/"),
        ("https://h:443/x", "https://h/x"),
        ("http://h:443/x", "http://h:443/x"),
        ("[::1]:8000", "http://[::1]:8000/metrics"),
        ("http://h/a b", "http://h/a%20b"),
        ("http://h/x#part", "http://h/x"),
        ("http://user:pw@h:1/x", "http://h:1/x"),
        ("http://h/x?token=pw&y=2", "http://h/x?***"),
        ("h:1?token=pw", "http://h:1/metrics?***"),
    ],
)
def test_what_is_typed_is_completed_and_shown_without_secrets(typed, shown):
    """Scheme and path are filled in; user information and query are left out."""
    address = Address.of(typed)
    assert address.shown == shown
    assert "pw" not in repr(address)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("ftp://h/x", "ftp://h/x"),
        ("http://", "http://"),
        ("http://:80", "http://:80"),
        ("http://h:99999", "http://h:99999"),
        ("http://[::1", "http://[::1"),
        ("http://h:pw", "http://h:***"),
        ("h:pw/x", "http://h:***/x"),
        ("http://[::1]:pw", "http://[::1]:***"),
        ("ftp://h:21/x#pw", "ftp://h:21/x?***"),
        ("ftp://u:pw@h/x?token=pw", "ftp://h/x?***"),
        ("http://u:p/w@h:x", "http://h:***"),
        ("http://u:p?w@h:x", "http://h:***"),
        ("ftp://u:p://w@h", "ftp://h"),
    ],
)
def test_what_is_no_web_address_is_named_without_its_secrets(typed, named):
    """The message says which, what is wrong and how one looks."""
    with pytest.raises(ScrapeError, match="http://HOST:PORT/metrics") as caught:
        Address.of(typed)
    assert caught.value.target == named
    assert str(caught.value).startswith(f"{named}: not usable: ")


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_one_clear_fault(text):
    """Nothing that can be typed raises anything else."""
    try:
        address = Address.of(text)
    except ScrapeError:
        return
    assert address.shown.startswith(("http://", "https://"))
    assert address.resource.isascii()
    assert not any(character.isspace() for character in address.resource)


@pytest.mark.parametrize(
    ("word", "is_one"),
    [
        ("localhost:8000", True),
        ("10.0.0.1:80/metrics", True),
        ("[::1]:80", True),
        ("http://x", True),
        ("ftp://x", True),
        ("metrics.prom", False),
        ("./a:b", False),
        ("C:\\metrics.prom", False),
        ("localhost", False),
        ("-", False),
        ("", False),
    ],
)
def test_a_word_is_told_from_a_path(word, is_one):
    """Only a scheme, or a host with a port, makes an address."""
    assert is_address(word) is is_one


def test_a_token_goes_before_what_stands_in_the_address():
    """User information is for basic authentication, where there is no token."""
    address = Address.of("http://user:p%40w@h/x")
    assert address.authorization("t") == "Bearer t"
    assert address.authorization(None) == "Basic dXNlcjpwQHc="
    assert Address.of("http://h/x").authorization(None) is None


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/metrics/", "http://h:8000/metrics/"),
        ("metrics/", "http://h:8000/metrics/"),
        ("//h:8000/x", "http://h:8000/x"),
        ("https://h:8000/x", "https://h:8000/x"),
        ("http://user:pw@h:8000/x?t=pw", "http://h:8000/x?***"),
    ],
)
def test_a_redirect_is_read_from_where_it_came(location, shown):
    """Relative, without a scheme, or whole."""
    assert Address.of("h:8000").joined(location).shown == shown


def test_user_information_stays_where_it_was_given():
    """A redirect on the same host keeps it, one that leads elsewhere does not."""
    address = Address.of("http://user:pw@h:8000/metrics")
    assert address.joined("/metrics/").credentials == "user:pw"
    assert address.joined("http://h:9000/metrics").credentials == ""
