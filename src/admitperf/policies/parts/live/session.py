"""One session: what is known of it between its calls too."""

from collections import OrderedDict


class Session:
    """A session with its helpers, as a policy's `Sessions` keeps it.

    Times are nanoseconds on the policy's monotonic clock.

    Attributes:
        root: its name.
        own: its own context, in tokens.
        helpers: context in tokens and last sign of life of each helper session.
        tokens: its own context and its helpers', in tokens.
        calls: calls of the family that were admitted.
        live: whether it was let in; otherwise it waits to be.
        busy: whether calls of the family are open.
        final: its last call was said to be its last.
        seen_ns: last sign of life.
        began_ns: when its newest call was admitted.
        idle_ns: since when it has no open call.
        refused_ns: when a call was first refused since the last one was admitted;
            None = none was.
        paused_ns: since when its policy holds it back; None = it does not.
        place: where it is counted; for `Sessions` alone.
        counted: tokens it is counted with there; for `Sessions` alone.
    """

    __slots__ = (
        "began_ns",
        "busy",
        "calls",
        "counted",
        "final",
        "helpers",
        "idle_ns",
        "live",
        "own",
        "paused_ns",
        "place",
        "refused_ns",
        "root",
        "seen_ns",
        "tokens",
    )

    def __init__(self, root: str, now_ns: int) -> None:
        self.root = root
        self.own = self.tokens = self.counted = self.calls = 0
        self.helpers: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self.live = self.busy = self.final = False
        self.seen_ns = self.began_ns = self.idle_ns = now_ns
        self.refused_ns: int | None = None
        self.paused_ns: int | None = None
        self.place: int | None = None

    def holds(self, name: str, tokens: int, now_ns: int) -> None:
        """Takes the context of one of the family, after a call or before its answer."""
        if name == self.root:
            before, self.own = self.own, tokens
        else:
            before, _ = self.helpers.pop(name, (0, 0))
            self.helpers[name] = (tokens, now_ns)
        self.tokens += tokens - before

    def lets_go(self, name: str) -> None:
        """A helper is gone, and its context with it."""
        tokens, _ = self.helpers.pop(name, (0, 0))
        self.tokens -= tokens
