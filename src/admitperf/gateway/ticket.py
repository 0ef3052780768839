"""What an admitted request carries to the app behind the middleware."""


class Ticket:
    """Stands in the ASGI scope as `admitperf`, for apps that forward requests.

    Attributes:
        pool: the pool it was admitted to.
        replica: the replica it was judged for, then the one it went to; None = not
            chosen yet.
        body: the whole request body.
        session: of the request; None = it named none.
        request_id: the id that answers and upstream carry.
        why: the word for how it failed before it had an answer; None = it did not.
    """

    __slots__ = (
        "body", "pool", "replica", "request_id", "session", "why",
    )  # fmt: skip

    def __init__(
        self,
        pool: str,
        body: bytes,
        request_id: str,
        session: str | None = None,
        replica: str | None = None,
    ) -> None:
        self.pool = pool
        self.body = body
        self.request_id = request_id
        self.session = session
        self.replica = replica
        self.why: str | None = None
