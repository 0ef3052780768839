"""What a front door is made of: plain values, whoever read them from where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MIB = 1 << 20
KIB = 1 << 10

Defer = Literal["respond", "hold"]
View = Literal["pool", "replica"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one front door.

    Attributes:
        body_bytes: largest request body; a larger one gets 413, which names it.
        off_loop_bytes: bodies over this are read in a thread. Origin: the issue of the
            gateway: parsing 256 KB takes about a millisecond.
        body_s: longest pause while a body is sent. Plain choice: as long as granian
            waits for the head of a request.
        peek_ms: longest time the head of a streamed answer is held back, so that an
            early refusal inside the stream can become a real status. 0 = not at all.
        identities: tenants, sessions and calls remembered; the oldest go first.
    """

    body_bytes: int = 64 * MIB
    off_loop_bytes: int = 256 * KIB
    body_s: float = 30.0
    peek_ms: float = 40.0
    identities: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long an engine may take, in seconds; None = for ever.

    Attributes:
        connect_s: until its socket is open.
        first_token_s: from sending the request to the first byte of its body.
        gap_s: between two reads after that. Plain choice: twenty times the longest
            stall seen on a real vLLM (3 s), which leaves streams open on SIGTERM.
        total_s: the whole answer.
    """

    connect_s: float = 5.0
    first_token_s: float | None = 600.0
    gap_s: float | None = 60.0
    total_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What becomes of a deferred request.

    Attributes:
        defer: "respond" with 503 and a wait, or "hold" it here until there is room.
        most: requests held at once; one more is answered.
        longest_s: longest one is held, whatever its deadline.
        never: classes (`slo_class`) that are answered at once.
    """

    defer: Defer = "respond"
    most: int = 64
    longest_s: float = 30.0
    never: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """What is known of a tenant beforehand.

    Attributes:
        name: as logs have it.
        weight: of its share of the holding queue.
        priority: added to that of its requests.
        in_flight: open requests at once; None = no quota.
        per_minute: requests a minute, that many at once; None = no quota.
    """

    name: str
    weight: float = 1.0
    priority: int = 0
    in_flight: int | None = None
    per_minute: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One replica.

    Attributes:
        url: where requests go, without a path of the API.
        metrics_url: its metrics page.
        name: as logs have it: host and port, if nothing else was given.
        metrics_token: bearer token of that page; None = none.
        slots: requests it runs at once (vLLM's `max_num_seqs`); None = it is learnt.
    """

    url: str
    metrics_url: str
    name: str
    metrics_token: str | None = field(default=None, repr=False)
    slots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """How engines are read.

    Attributes:
        interval_s: between two looks.
        timeout_s: longest one may take.
        view: what a policy judges by: the whole "pool" in one reading, or the one
            "replica" that the request would go to.
    """

    interval_s: float = 0.25
    timeout_s: float = 5.0
    view: View = "pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSetup:
    """Replicas that serve the same models, and the policy before them.

    Attributes:
        name: as logs, metrics and state have it.
        models: names clients may ask for; empty = every name no other pool has.
        upstreams: its replicas; empty where the app behind is the engine itself.
        policy: the policy's name.
        parameters: the policy's own.
        settings: the reserved keywords of `core.settings.Settings`.
        holding, scrape, timeouts: see there.
        tokens_each: tokens an "image", an "audio" part and a "file" count as.
    """

    name: str = "default"
    models: tuple[str, ...] = ()
    upstreams: tuple[Upstream, ...] = ()
    policy: str = "no_admission"
    parameters: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    holding: Holding = Holding()
    scrape: Scrape = Scrape()
    timeouts: Timeouts = Timeouts()
    tokens_each: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSetup:
    """A whole front door.

    Attributes:
        pools: at least one; at most one that names no models.
        limits: bounds.
        tenants: by the digest of their key under `secret`.
        secret: key of the digests; empty = one made at start, so that no digest of
            an earlier start fits.
        trusted_hops: networks whose identity headers are believed.
        conventions: places of facts that differ from the defaults.
    """

    pools: tuple[PoolSetup, ...] = (PoolSetup(),)
    limits: Limits = Limits()
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    secret: bytes = field(default=b"", repr=False)
    trusted_hops: tuple[str, ...] = ()
    conventions: Mapping[str, object] = field(default_factory=dict)
