"""Everything known at one instant, as `decide` sees it."""

from collections.abc import Callable, Hashable, Mapping, Sequence

from admitperf.core.errors import AbsentSignal
from admitperf.core.gate import Gate, number
from admitperf.core.ledger import Ledger
from admitperf.core.request import Request
from admitperf.core.signal import Signal
from admitperf.core.signals import (
    ATTEMPT,
    DEADLINE_SLACK_S,
    IN_FLIGHT,
    INPUT_TOKENS,
    MAX_OUTPUT_TOKENS,
    OLDEST_WAIT_S,
    SESSION_IN_FLIGHT,
    TENANT_IN_FLIGHT,
    TENANT_SHARE,
    UNCACHED_TOKENS,
)
from admitperf.core.value import SignalValue
from admitperf.core.view import View


class Snapshot:
    """A reading, the request's facts and the host's open requests at one time.

    Attributes:
        request: the facts, as attributes; None = not known.
        view: every signal of the reading, resolved.
        now_s: the policy's monotonic clock, in seconds: the only time a rule may use.
        read_none: the signals that were read and not known.
    """

    _derived: dict[Signal, SignalValue | None] | None = None
    read_none: tuple[Signal, ...] = ()

    def __init__(
        self,
        view: View,
        request: Request,
        ledger: Ledger,
        now_ns: int,
        gates: list[Gate],
    ) -> None:
        self.view = view
        self.request = request
        self._ledger = ledger
        self.now_ns = now_ns
        self._gates = gates

    @property
    def now_s(self) -> float:
        """Seconds on the policy's monotonic clock."""
        return self.now_ns / 1e9

    @property
    def raw(self) -> Mapping[str, object]:
        """The raw metrics of the reading."""
        return self.view.reading.raw

    @property
    def replica(self) -> str | None:
        """The replica the reading describes; None = not known or the only one."""
        return self.view.reading.replica

    @property
    def gates(self) -> Sequence[Gate]:
        """The comparisons made so far for this request, in order."""
        return self._gates

    def output_tokens(self, q: float = 0.5) -> float | None:
        """Tokens that a share `q` of answers like this one's stays within.

        Learnt from outcomes (`core.lengths`), at most what the request allows; None
        when nothing was learnt and the request allows anything.
        """
        return self._ledger.lengths.quantile(self.request, q)

    def answer_moments(
        self, model: str | None = None, slo_class: str | None = None
    ) -> tuple[float, float] | None:
        """Mean and variance of one answer's tokens in a class, learnt from outcomes.

        None before anything was learnt. Its sums are kept: it may be asked for each
        decision.
        """
        return self._ledger.lengths.moments(model, slo_class)

    def work_tokens(self) -> float | None:
        """This request's work: its prompt and the answer it will middlingly have.

        None when the length of its prompt is not known.
        """
        if self.request.input_tokens is None:
            return None
        return self.request.input_tokens + (self.output_tokens() or 0.0)

    @property
    def prefill_tokens(self) -> float | None:
        """Prompt tokens of this host's streamed requests without a first token.

        None while outcomes are not reported.
        """
        return self._ledger.prefill.left if self._ledger.live else None

    @property
    def prefill_rate(self) -> float | None:
        """Prompt tokens a second that first tokens came for, while any was awaited.

        None until that is measured, or while outcomes are not reported.
        """
        ledger = self._ledger
        return ledger.prefill.rate_per_s(self.now_ns) if ledger.live else None

    def charged(self, account: Hashable) -> float:
        """What open requests hold of an account (`Policy.decided`), in its unit.

        0.0 without outcomes too: a policy that rests on it requires `IN_FLIGHT`.
        """
        return self._ledger.charged(account)

    def charges(self, account: Hashable) -> int:
        """How many charges open requests have on an account; as `charged`."""
        return self._ledger.charges(account)

    def read(self, signal: Signal) -> float | None:
        """The value of a signal in its unit; None when it is not known."""
        return self.read_signal(signal)

    def read_signal(self, signal: Signal) -> SignalValue | None:
        """What `SIGNAL.read(metrics)` calls."""
        value = self.view.values.get(signal)
        if value is None:
            value = self._derive(signal)
            if value is None:
                self.read_none = (*self.read_none, signal)
        return value

    def at_least(self, signal: Signal, bound: float) -> bool:
        """Whether the signal is at or over the bound; recorded as a gate."""
        return (self.view.values.get(signal) or self._known(signal)) >= bound

    def above(self, signal: Signal, bound: float) -> bool:
        """Whether the signal is over the bound; recorded as a gate."""
        return (self.view.values.get(signal) or self._known(signal)) > bound

    def at_most(self, signal: Signal, bound: float) -> bool:
        """Whether the signal is at or under the bound; recorded as a gate."""
        return (self.view.values.get(signal) or self._known(signal)) <= bound

    def below(self, signal: Signal, bound: float) -> bool:
        """Whether the signal is under the bound; recorded as a gate."""
        return (self.view.values.get(signal) or self._known(signal)) < bound

    def gate(self, name: str, value: float, bound: float, op: str = ">=") -> bool:
        """A comparison of a derived number, recorded under a name of its own.

        Raises:
            KeyError: `op` is not ">=", ">", "<=" or "<".
        """
        made = Gate(name, value, op, bound)
        self._gates.append(made)
        return made.held

    def text(self) -> str:
        """The signals known from the request or the ledger, as JSON members."""
        request, ledger, known = self.request, self._ledger, self.view.values
        told = []
        for signal, derive in _DERIVE.items():
            value = None if signal in known else derive(request, ledger, self.now_ns)
            if value is not None:
                told.append(f',"{signal.name}":{number(value)}')
        return "".join(told)

    def _known(self, signal: Signal) -> SignalValue:
        value = self.read_signal(signal)
        if value is None:
            raise AbsentSignal(signal.name)
        return value

    def _derive(self, signal: Signal) -> SignalValue | None:
        known = self._derived
        if known is None:
            known = self._derived = {}
        elif signal in known:
            return known[signal]
        derive = _DERIVE.get(signal)
        number = (
            None if derive is None else derive(self.request, self._ledger, self.now_ns)
        )
        value = (
            None if number is None else SignalValue(number, signal.name, self._gates)
        )
        known[signal] = value
        return value


_Derive = Callable[[Request, Ledger, int], float | None]


def _oldest_wait(_: Request, ledger: Ledger, now_ns: int) -> float | None:
    return ledger.oldest_wait_s(now_ns) if ledger.live else None


def _in_flight(_: Request, ledger: Ledger, __: int) -> float | None:
    return ledger.in_flight if ledger.live else None


def _tenant_in_flight(request: Request, ledger: Ledger, _: int) -> float | None:
    if request.tenant is None or not ledger.live:
        return None
    return ledger.tenant_in_flight(request.tenant)


def _tenant_share(request: Request, ledger: Ledger, _: int) -> float | None:
    if request.tenant is None or not ledger.live:
        return None
    return ledger.tenant_share(request.tenant, request)


def _session_in_flight(request: Request, ledger: Ledger, _: int) -> float | None:
    if request.session is None or not ledger.live:
        return None
    return ledger.session_in_flight(request.session)


_DERIVE: dict[Signal, _Derive] = {
    OLDEST_WAIT_S: _oldest_wait,
    IN_FLIGHT: _in_flight,
    TENANT_IN_FLIGHT: _tenant_in_flight,
    TENANT_SHARE: _tenant_share,
    SESSION_IN_FLIGHT: _session_in_flight,
    INPUT_TOKENS: lambda request, _, __: request.input_tokens,
    UNCACHED_TOKENS: lambda request, _, __: request.uncached_tokens,
    MAX_OUTPUT_TOKENS: lambda request, _, __: request.max_output_tokens,
    DEADLINE_SLACK_S: lambda request, _, __: request.deadline_s,
    ATTEMPT: lambda request, _, __: (
        request.attempt if "attempt" in request.given else None
    ),
}
