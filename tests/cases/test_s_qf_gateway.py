"""Field cases about quotas and leases that do not leak, through a real gateway."""

import json
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from tests.gateway.conformance.door import (
    TOOL,
    before,
    configured,
    environment,
    pause,
    pool,
    stub_engine,
)
from tests.gateway.conformance.wire import CHAT, Caller, post, wish
from tests.real.conftest import free_port

SECRET = "a-secret-of-this-test"
KEY = "sk-of-this-test"


TENANTS, ROUNDS = 17, 3


def bearer(key):
    """The header that carries a key."""
    return {"authorization": f"Bearer {key}"}


def test_s_qf_01_a_cancelled_stream_gives_its_slot_back(engine, door):
    """Fifty times, by tenants of their own: cancel midway, and the next is admitted."""
    stub = engine(slots=50, tokens=50, itl=0.02, ttft=0.01)
    door = door(*before(stub.url, "in_flight_cap", max_per_tenant=1))

    def rounds(tenant):
        headers, statuses = bearer(f"key-{tenant}"), []
        for number in range(ROUNDS):
            with Caller(door.url) as caller:
                reply = caller.ask(
                    CHAT, wish(CHAT, stream=True, text=f"{tenant} {number}"), headers
                )
                statuses.append(reply.status)
                assert all(reply.piece() for _ in range(3))
            pause(1)
            with Caller(door.url) as caller:
                text = f"normal {tenant} {number}"
                reply = caller.ask(CHAT, wish(CHAT, stream=True, text=text), headers)
                statuses.append(reply.status)
            pause(1)
        return statuses

    # A key is a tenant of its own once the engine has taken it.
    for tenant in range(TENANTS):
        with Caller(door.url) as caller:
            body = wish(CHAT, stream=True, text=f"first of {tenant}")
            assert caller.ask(CHAT, body, bearer(f"key-{tenant}")).status == 200
        assert door.empties()
    with ThreadPoolExecutor(TENANTS) as callers:
        each = callers.map(rounds, range(TENANTS))
        assert [one for some in each for one in some] == [200] * 2 * TENANTS * ROUNDS
    assert door.empties()


FAULTS = [
    ("invalid JSON", {"chat": "ok"}, {400}),
    ("unknown model", {"chat": "status:404"}, {404}),
    ("html502", {"chat": "html502"}, {502}),
    ("refused", None, {502}),
    ("timeout", {"chat": "hang", "slots": 20}, {504}),
]


def test_s_qf_02_failed_requests_give_their_slots_back(door, tmp_path):
    """Ten each of five kinds of failure at a limit of 3, then three good ones."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    capped = pool(
        url, "in_flight_cap", {"max_in_flight": 3}, timeouts={"first_token_s": 0.5}
    )
    words = configured(tmp_path, pools=[capped])
    with ExitStack() as first:
        first.enter_context(stub_engine(tmp_path, port=port))
        door = door(*words)
    for kind, options, statuses in FAULTS:
        with ExitStack() as stack:
            if options is not None:
                stack.enter_context(stub_engine(tmp_path, port=port, **options))
            body = b"{oops" if kind == "invalid JSON" else None
            with ThreadPoolExecutor(3) as callers:
                ends = callers.map(
                    lambda n, k=kind, b=body: post(
                        door.url, CHAT, b or wish(CHAT, text=f"{k} {n}")
                    ),
                    range(10),
                )
                found = {reply.status for reply, _ in ends}
        assert found == statuses, (kind, found)
    with (
        stub_engine(tmp_path, port=port, ttft=0.1, tokens=1),
        ThreadPoolExecutor(3) as callers,
    ):
        good = callers.map(
            lambda n: post(door.url, CHAT, wish(CHAT, text=f"good {n}")), range(3)
        )
        assert [reply.status for reply, _ in good] == [200] * 3
    assert door.empties()
    decisions, outcomes = door.waits_for("decision", 53), door.waits_for("outcome", 53)
    assert len(decisions) == len(outcomes) == 53


def refused(reply, body):
    """What an answer says of a limit: reason, limit, used."""
    assert reply.status == 429, (reply.status, body)
    error = json.loads(body)["error"]
    return error["code"], error.get("limit"), error.get("used")


def test_s_qf_03_refused_work_uses_nothing(engine, door, tmp_path):
    """Two a minute, one at once: B, refused for concurrency, costs nothing."""
    stub = engine(slots=9, tokens=100, itl=0.05, ttft=0.01)
    tenant = {"name": "acme", "keys": [digest_of(KEY)], "per_minute": 2, "in_flight": 1}
    words = configured(
        tmp_path, pools=[pool(stub.url, "no_admission")], tenants=[tenant],
        secret=SECRET,
    )  # fmt: skip
    door = door(*words)

    def ask(name):
        return post(door.url, CHAT, wish(CHAT, text=name), bearer(KEY))

    with Caller(door.url) as caller:
        body = wish(CHAT, stream=True, text="A")
        assert caller.ask(CHAT, body, bearer(KEY)).status == 200
        assert refused(*ask("B")) == ("caller_in_flight", 1, 1)
    assert door.empties()
    assert ask("C")[0].status == 200
    assert refused(*ask("D")) == ("rate_limit", 2, 2)


@pytest.mark.parametrize(
    "policy",
    [
        ("no_admission", {}),
        ("rate_limit", {"rate_per_s": 1 / 30, "burst": 2}),
        ("first_of", {"policies": [{"rate_limit": {"rate_per_s": 0.03, "burst": 2}}]}),
    ],
    ids=["quota", "quota and rate_limit", "quota and composition"],
)
def test_s_qf_04_one_limit_on_two_paths_is_charged_once(engine, door, tmp_path, policy):
    """Two keys of one tenant, a quota and a policy: two of three get in."""
    stub = engine(slots=9, tokens=1, itl=0, ttft=0)
    keys = [KEY, f"{KEY}-2"]
    tenant = {"name": "acme", "keys": [*map(digest_of, keys)], "per_minute": 2}
    words = configured(
        tmp_path, pools=[pool(stub.url, *policy)], tenants=[tenant], secret=SECRET
    )
    door = door(*words)
    answers = [
        post(door.url, CHAT, wish(CHAT, text=f"{n}"), bearer(keys[n % 2]))
        for n in range(3)
    ]
    assert [reply.status for reply, _ in answers] == [200, 200, 429]
    assert refused(*answers[2]) == ("rate_limit", 2, 2)
    assert "limit 2, used 2" in json.loads(answers[2][1])["error"]["message"]


def test_s_qf_04_a_policys_limit_is_charged_once_whatever_the_quota(
    engine, door, tmp_path
):
    """A wider quota before it: the policy's own two, and it says so."""
    stub = engine(slots=9, tokens=1, itl=0, ttft=0)
    tenant = {"name": "acme", "keys": [digest_of(KEY)], "per_minute": 100}
    limit = pool(stub.url, "rate_limit", {"rate_per_s": 1 / 30, "burst": 2})
    words = configured(tmp_path, pools=[limit], tenants=[tenant], secret=SECRET)
    door = door(*words)
    answers = [
        post(door.url, CHAT, wish(CHAT, text=f"{n}"), bearer(KEY)) for n in range(3)
    ]
    assert [reply.status for reply, _ in answers] == [200, 200, 429]
    assert refused(*answers[2]) == ("rate_limit", 2, 2)


def digest_of(key):
    """The digest of a key, as the command makes it from standard input."""
    done = subprocess.run(
        [*TOOL, "gateway", "hash-key"], input=key, capture_output=True, text=True,
        check=False, env=environment(ADMITPERF_SECRET=SECRET),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert key not in done.stdout + done.stderr
    return re.search(r"\b[0-9a-f]{32}\b", done.stdout)[0]


CALLERS = 4
WARM = 11_000  # more than the names it remembers, of which there are 10,000
SENT = 16_000
MIB = 1 << 20


def forged(number, body):
    """A request that says it is somebody new, as bytes."""
    return (
        f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {KEY}\r\nx-forwarded-for: 10.{number >> 16}."
        f"{number >> 8 & 255}.{number & 255}\r\nx-tenant-id: tenant-{number}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body


def flood(url, numbers):
    """Send requests on one connection, one after the other; their statuses."""
    host, port = url.removeprefix("http://").split(":")
    statuses = []
    with socket.create_connection((host, int(port)), 30) as line:
        stream = line.makefile("rb")
        for number in numbers:
            line.sendall(forged(number, wish(CHAT, text=f"{number}")))
            statuses.append(int(stream.readline().split()[1]))
            length = 0
            while (header := stream.readline()) != b"\r\n":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            stream.read(length)
        stream.close()
    return statuses


def test_s_qf_08_the_key_decides_and_not_what_a_caller_calls_itself(
    engine, door, tmp_path
):
    """Of 16,000 requests under one key, all with new names, ten get in.

    Scaled down from 100,000; once 10,000 names are known memory grows no more.
    """
    stub = engine(tokens=1, ttft=0, itl=0, slots=50)
    key = digest_of(KEY)
    tenants = [{"name": "acme", "keys": [key], "per_minute": 10}]
    words = configured(
        tmp_path,
        pools=[pool(stub.url, "no_admission")],
        tenants=tenants,
        secret=SECRET,
    )
    door = door(*words)
    statuses = flood(door.url, range(CALLERS * 5))
    bytes_at = [door.resident_bytes()]
    for first, last in ((len(statuses), WARM), (WARM, SENT)):
        shares = [range(first + n, last, CALLERS) for n in range(CALLERS)]
        with ThreadPoolExecutor(CALLERS) as callers:
            for each in callers.map(lambda share: flood(door.url, share), shares):
                statuses += each
        bytes_at.append(door.resident_bytes())
    assert len(statuses) == SENT
    # One more each six seconds.
    assert 10 <= statuses.count(200) <= 10 + 10
    assert statuses[:10] == [200] * 10
    assert set(statuses) == {200, 429}
    assert bytes_at[2] - bytes_at[0] < 20 * MIB
    assert bytes_at[2] - bytes_at[1] < 4 * MIB
    page = json.dumps(sorted(door.metrics()))
    assert "tenant-" not in page
    assert KEY not in page


@pytest.mark.parametrize("trusted", [False, True])
def test_s_qf_08_headers_count_only_from_trusted_hops(engine, door, tmp_path, trusted):
    """A name in a header is a tenant where the operator said whom to believe."""
    stub = engine(tokens=1, ttft=0, itl=0)
    more = {"trusted": ["127.0.0.1/32"]} if trusted else {}
    limit = pool(stub.url, "rate_limit", {"rate_per_s": 0.01, "burst": 2})
    door = door(*configured(tmp_path, pools=[limit], **more))
    statuses = [
        post(
            door.url, CHAT, wish(CHAT, text=str(n)),
            {**bearer(KEY), "x-tenant-id": f"tenant-{n}"},
        )[0].status
        for n in range(6)
    ]  # fmt: skip
    # A key that the engine has not taken yet shares a bucket with other such keys.
    assert statuses.count(200) in ((6,) if trusted else (2, 3))
