"""Who asks follows from a key or a trusted hop, and making names up buys nothing."""

import tracemalloc

import pytest

from admitperf.core.errors import ConfigError
from admitperf.gateway.facts.conventions import Conventions
from admitperf.gateway.facts.identity import ANONYMOUS, UNVERIFIED, Tenants
from admitperf.gateway.setup import Tenant

SECRET = b"s" * 32
OUTSIDE = ("203.0.113.9", 4711)
HOP = ("10.1.2.3", 80)
ACME = Tenant(name="acme", priority=2)


def bearer(key):
    """The headers of a caller with this key."""
    return [(b"host", b"h"), (b"authorization", f"Bearer {key}".encode())]


@pytest.fixture
def tenants():
    """One known key, one trusted network."""
    digest = Tenants(secret=SECRET).digest("sk-acme")
    return Tenants({digest: ACME}, SECRET, ("10.0.0.0/8", "::1"))


@pytest.mark.parametrize(
    "headers",
    [
        [(b"authorization", b"Bearer sk-acme")],
        [(b"authorization", b"bearer  sk-acme ")],
        [(b"x-api-key", b"sk-acme")],
        [(b"api-key", b"sk-acme")],
        [(b"authorization", b"Bearer other"), (b"x-api-key", b"sk-acme")],
    ],
)
def test_a_known_key_is_its_tenant_wherever_it_is_sent(tenants, headers):
    """Every API's header for keys is looked at, and a known key wins."""
    identity = tenants.of(headers, OUTSIDE)
    assert (identity.tenant, identity.scope, identity.verified) == (
        "acme",
        "acme",
        True,
    )
    assert identity.setup is ACME


@pytest.mark.parametrize(
    "headers",
    [[], [(b"authorization", b"")], [(b"authorization", b"Bearer ")]],
    ids=["none", "empty", "scheme only"],
)
def test_no_key_is_anonymous(tenants, headers):
    """Whoever shows no key shares one name."""
    identity = tenants.of(headers, OUTSIDE)
    assert (identity.tenant, identity.digest, identity.verified) == (
        ANONYMOUS,
        None,
        False,
    )


def test_a_key_has_a_tenant_of_its_own_once_upstream_took_it(tenants):
    """Before that all keys share a name; after it each has one made of its digest."""
    first = tenants.of(bearer("sk-1"), OUTSIDE)
    other = tenants.of(bearer("sk-2"), OUTSIDE)
    assert first.tenant == other.tenant == UNVERIFIED
    assert first.scope != other.scope
    tenants.accepted(first)
    again = tenants.of(bearer("sk-1"), OUTSIDE)
    assert again.tenant == again.scope == first.scope == f"key-{first.digest[:12]}"
    assert again.verified
    assert tenants.of(bearer("sk-2"), OUTSIDE).tenant == UNVERIFIED


def test_a_refused_key_is_nobody_again(tenants):
    """A key that upstream no longer takes loses its name; a known one keeps it."""
    identity = tenants.of(bearer("sk-1"), OUTSIDE)
    tenants.accepted(identity)
    tenants.refused(tenants.of(bearer("sk-1"), OUTSIDE))
    assert tenants.of(bearer("sk-1"), OUTSIDE).tenant == UNVERIFIED
    tenants.refused(tenants.of(bearer("sk-acme"), OUTSIDE))
    assert tenants.of(bearer("sk-acme"), OUTSIDE).tenant == "acme"


def test_refusing_creates_nobody(tenants):
    """A key that was never accepted leaves nothing behind."""
    for number in range(100):
        tenants.refused(tenants.of(bearer(number), OUTSIDE))
    assert len(tenants._accepted) == 0


def test_nobody_without_a_key_is_accepted(tenants):
    """An answer to an anonymous request verifies no one."""
    tenants.accepted(tenants.of([], OUTSIDE))
    assert len(tenants._accepted) == 0


def test_accepted_keys_are_bounded_and_the_longest_unused_go_first():
    """Whoever makes keys up by the thousand does not fill the memory."""
    tenants = Tenants(secret=SECRET, most=3)
    for key in ("a", "b", "c"):
        tenants.accepted(tenants.of(bearer(key), None))
    tenants.of(bearer("a"), None)
    tenants.accepted(tenants.of(bearer("d"), None))
    verified = {key: tenants.of(bearer(key), None).verified for key in "abcd"}
    assert verified == {"a": True, "b": False, "c": True, "d": True}


@pytest.mark.parametrize(
    ("client", "tenant"),
    [
        (HOP, "forged"),
        (["10.255.0.1", 1], "forged"),
        (("::ffff:10.1.2.3", 1), "forged"),
        (("::1", 1), "forged"),
        (("::1%lo", 1), "forged"),
        (OUTSIDE, "acme"),
        (("11.0.0.1", 1), "acme"),
        (("", 0), "acme"),
        (("testclient", 50000), "acme"),
        (None, "acme"),
        ((), "acme"),
    ],
)
def test_a_header_names_a_tenant_only_from_a_trusted_hop(tenants, client, tenant):
    """Anybody else is who their key says, and the address is the socket's own."""
    headers = [
        (b"x-tenant-id", b" forged "),
        (b"x-forwarded-for", b"10.1.2.3"),
        (b"authorization", b"Bearer sk-acme"),
    ]
    for _ in range(2):
        assert tenants.of(headers, client).tenant == tenant


def test_a_trusted_hop_that_names_a_known_tenant_gets_its_setup(tenants):
    """Weight, quota and priority follow the name too."""
    identity = tenants.of([(b"x-llm-d-inference-fairness-id", b"acme")], HOP)
    assert identity.setup is ACME
    assert tenants.of([(b"x-tenant-id", b"else")], HOP).setup is None


def test_a_trusted_hop_that_names_nobody_leaves_it_to_the_key(tenants):
    """An empty header is none."""
    headers = [(b"x-tenant-id", b" "), *bearer("sk-acme")]
    assert tenants.of(headers, HOP).tenant == "acme"


@pytest.mark.parametrize(
    "headers",
    [
        [*bearer("sk-acme"), *bearer("sk-acme")],
        [*bearer("sk-acme"), *bearer("sk-1")],
        [*bearer("sk-1"), *bearer("sk-acme")],
        [*bearer(""), *bearer("sk-acme")],
        [*bearer("sk-1"), *bearer("sk-2"), (b"x-api-key", b"sk-acme")],
        [*bearer("sk-acme"), *bearer("sk-bolt")],
        [(b"x-api-key", b"sk-bolt"), *bearer("sk-acme"), *bearer("sk-1")],
    ],
    ids=["equal", "first", "last", "empty", "elsewhere", "both", "order"],
)
def test_a_listed_key_keeps_its_tenant_whatever_is_beside_it(headers):
    """Nobody escapes a quota by sending a second key along with the listed one."""
    digest = Tenants(secret=SECRET).digest
    known = {digest("sk-acme"): ACME, digest("sk-bolt"): Tenant(name="bolt")}
    assert Tenants(known, SECRET).of(headers, OUTSIDE).tenant == "acme"


def test_a_key_sent_twice_is_that_key(tenants):
    """Equal values leave nothing to choose, with or without the word before them."""
    once = tenants.of(bearer("sk-1"), OUTSIDE)
    twice = [*bearer("sk-1"), (b"authorization", b"bearer  sk-1")]
    assert tenants.of(twice, OUTSIDE).digest == once.digest
    tenants.accepted(once)
    assert tenants.of(twice, OUTSIDE).tenant == once.scope
    nothing = [(b"authorization", b""), (b"authorization", b"")]
    assert tenants.of(nothing, OUTSIDE).tenant == ANONYMOUS


def test_two_keys_in_one_header_are_nobodys(tenants):
    """Nobody can tell which of them upstream will look at."""
    headers = [*bearer("sk-1"), *bearer("sk-2")]
    identity = tenants.of(headers, OUTSIDE)
    assert (identity.tenant, identity.digest) == (UNVERIFIED, None)
    tenants.accepted(identity)
    assert tenants.of(headers, OUTSIDE).tenant == UNVERIFIED


def test_the_headers_follow_the_conventions(tenants):
    """Keys and tenants can be looked for elsewhere."""
    tenants.follow(Conventions(credentials=("x-key",), tenant=("x-who",)))
    assert tenants.of([(b"x-key", b"sk-acme")], OUTSIDE).tenant == "acme"
    assert tenants.of([(b"x-who", b"me")], HOP).tenant == "me"
    assert tenants.of(bearer("sk-acme"), OUTSIDE).tenant == ANONYMOUS


def test_a_digest_tells_nothing_without_the_secret():
    """The same key has another digest under another secret, and the same under one."""
    one, same, other = (Tenants(secret=s) for s in (SECRET, SECRET, b"t" * 99))
    assert one.digest("sk-1") == same.digest(b"sk-1") != other.digest("sk-1")
    assert len(one.digest("sk-1")) == 32


def test_marks_tell_parts_apart():
    """Moving a byte from one part to the next makes another mark."""
    tenants = Tenants(secret=SECRET)
    marks = {
        tenants.mark(*parts)
        for parts in (
            [b"c", b"a", b"b"],
            [b"c", b"ab", b""],
            [b"bc", b"a", b""],
            [b"c"],
        )
    }
    assert len(marks) == 4


def test_no_key_is_shown(tenants):
    """Neither an identity nor the table of tenants prints a key or its digest."""
    identity = tenants.of(bearer("sk-1"), OUTSIDE)
    assert "sk-1" not in repr(identity)
    assert identity.digest not in repr(identity)
    assert SECRET.decode() not in repr(tenants) + repr(vars(tenants))
    assert "sk-1" not in repr(vars(tenants))


def test_every_bad_network_is_named_at_once():
    """A typing error in a list of hops stops the start, with its place."""
    with pytest.raises(ConfigError) as caught:
        Tenants(trusted=("10.0.0.0/8", "10.0.0.1/8", "front"))
    assert len(caught.value.faults) == 2
    assert caught.value.faults[0].startswith("[1]: ")
    assert "front" in caught.value.faults[1]


def test_a_hundred_thousand_forged_names_leave_nothing(tenants):
    """Self-declared tenants and addresses of one key stay one tenant and no memory."""
    tenants.accepted(tenants.of(bearer("sk-1"), OUTSIDE))
    tracemalloc.start()
    names = set()
    for number in range(100_000):
        value = b"%d" % number
        forged = [(b"x-tenant-id", value), (b"x-forwarded-for", value)]
        names.add(tenants.of([*bearer("sk-1"), *forged], OUTSIDE).tenant)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(names) == 1
    assert grown < 1 << 20


def test_the_addresses_remembered_are_bounded(tenants):
    """A flood of addresses does not fill the memory either."""
    for number in range(10_000):
        tenants.trusts((f"203.0.{number >> 8}.{number & 255}", 1))
    assert len(tenants._clients) <= 4096
