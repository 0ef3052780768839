"""Headers, client and body become the keywords of a policy call."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admitperf.core.request import Request
from admitperf.gateway.facts.body import read_wish
from admitperf.gateway.facts.conventions import Conventions, Deadline, Priority
from admitperf.gateway.facts.facts import Reader
from admitperf.gateway.facts.identity import Tenants
from admitperf.gateway.facts.tokens import TokenCounter
from admitperf.gateway.setup import Tenant

SECRET = b"s" * 32
HOP = ("10.0.0.1", 80)


def reader(conventions=None, known=None):
    """A reader that trusts 10.0.0.1."""
    tenants = Tenants(known, SECRET, ("10.0.0.1",))
    return Reader(conventions or Conventions(), tenants, TokenCounter())


def read(headers=None, body=None, *, by=None, client=None):
    """What a request with these headers and this body says."""
    pairs = headers if isinstance(headers, list) else list((headers or {}).items())
    raw = json.dumps(body if body is not None else {}).encode()
    scope = {
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
        "client": client,
    }
    return (by or reader()).read(scope, raw, read_wish(raw))


def test_a_bare_request_says_next_to_nothing():
    """What is not known is left out, and an absent `stream` means not streamed."""
    known = read()
    assert known.facts == {"tenant": "anonymous", "input_tokens": 0, "stream": False}
    assert (known.request_id, known.idempotency, known.said_attempt) == (None,) * 3
    assert known.slo == {}


def test_what_the_body_says_is_passed_on():
    """Model, sizes, count and streaming come from the body."""
    body = {"model": "m", "prompt": "x" * 40, "max_tokens": 9, "n": 2, "stream": True}
    assert read(body=body).facts == {
        "tenant": "anonymous",
        "model": "m",
        "input_tokens": 10,
        "max_output_tokens": 9,
        "n": 2,
        "stream": True,
    }


def test_of_an_unreadable_body_nothing_is_guessed():
    """No tokens, no streaming: not known."""
    raw = b"{"
    known = reader().read({"headers": []}, raw, read_wish(raw))
    assert known.facts == {"tenant": "anonymous"}


HEADER_ROWS = [
    ("x-claude-code-session-id", "s", {"session": "s"}),
    ("session-id", "s", {"session": "s"}),
    ("session_id", "s", {"session": "s"}),
    ("x-session-affinity", "s", {"session": "s"}),
    ("x-dynamo-session-id", "s", {"session": "s"}),
    ("x-session-id", "s", {"session": "s"}),
    ("x-parent-session-id", "p", {"session": "p", "parent_session": "p"}),
    ("x-dynamo-parent-session-id", "p", {"session": "p", "parent_session": "p"}),
    ("x-dynamo-session-final", "true", {"session_final": True}),
    ("x-llm-d-inference-objective", "gold", {"slo_class": "gold"}),
    ("x-llm-d-inference-objective", "-3", {"slo_class": "-3", "priority": -3}),
    ("priority", "u=0", {"priority": 3}),
    ("x-llm-d-slo-ttft-ms", "500", {"deadline_s": 0.5}),
    ("x-slo-ttft-ms", "500", {"deadline_s": 0.5}),
    ("x-slo-tpot-ms", "50", {}),
    ("x-llm-d-inference-ttl", "1m", {"deadline_s": 60.0}),
    ("grpc-timeout", "2S", {"deadline_s": 2.0}),
    ("x-envoy-expected-rq-timeout-ms", "1500", {"deadline_s": 1.5}),
    ("x-stainless-read-timeout", "30", {"deadline_s": 30.0}),
    ("x-stainless-read-timeout", "600", {}),
    ("x-stainless-timeout", "45", {"deadline_s": 45.0}),
    ("x-tenant-id", "forged", {}),
    ("user", "forged", {}),
    ("x-forwarded-for", "10.0.0.1", {}),
]


@pytest.mark.parametrize(("name", "said", "facts"), HEADER_ROWS)
def test_every_header_of_the_table_is_read(name, said, facts):
    """Each default place ends in its fact."""
    bare = read().facts
    assert read({name: said}).facts == {**bare, **facts}


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        ({"prompt_cache_key": "k"}, {"session": "k"}),
        ({"user": "u"}, {"session": "u"}),
        ({"user": "u", "prompt_cache_key": "k"}, {"session": "k"}),
        (
            {"metadata": {"user_id": "user_ab_account__session_12345678-ab"}},
            {"session": "12345678-ab"},
        ),
        (
            {"metadata": {"user_id": '{"device":"d","session_id":"12345678-ab"}'}},
            {"session": "12345678-ab"},
        ),
        ({"priority": 4}, {"priority": -4}),
        ({"nvext": {"agent_hints": {"priority": 4}}, "priority": 4}, {"priority": 4}),
        ({"nvext": {"agent_hints": {"osl": 70}}}, {"max_output_tokens": 70}),
        (
            {"nvext": {"agent_hints": {"osl": 70}}, "max_tokens": 9},
            {"max_output_tokens": 9},
        ),
        ({"service_tier": "flex"}, {"priority": -1}),
        ({"service_tier": "priority"}, {"priority": 1}),
        ({"service_tier": "auto"}, {}),
    ],
)
def test_every_body_field_of_the_table_is_read(body, facts):
    """What no header says may stand in the body."""
    assert read(body=body).facts == {**read().facts, **facts}


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_usable_place_wins(order):
    """Order is that of the conventions, not of the headers; nonsense is passed over."""
    headers = [
        ("x-session-id", "late"),
        ("session-id", " "),
        ("session_id", "early"),
        ("x-request-id", "has space"),
        ("request-id", "r-1"),
        ("priority", "u=0"),
        ("x-llm-d-inference-objective", "gold"),
    ]
    known = read(headers[::order], {"user": "last", "priority": 9})
    assert known.facts["session"] == "early"
    assert known.facts["priority"] == -9
    assert known.request_id == "r-1"


def test_of_a_repeated_header_the_first_counts():
    """That is the one upstream is likeliest to read."""
    assert read([("session-id", "a"), ("session-id", "b")]).facts["session"] == "a"


def test_the_shortest_deadline_counts():
    """Each source may only shorten what another allows."""
    known = read(
        {
            "x-llm-d-inference-ttl": "20s",
            "x-stainless-read-timeout": "10",
            "grpc-timeout": "nonsense",
            "x-slo-ttft-ms": "15000",
        }
    )
    assert known.facts["deadline_s"] == 10.0
    assert known.slo == {"ttft_ms": 15000.0}
    assert read({"x-slo-ttft-ms": "0"}).slo == {}
    both = read({"x-slo-ttft-ms": "500", "grpc-timeout": "1S"})
    assert both.facts["deadline_s"] == 0.5


@pytest.mark.parametrize(
    ("said", "attempt"),
    [("0", 0), ("2", 2), ("-1", None), ("x", None), ("99999", None), ("9" * 999, None)],
)
def test_the_attempt_is_the_clients_own_count(said, attempt):
    """A count nobody can have is not believed."""
    assert read({"x-stainless-retry-count": said}).said_attempt == attempt


@pytest.mark.parametrize(
    "said", ["", " ", "a b", "a\tb", "grüß", "x" * 257, "a\x00"], ids=range(7)
)
def test_a_request_id_that_cannot_be_echoed_is_none(said):
    """It goes into answers as it came, so it is short and visible ASCII."""
    assert read({"x-request-id": said}).request_id is None


def test_slos_are_kept_as_they_were_sent():
    """Both are milliseconds."""
    known = read({"x-llm-d-slo-ttft-ms": "500", "x-slo-tpot-ms": "12.5"})
    assert known.slo == {"ttft_ms": 500.0, "tpot_ms": 12.5}


def test_a_child_counts_for_its_root():
    """However an agent names its helpers, they are the root session's."""
    claude = {"x-claude-code-session-id": "r", "x-claude-code-agent-id": "a"}
    other = {"x-session-id": "c", "x-parent-session-id": "r"}
    for headers in (claude, other):
        facts = read({**headers, "x-dynamo-session-final": "1"}).facts
        assert (facts["session"], facts["parent_session"]) == ("r", "r")
        assert "session_final" not in facts, "a helper's end is not the root's"


@pytest.mark.parametrize("charge", ["root", "child"])
def test_a_helper_of_a_helper_counts_for_the_same_root(charge):
    """Who began it is its parent; who pays is the root, or itself."""
    agents = {"x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"}
    headers = {"x-claude-code-session-id": "s1", **agents}
    told = read(headers, by=reader(Conventions(charge=charge))).facts
    assert told["session"] == {"root": "s1", "child": "s1:a2"}[charge]
    assert told["parent_session"] == "s1:a1"


def test_a_child_can_count_for_itself():
    """One setting changes whom a helper's requests are charged to."""
    by = reader(Conventions(charge="child"))
    claude = {"x-claude-code-session-id": "r", "x-claude-code-agent-id": "a"}
    other = {"x-session-id": "c", "x-parent-session-id": "r"}
    final = {"x-dynamo-session-final": "1"}
    for headers, name in ((claude, "r:a"), (other, "c")):
        facts = read({**headers, **final}, by=by).facts
        assert (facts["session"], facts["parent_session"]) == (name, "r")
        assert facts["session_final"] is True


def test_nobody_can_name_anothers_session():
    """A session is its caller's: the same name under another key is another one."""
    sessions = {
        read({**key, "session-id": name}, client=client).facts["session"]
        for key, name, client in (
            ({"authorization": "Bearer 1"}, "s", None),
            ({"authorization": "Bearer 2"}, "s", None),
            ({}, "s", None),
            ({"x-tenant-id": "acme"}, "s", HOP),
            ({}, "acme/s", None),
        )
    }
    assert len(sessions) == 5
    assert {"s", "acme/s", "anonymous/acme/s"} <= sessions


def test_a_session_keeps_its_name_when_its_key_is_accepted():
    """Otherwise its second call would change the side of a split, and its replica."""
    by = reader()
    headers = {"authorization": "Bearer 1", "session-id": "s"}
    before = read(headers, by=by)
    by._tenants.accepted(before.identity)
    after = read(headers, by=by)
    assert before.facts["tenant"] != after.facts["tenant"]
    assert before.facts["session"] == after.facts["session"]
    assert before.fingerprint == after.fingerprint


def test_a_fingerprint_is_a_calls_own():
    """A repeat has the same one; another body, session, key or tenant another."""
    key = {"authorization": "Bearer 1"}
    one = read(key, {"model": "m"})
    assert read(key, {"model": "m"}).fingerprint == one.fingerprint
    assert len(one.fingerprint) == 32
    others = [
        read(key, {"model": "n"}),
        read({"authorization": "Bearer 2"}, {"model": "m"}),
        read({**key, "session-id": "s"}, {"model": "m"}),
        read({**key, "idempotency-key": "i"}, {"model": "m"}),
        read({**key, "idempotency-key": '{"model": "m"}'}, {"model": "m"}),
    ]
    assert len({one.fingerprint, *(each.fingerprint for each in others)}) == 6


def test_an_idempotency_key_stands_for_the_body():
    """Repeats that differ in a byte are one call when their sender says so."""
    headers = {"idempotency-key": "i-1"}
    one, two = read(headers, {"model": "m"}), read(headers, {"model": "m", "n": 1})
    assert one.idempotency == "i-1"
    assert one.fingerprint == two.fingerprint


TWO_KEYS = [("authorization", "Bearer 1"), ("authorization", "Bearer 2")]


@pytest.mark.parametrize("key", [None, "i"])
@pytest.mark.parametrize("headers", [[], TWO_KEYS], ids=["no key", "two keys"])
def test_callers_without_a_key_are_told_apart_by_their_address(headers, key):
    """One is not sent away for another who asked the same; a repeat is recognised."""
    headers = [*headers, *([("idempotency-key", key)] if key else [])]

    def seen(client, said=None):
        more = [("x-forwarded-for", said)] if said else []
        return read([*headers, *more], {"model": "m"}, client=client).fingerprint

    one, other = seen(("203.0.113.1", 5)), seen(("203.0.113.2", 5))
    assert one == seen(("203.0.113.1", 6)) != other
    assert seen(("203.0.113.1", 5), "198.51.100.1") == one, "not a trusted hop"
    behind = {seen(HOP), seen(HOP, "198.51.100.1"), seen(HOP, "198.51.100.2, 10.0.0.9")}
    assert len(behind | {one, other}) == 5
    assert seen(HOP, "198.51.100.2") in behind


def test_a_caller_with_a_key_may_move():
    """Whoever is known by a key repeats a call from wherever it is by then."""
    key = {"authorization": "Bearer 1"}
    here, there = (
        read(key, {"model": "m"}, client=(f"203.0.113.{host}", 1)).fingerprint
        for host in (1, 2)
    )
    assert here == there


def test_a_tenants_priority_is_added():
    """What configuration grants comes on top of what the request says."""
    digest = Tenants(secret=SECRET).digest("sk")
    by = reader(known={digest: Tenant(name="acme", priority=10)})
    headers = {"authorization": "Bearer sk"}
    assert read(headers, by=by).facts["priority"] == 10
    assert read(headers, {"priority": 4}, by=by).facts["priority"] == 6


def test_headers_can_be_made_to_count_only_from_trusted_hops():
    """Where callers are not to choose, their word is not looked at."""
    by = reader(Conventions(only_trusted=("priority", "deadline")))
    headers = {
        "x-llm-d-inference-objective": "9",
        "x-llm-d-inference-ttl": "1s",
        "x-session-id": "s",
    }
    outside = read(headers, by=by).facts
    assert "priority" not in outside
    assert "deadline_s" not in outside
    assert (outside["slo_class"], outside["session"]) == ("9", "s")
    inside = read(headers, by=by, client=HOP).facts
    assert (inside["priority"], inside["deadline_s"]) == (9, 1.0)


@pytest.mark.parametrize("trusted", [(), ("priority",)])
def test_what_is_cached_is_known_from_trusted_hops_alone(trusted):
    """A caller who says so of itself would pass those who are held before it."""
    by = reader(Conventions(only_trusted=trusted))
    said = {"x-admitperf-cached-tokens": "900"}
    assert "cached_tokens" not in read(said, by=by).facts
    assert read(said, by=by, client=HOP).facts["cached_tokens"] == 900
    for wrong in ("", "-1", "0.5", "many", "1e3"):
        header = {"x-admitperf-cached-tokens": wrong}
        assert "cached_tokens" not in read(header, by=by, client=HOP).facts


def test_replaced_places_are_the_only_ones():
    """A configured list stands instead of the default, not beside it."""
    by = reader(
        Conventions(
            session=("x-mine",),
            credentials=("x-key",),
            output_tokens=("x-most",),
            priority=(Priority(place="x-mine", direction="lower"),),
            deadline=(Deadline(place="x-ttl", unit="ms"),),
        )
    )
    headers = {"x-mine": "7", "session-id": "s", "x-ttl": "9", "grpc-timeout": "1S"}
    facts = read(
        {**headers, "x-most": "55", "x-key": "k"}, {"max_tokens": 3}, by=by
    ).facts
    assert facts["session"].endswith("/7")
    assert facts["tenant"] == "unverified"
    assert facts["priority"] == -7
    assert facts["deadline_s"] == 0.009
    assert facts["max_output_tokens"] == 55


NAMES = [name for name, _, _ in HEADER_ROWS] + [
    "authorization",
    "x-api-key",
    "idempotency-key",
    "x-stainless-retry-count",
    "x-claude-code-agent-id",
    "traceparent",
]
PAIRS = st.lists(
    st.tuples(st.sampled_from(NAMES).map(str.encode), st.binary(max_size=400)),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(PAIRS, st.sampled_from([None, HOP, ("x", 1)]))
def test_no_header_raises_and_all_facts_are_usable(headers, client):
    """Whatever bytes come, each fact is one the policy takes as it is."""
    known = reader().read(
        {"headers": headers, "client": client}, b"{}", read_wish(b"{}")
    )
    request = Request(known.facts)
    assert request.faults == []
    assert request.given == known.facts
    assert all(len(v) <= 256 for v in known.facts.values() if isinstance(v, str))


def test_a_key_is_in_nothing_that_is_known():
    """Keys and prompts are in no fact and in no text of one."""
    known = read(
        {"authorization": "Bearer hidden", "x-api-key": "hidden"},
        {"prompt": "hidden", "messages": [{"content": "hidden"}]},
    )
    assert "hidden" not in repr(known)
