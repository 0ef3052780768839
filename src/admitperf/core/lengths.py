"""How long answers will be: quantiles by class, learnt from outcomes.

No ingress knows the length of an answer; who needs a size asks here, so that there is
one guess and not one in each rule. Classes are nested: everything; model and SLO class;
with the tenant; with the size of the prompt; the session. A class that has seen little
leans on the one around it.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable

from admitperf.core.recent import Recent
from admitperf.core.request import Request

SHRINK = 30
"""Answers of its own at which a class counts as much as the class around it. Origin:
research notes, 7.1: fewer than 30 samples are shrunk to the mean of the class."""

RECENT = 16
DRIFTED = 15
"""When so many of the most recent answers lie on one side of what the class held before
them, it has changed and its past is dropped. By chance that is 1 in 1900, looked at
once in `RECENT` answers."""

CLASSES_MOST = 1000
"""Classes remembered, the ones used last. Plain choice: about 4 MB at most."""


class _Class(Recent):
    """The last answers of one class, which may change."""

    __slots__ = ("_since", "_squares", "_sum")

    def __init__(self) -> None:
        super().__init__()
        self._since = 0
        self._sum: float = 0
        self._squares: float = 0

    def learn(self, tokens: int) -> None:
        oldest = self.add(tokens) or 0
        self._sum += tokens - oldest
        self._squares += tokens * tokens - oldest * oldest
        self._since += 1
        if self._since >= RECENT and len(self) >= 2 * RECENT:
            self._since = 0
            self._forget_past_if_drifted()

    def moments(self) -> tuple[float, float]:
        """Mean and variance. Whole numbers are added up: nothing is rounded off."""
        n = len(self)
        return self._sum / n, (n * self._squares - self._sum**2) / n**2

    def _forget_past_if_drifted(self) -> None:
        latest = list(self.latest)
        before, recent = sorted(latest[:-RECENT]), latest[-RECENT:]
        middle = before[(len(before) - 1) // 2]
        above = sum(tokens > middle for tokens in recent)
        below = sum(tokens < middle for tokens in recent)
        if max(above, below) >= DRIFTED:
            self.latest = deque(recent)
            self.ordered = sorted(recent)
            self._sum = sum(recent)
            self._squares = sum(one * one for one in recent)


class Lengths:
    """What answers took, by class. Not thread-safe by itself: the ledger's lock is."""

    def __init__(self) -> None:
        self._classes: OrderedDict[Hashable, _Class] = OrderedDict()
        self._asked: Request | None = None
        self._told: dict[float, float | None] = {}

    def learn(self, request: Request, output_tokens: int) -> None:
        """Takes an answer that ended properly, all its `n` parts together."""
        self._asked = None
        each = max(0, output_tokens // request.n)
        for key in _keys(request):
            known = self._classes.get(key)
            if known is None:
                known = self._classes[key] = _Class()
                if len(self._classes) > CLASSES_MOST:
                    self._classes.popitem(last=False)
            else:
                self._classes.move_to_end(key)
            known.learn(each)

    def quantile(self, request: Request, q: float) -> float | None:
        """Output tokens that a share `q` of such answers stays within.

        All `n` answers together, and never more than the request allows. Before
        anything was learnt it is what the request allows; None when it says nothing.

        Args:
            q: from 0 to 1: 0.5 the middle one, 0.8 or more for what must hold.
        """
        if request is not self._asked:  # several rules ask about one request in turn
            self._asked, self._told = request, {}
        elif q in self._told:
            return self._told[q]
        guess, most = self._guess(request, q), request.max_output_tokens
        if guess is None or (most is not None and most < guess):
            guess = most
        self._told[q] = told = None if guess is None else float(guess * request.n)
        return told

    def moments(
        self, model: str | None = None, slo_class: str | None = None
    ) -> tuple[float, float] | None:
        """Mean and variance of one answer's tokens in a class, shrunk as quantiles are.

        Args:
            model, slo_class: of the class; both None = everything that is known.

        Returns:
            None before anything was learnt.
        """
        everything = self._classes.get(None)
        if everything is None:
            return None
        own = self._classes.get((model, slo_class))
        if own is None or (model is None and slo_class is None):
            return everything.moments()
        n = len(own)
        (mean, variance), (wider, wider_variance) = own.moments(), everything.moments()
        return (
            (n * mean + SHRINK * wider) / (n + SHRINK),
            (n * variance + SHRINK * wider_variance) / (n + SHRINK),
        )

    def _guess(self, request: Request, q: float) -> float | None:
        guess: float | None = None
        for key in _keys(request):
            found = self._classes.get(key)
            if found is not None:
                n, own = len(found), found.quantile(q) or 0.0
                lean = own if guess is None else guess
                guess = (n * own + SHRINK * lean) / (n + SHRINK)
        return guess


def _keys(request: Request) -> list[Hashable]:
    """Its classes, the widest first."""
    kind: tuple[str | None, ...] = request.model, request.slo_class
    keys: list[Hashable] = [None, kind]
    if request.tenant is not None:
        kind = (*kind, request.tenant)
        keys.append(kind)
    if request.input_tokens is not None:
        keys.append((kind, request.input_tokens.bit_length()))
    if request.session is not None:
        keys.append(("session", request.session))
    return keys
