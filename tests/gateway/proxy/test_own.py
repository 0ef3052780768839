"""The gateway's own pages."""

import json

import pytest

from admitperf.gateway.proxy.own import Own

HERE = (b"host", b"127.0.0.1:8080")


def _page(path, *headers, client=("127.0.0.1", "1"), method="GET", unready=()):
    own = Own(
        metrics=lambda: b"admitperf_up 1\n",
        state=lambda: {"pools": {}},
        explain=lambda name: {"id": name} if name == "run-1" else None,
        unready=lambda: unready,
    )
    return own.answer(
        {"path": path, "method": method, "headers": list(headers), "client": client}
    )


def test_health_says_that_the_process_lives():
    """200, ready or not."""
    assert _page("/health", unready=["draining"]).status == 200


def test_ready_names_every_reason_why_not():
    """503 with the reasons, else 200."""
    told = _page("/ready", unready=["a: draining", "b: no reading"])
    assert told.status == 503
    assert json.loads(told.body) == {
        "ready": False,
        "reasons": ["a: draining", "b: no reading"],
    }
    assert _page("/ready").status == 200


def test_metrics_come_as_prometheus_reads_them():
    """The page, with its format and its length."""
    told = _page("/metrics", client=("10.0.0.1", "1"))
    assert told.body == b"admitperf_up 1\n"
    named = dict(told.headers)
    assert named[b"content-type"].startswith(b"text/plain; version=0.0.4")
    assert named[b"content-length"] == b"15"


@pytest.mark.parametrize("path", ["/admitperf/state", "/admitperf/explain/run-1"])
@pytest.mark.parametrize(
    "client", [("127.0.0.1", "1"), ("::1", "1"), ("::ffff:127.0.0.1", "1")]
)
def test_the_inside_is_shown_on_this_machine(path, client):
    """State and explanations, to callers on loopback."""
    assert _page(path, HERE, client=client).status == 200


@pytest.mark.parametrize("path", ["/admitperf/state", "/admitperf/explain/run-1"])
@pytest.mark.parametrize(
    "host", [b"127.0.0.1", b"localhost:80", b"LocalHost", b"[::1]:8080", b"[::1]"]
)
def test_every_name_of_this_machine_opens_the_inside(path, host):
    """With any port."""
    assert _page(path, (b"host", host)).status == 200


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [b""],
        [b"evil.example"],
        [b"127.0.0.1.evil.example"],
        [b"localhost.evil.example:80"],
        [b"10.0.0.1:8080"],
        [b"[::1"],
        [b"127.0.0.1", b"evil.example"],
    ],
)
def test_a_name_that_somebody_else_owns_does_not(hosts):
    """A page in a browser on this machine cannot read it under a name of its own."""
    given = [(b"host", host) for host in hosts]
    assert _page("/admitperf/state", *given).status == 404
    assert _page("/admitperf/explain/run-1", *given).status == 404


@pytest.mark.parametrize("path", ["/admitperf/state", "/admitperf/explain/run-1"])
@pytest.mark.parametrize("client", [("10.0.0.1", "1"), ("unix", "1"), None])
def test_the_inside_is_shown_to_nobody_else(path, client):
    """404, as if there were no such page."""
    told = _page(path, HERE, client=client)
    assert told.status == 404
    assert b"run-1" not in told.body


@pytest.mark.parametrize(
    "name",
    [
        *(b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"),
        *(b"forwarded", b"via", b"x-real-ip", b"x-envoy-external-address"),
    ],
)
def test_who_came_through_another_proxy_is_not_local(name):
    """A proxy on this machine does not open the inside to the world."""
    assert _page("/admitperf/state", HERE, (name, b"127.0.0.1")).status == 404


def test_unknown_decisions_and_pages_are_not_found():
    """404 for both."""
    assert _page("/admitperf/explain/other", HERE).status == 404
    assert _page("/admitperf/else", HERE).status == 404


def test_the_pages_are_read_only():
    """405 for anything that would change them, also from this machine."""
    told = _page("/metrics", method="POST")
    assert told.status == 405
    assert dict(told.headers)[b"allow"] == b"GET, HEAD"


@pytest.mark.parametrize("path", ["/v1/models", "/healthz", "/", "/admitperf"])
def test_all_else_is_not_ours(path):
    """None: it goes to an engine."""
    assert _page(path) is None
