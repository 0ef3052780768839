"""A policy: the object that is measured is the object that is deployed.

Subclass it, write `decide`, call the instance once per request:

    class KvWall(Policy):
        name = "kv_wall"

        def decide(self, metrics):
            if KV_PRESSURE.read(metrics) >= self.threshold:
                return self.reject("kv_pressure")
            return self.admit()

    policy = KvWall(threshold=0.90, log="decisions.jsonl")
    d = policy(raw_metrics, request_id=rid)

`decide` sees a `Snapshot`, has no clock of its own and does no I/O. This class owns
order, locking, blindness, waits and recording. In the request path nothing raises.
"""

import itertools
import math
import os
import weakref
from collections.abc import Callable, Mapping
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

from admitperf.core.asked import Asked
from admitperf.core.blind import Blindness
from admitperf.core.configure import configure
from admitperf.core.decision import Decision
from admitperf.core.declared import Declared, declared
from admitperf.core.entry import Entry
from admitperf.core.errors import ConfigError
from admitperf.core.estimate import Estimator
from admitperf.core.facts import Facts
from admitperf.core.header import run_line
from admitperf.core.journal import Journal
from admitperf.core.ledger import Ledger
from admitperf.core.notice import get_ready, in_words, say
from admitperf.core.outcome import Outcome, milliseconds
from admitperf.core.own import Own
from admitperf.core.reading import Reading
from admitperf.core.reasons import Reason, table
from admitperf.core.record import dumps
from admitperf.core.request import NOTHING_KNOWN, Request, bounded
from admitperf.core.resolver import Resolver
from admitperf.core.settings import RESERVED, Settings
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot
from admitperf.core.split import governed
from admitperf.core.startup import check
from admitperf.core.verdict import Verdict
from admitperf.core.view import View

if TYPE_CHECKING:
    from admitperf.core.gate import Gate

_numbers = itertools.count(1)
_OK = 200
_ADMIT = Verdict.ADMIT
_OBSERVED_AGAIN_NS = 1_000_000_000
"""A plain mapping that does not change is observed again so often, while somebody asks:
what a policy moves with time must move before an idle engine too. Plain choice."""


class Policy:
    """One admission rule, with its ledger and its log. Thread-, asyncio- and fork-safe.

    Annotations on a subclass are its parameters (see `core.param`); a class that
    annotates none takes any keyword. The reserved keywords are those of
    `core.settings.Settings`.

    Raises:
        ConfigError: at construction, with every fault at once.
    """

    name: ClassVar[str] = ""
    """Lower case; how logs, entry points and the command line call it."""
    unit: ClassVar[str] = "request"
    """What is decided about: request, agent-session or tenant."""
    setting: ClassVar[str] = "online"
    """online or offline."""
    slo_awareness: ClassVar[str] = "none"
    """deadline, latency, throughput, fairness, cost or none."""
    signal_quantity: ClassVar[str] = "none"
    """The quantity it reads, in the survey's words."""
    signal_structure: ClassVar[str] = "scalar"
    """scalar, dual-gate, lp-composite or formal-bound."""
    metadata_assumed: ClassVar[tuple[str, ...]] = ()
    """Facts about requests that the rule takes for granted."""
    baseline: ClassVar[bool] = False
    """It refuses nothing by design."""
    requires: tuple[Signal | str, ...] = ()
    """Signals it cannot do without, and facts (by name) it makes use of."""
    needs: ClassVar[Mapping[str, tuple[Signal | str, ...]]] = {}
    """What a parameter adds to that when it is given, by `parameter`, or by
    `parameter=value` where one value does; for readers, `require` is what counts."""
    reasons: ClassVar[Mapping[str, Reason]] = {}
    """Reasons of its own."""
    refuses_with: ClassVar[tuple[str, ...]] = ()
    """All the reasons it may refuse for; empty = it does not say."""

    settings: Settings
    """Its reserved keywords."""
    parameters: Mapping[str, object]
    """Its parameters, by name."""
    given: frozenset[str]
    """The parameters that were not left at their default."""
    ledger: Ledger
    """The open requests of this host."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401  checked against the declarations
        where = f"policy {self.name or type(self).__name__}"
        if not self.name:
            raise ConfigError(where, ["the class has no name"])
        taken = frozenset((*dir(Policy), *Policy.__annotations__))
        settings, values = configure(
            where, self.declared(), self.requires, given, taken
        )
        self.settings = settings
        self.parameters = values
        self.given = frozenset(given) - RESERVED
        for name, value in values.items():
            setattr(self, name, value)
        self._reasons = table(settings.preset, self.reasons)
        self._number = next(_numbers)
        self._seq = 0
        self._now_ns = 0
        self._observed_ns = 0
        self._unnumbered = 0
        self._gates: list[Gate] = []
        self._said: set[str] = set()
        self._monotonic_ns = settings.clock.monotonic_ns
        self._observes = type(self).observe is not Policy.observe
        self._takes = type(self).decided is not Policy.decided
        self._works = type(self).task is not Policy.task
        self._sources = settings.source_table()
        self._journal = Journal(self.name, settings, lambda *at: run_line(self, *at))
        self._begin()
        get_ready()
        _policies.add(self)

    @classmethod
    def declared(cls) -> dict[str, Declared]:
        """Its parameters, in order; empty for a class that takes any keyword."""
        return declared(cls, Policy)

    @classmethod
    def divided(cls, parameters: Mapping[str, object], count: int) -> dict[str, object]:
        """The parameters of one process of several that share the work.

        What bounds a process is divided, also where it is left at its default; whole
        numbers are rounded up, to at least 1. The reserved `blind_cap` is divided when
        it is among the parameters.

        Args:
            parameters: what the whole host is to keep to, by name.
            count: processes; 1 or less changes nothing.
        """
        divided = dict(parameters)
        for name, known in cls.declared().items():
            value = milliseconds(parameters.get(name, known.default))
            if count > 1 and known.param.per_process and value is not None:
                divided[name] = known.divided(value, count)
        cap = milliseconds(parameters.get("blind_cap"))
        if count > 1 and cap is not None:
            divided["blind_cap"] = math.ceil(cap / count)
        return divided

    @property
    def run(self) -> str:
        """Its run id: `f"{policy.run}-{d.seq}"` names a decision everywhere."""
        return self._journal.run

    @property
    def number(self) -> int:
        """The number under which a reading keeps what this policy made of it."""
        return self._number

    @property
    def lost_records(self) -> int:
        """Log records lost so far in this process; 0 without a log of our own."""
        return int(getattr(self._journal.sink, "lost_records", 0))

    @property
    def waiting_records(self) -> int:
        """Log records not written yet; it grows while a disk takes none."""
        return int(getattr(self._journal.sink, "waiting_records", 0))

    @property
    def has_tasks(self) -> bool:
        """Whether it has any work for `background`."""
        return self._works

    def _begin(self) -> None:
        self._lock = RLock()
        self._at_work = Lock()
        settings = self.settings
        self.ledger = Ledger(reports_outcomes=settings.reports_outcomes)
        self._blindness = Blindness(self.name, settings, self.ledger, self._event)
        self._estimator = Estimator(self.ledger, settings.max_defer_s)
        self._resolver = Resolver(
            self._number, self._gates, self._sources, settings.max_age_s, self._event
        )
        self._own = Own(self._gates)
        self.require(*self.requires)
        self._plain: Mapping[str, object] | None = None
        self._plain_view: View | None = None
        self._latest: View | None = None

    # What a subclass writes and uses.

    def decide(self, metrics: Snapshot) -> Decision:
        """The rule: `self.admit()`, `self.defer(reason)` or `self.reject(reason)`."""
        raise NotImplementedError

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Called with every outcome, and with None for every new reading.

        And with None about once a second where a host hands in plain numbers that do
        not change.

        In the order of the log, under the policy's lock; what it raises is caught and
        written down once.
        """

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """Called once for each request, when its answer is final.

        `decide` may be asked many times for one request and must not count anything;
        this is where what was admitted is charged, and what was refused noted. Under
        the policy's lock; what it raises is caught and written down once.

        Args:
            metrics: what the decision was made on.
            d: the answer. `d.verdict` is the policy's or its posture's, or a host's own
                refusal; `d.admitted` says whether the request was started, which
                outside the governed share it was whatever the verdict.

        Returns:
            What a request that was started holds until it ends: a `Charge`, several,
            or None. The outcome carries it back (`Outcome.charge`).
        """

    def task(self, metrics: Snapshot) -> Callable[[], object] | None:  # noqa: ARG002
        """Work that takes long; None = there is none now.

        Under the policy's lock: copy what the work needs, and no more. What is returned
        is called without the lock, in a thread of the host's own, while decisions are
        made, so it reads nothing of the policy and changes nothing of it. One is under
        way at a time. What either raises is caught and written down once.

        Args:
            metrics: the newest reading, of no request.
        """
        return None

    def task_done(self, metrics: Snapshot, result: object) -> None:
        """Takes what the work of `task` returned, under the policy's lock.

        Args:
            metrics: the newest reading by now, of no request.
            result: of the work.
        """

    def require(self, *things: Signal | str) -> None:
        """Says in `__init__`, after `super().__init__`, what this one requires.

        For policies whose parameters decide it; replaces the class's `requires`.
        """
        self.requires = things
        self._required = tuple(r for r in things if isinstance(r, Signal))

    def admit(self) -> Decision:
        """Start it now."""
        return Decision(Verdict.ADMIT)

    def defer(
        self,
        reason: str,
        retry_after_ms: float | None = None,
        estimate_ms: float | None = None,
        *,
        rank: float = 0.0,
    ) -> Decision:
        """Make it wait: capacity is coming back.

        Args:
            reason: a row of the table, or one of `reasons`.
            retry_after_ms: sent as given; None = computed.
            estimate_ms: the policy's own estimate, then spread and capped like ours.
            rank: its place where a host holds requests: among those of one priority
                lower ranks go first.
        """
        d = Decision(Verdict.DEFER, reason, retry_after_ms, estimate_ms)
        if rank:
            d.rank = rank
        return d

    def reject(
        self,
        reason: str,
        retry_after_ms: float | None = None,
        estimate_ms: float | None = None,
        *,
        limit: float | None = None,
        used: float | None = None,
    ) -> Decision:
        """Refuse it; arguments as for `defer`.

        Args:
            limit, used: a caller's own bound and what it used of it, for the answer's
                body, in the bound's unit.
        """
        d = Decision(Verdict.REJECT, reason, retry_after_ms, estimate_ms)
        if limit is not None:
            d.limit, d.used = limit, used or 0.0
        return d

    def wait_told_ms(self, metrics: Snapshot, d: Decision) -> float:
        """The wait a refusal would be answered with, in ms, before spread and cap.

        Infinite when coming back is no use, or nothing drains.

        Args:
            metrics: what it was made on.
            d: a refusal, not settled yet; it is left as it is.
        """
        said = d.said or (d.verdict, d.reason, d.retry_after_ms, d.estimate_ms)
        trial = Decision(*said)
        trial.rests_on = d.rests_on
        self._estimator.settle(trial, self._reasons[d.reason or ""], metrics)
        endless = trial.estimate_ms is None or not trial.should_retry
        return math.inf if endless else trial.estimate_ms or 0.0

    # What a host calls.

    def __call__(
        self,
        raw_metrics: Reading | Mapping[str, object],
        *,
        request_id: str | None = None,
        **facts: Unpack[Facts],
    ) -> Decision:
        """Decides about one request. Never raises, never waits.

        Args:
            raw_metrics: metric name to number, or a scraper's `Reading`.
            request_id: the host's id; a new one is made when it gives none or one
                that is still open.
            facts: see `core.request.Request`; None = not known.

        Returns:
            What to do: `d.admitted`, `d.status`, `d.headers()`, `d.body()`.
        """
        with self._lock:
            try:
                return self._answer(raw_metrics, request_id, facts)
            except Exception as error:  # noqa: BLE001  nothing in the request path raises
                return self._last_resort(error, request_id)

    def ask(
        self,
        raw_metrics: Reading | Mapping[str, object],
        *,
        request_id: str | None = None,
        held_ms: float | None = None,
        **facts: Unpack[Facts],
    ) -> Decision:
        """Decides as a call does, but a refusal stays open: the host may hold on.

        An admission is final and recorded at once. A refusal is not recorded, not
        numbered and charged to nobody (`d.open`): ask again with `d.request_id`, as
        often as there is something new to see, or make it the answer with `answer`.
        So `decide` may run many times for one request; what it counts, it counts when
        it admits. Never raises, never waits.

        Args:
            raw_metrics, facts: as for a call.
            request_id: the host's id, or that of an earlier ask; None = one is made.
            held_ms: how long the request has been held, for its line.
        """
        with self._lock:
            try:
                return self._ask(raw_metrics, request_id, held_ms, facts)
            except Exception as error:  # noqa: BLE001  nothing in the request path raises
                return self._last_resort(error, request_id)

    def answer(
        self, d: Decision, *, held_ms: float | None = None, probe: bool = False
    ) -> Decision:
        """Makes an open refusal the answer: recorded, numbered, remembered.

        A decision that is not open is returned as it is. Never raises.

        Args:
            held_ms: how long the request was held, for its line.
            probe: let it in all the same, to learn whether the refusal is still
                right; its line says so.
        """
        with self._lock:
            try:
                return self._close(d, held_ms, probe=probe)
            except Exception as error:  # noqa: BLE001  nothing in the request path raises
                say(f"{self.name}: answer not recorded: {in_words(error)}")
                return d

    def refuse(
        self,
        raw_metrics: Reading | Mapping[str, object],
        reason: str,
        *,
        why: str,
        verdict: str = "reject",
        retry_after_ms: float | None = None,
        estimate_ms: float | None = None,
        limit: float | None = None,
        used: float | None = None,
        held_ms: float | None = None,
        request_id: str | None = None,
        **facts: Unpack[Facts],
    ) -> Decision:
        """A refusal of the host's own, recorded like a decision. Never raises.

        The policy is not asked and the split applies as to any refusal, so that
        `d.admitted` may be True; only `too_large` is refused to everyone.

        Args:
            raw_metrics, request_id, facts: as for a call.
            reason: a row of the policy's table.
            why: the host's own word for it, as `early` or `quota`.
            verdict: reject or defer.
            retry_after_ms, estimate_ms, limit, used: as for `reject`.
            held_ms: how long the request was held, for its line.
        """
        with self._lock:
            try:
                d = Decision(Verdict(verdict), reason, retry_after_ms, estimate_ms)
                d.limit, d.used = limit, used
                d.extra = f'"by":"host","why":{dumps(why)},{_held(held_ms)}'
                return self._refuse(raw_metrics, d, request_id, facts)
            except Exception as error:  # noqa: BLE001  nothing in the request path raises
                return self._last_resort(error, request_id)

    def first_token(self, request_id: str) -> None:
        """The request has its first token. Any later call renews its lease."""
        with self._lock:
            try:
                key = bounded(request_id)
                if key is not None:
                    self.ledger.first_token(key, self._monotonic_ns())
            except Exception as fault:  # noqa: BLE001  nothing in the request path raises
                self._event("first_token_failed", {"error": in_words(fault)})

    def outcome(
        self,
        request_id: str,
        ok: bool = True,  # noqa: FBT001, FBT002
        *,
        ttft_ms: float | None = None,
        first_text_ms: float | None = None,
        max_gap_ms: float | None = None,
        e2e_ms: float | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        input_tokens: int | None = None,
        finish_reason: str | None = None,
        error: str | None = None,
    ) -> None:
        """The request ended. Once per id; a second one is counted, not raised.

        Args:
            request_id: the id its decision carried.
            ok: whether the answer ended properly.
            ttft_ms, first_text_ms, max_gap_ms, e2e_ms: milliseconds, the first two
                and the last from arrival; None = not known. `ttft_ms` is the first
                output of any kind, `first_text_ms` the first of the answer's text.
            output_tokens, cached_tokens, input_tokens: tokens as the engine counted
                them; None = not known.
            finish_reason, error: the engine's words.
        """
        told = {
            "ttft_ms": ttft_ms,
            "first_text_ms": first_text_ms,
            "max_gap_ms": max_gap_ms,
            "e2e_ms": e2e_ms,
            "output_tokens": output_tokens,
            "cached_tokens": cached_tokens,
            "input_tokens": input_tokens,
            "finish_reason": finish_reason,
            "error": error,
        }
        with self._lock:
            try:
                self._take_outcome(request_id, ok, told)
            except Exception as fault:  # noqa: BLE001  nothing in the request path raises
                self._event("outcome_failed", {"error": in_words(fault)})

    def check(self, reading: Reading | Mapping[str, object]) -> None:
        """Start-up check: whether a first reading supplies what the policy requires.

        Raises:
            MissingSignal: naming the signal, the sources tried and the nearest names
                present.
        """
        raw = reading.raw if isinstance(reading, Reading) else reading
        check(self._required, raw, self._sources, promised=self.ledger.live)

    def look(self, reading: Reading) -> None:
        """Makes of a new reading what decisions need, ahead of the first of them.

        For the thread that read it: the first request to meet it is spared the work.
        Never raises.
        """
        with self._lock:
            try:
                if reading.views.get(self._number) is None:
                    self._now_ns = self._monotonic_ns()
                    self._view(reading, self._now_ns)
            except Exception as fault:  # noqa: BLE001  then the first decision tries
                self._event("look_failed", {"error": in_words(fault)})

    def background(self) -> None:
        """Does the policy's work that takes long, beside its decisions.

        For a thread that may be kept waiting, never one that decides; after each
        reading, when `look` has taken it in. Does nothing before the first reading,
        where there is nothing to do, and while another thread is in it. Never raises.
        `core.background.Background` has it done in a thread of its own.
        """
        at_work = self._at_work
        if not self._works or not at_work.acquire(blocking=False):
            return
        try:
            work = self._task()
            if work is not None:
                self._task_done(work())
        except Exception as error:  # noqa: BLE001  a hook must not cost a host
            with self._lock:
                self._hook_failed("task", error)
        finally:
            at_work.release()

    def flush(self, timeout_s: float = 3.0) -> bool:
        """Writes what the log holds; False when the disk would not take it in time."""
        sink = self._journal.sink
        return sink.flush(timeout_s) if sink is not None else True

    def close(self) -> None:
        """Writes what is left of the log. The policy can still be used."""
        if self._journal.sink is not None:
            self._journal.sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # How one decision is made.

    def _answer(
        self,
        raw: Reading | Mapping[str, object],
        given_id: object,
        facts: Mapping[str, object],
    ) -> Decision:
        snapshot = self._look(raw, facts)
        d = self._rule(snapshot)
        self._seq = d.seq = self._seq + 1
        key = self._identify(d, given_id)
        if d.verdict is not _ADMIT or self.settings.enforce < 1.0:
            self._settle(d, snapshot, self.settings.enforce)
        self._keep(d, key, snapshot)
        return d

    def _ask(
        self,
        raw: Reading | Mapping[str, object],
        given_id: object,
        held_ms: float | None,
        facts: Mapping[str, object],
    ) -> Decision:
        snapshot = self._look(raw, facts)
        d = self._rule(snapshot)
        d.extra = _held(held_ms)
        key = ""
        if d.verdict is not _ADMIT:
            key = self._identify(d, given_id)
            self._settle(d, snapshot, self.settings.enforce)
            if not d.admitted:
                d.open, d.asked = True, self._asked(snapshot)
                return d
        self._seq = d.seq = self._seq + 1
        key = key or self._identify(d, given_id)
        if d.verdict is _ADMIT and self.settings.enforce < 1.0:
            self._settle(d, snapshot, self.settings.enforce)
        self._keep(d, key, snapshot)
        return d

    def _asked(self, snapshot: Snapshot) -> Asked:
        recorded = self._journal.sink is not None
        derived = snapshot.text() if recorded else ""
        return Asked(snapshot, derived, self._monotonic_ns() - snapshot.now_ns)

    def _close(self, d: Decision, held_ms: float | None, *, probe: bool) -> Decision:
        asked = d.asked
        if not d.open or asked is None:
            return d
        d.open, d.asked = False, None
        self._now_ns = self._monotonic_ns()
        self._seq = d.seq = self._seq + 1
        key = self._identify(d, d.request_id)
        d.extra = _held(held_ms)
        if probe:
            d.admitted, d.status, d.retry_after_ms = True, _OK, None
            d.should_retry = True
            d.extra += '"probe":true,'
        self._keep(d, key, asked.snapshot, asked)
        return d

    def _refuse(
        self,
        raw: Reading | Mapping[str, object],
        d: Decision,
        given_id: object,
        facts: Mapping[str, object],
    ) -> Decision:
        snapshot = self._look(raw, facts)
        self._seq = d.seq = self._seq + 1
        key = self._identify(d, given_id)
        enforce = 1.0 if d.reason == "too_large" else self.settings.enforce
        self._settle(d, snapshot, enforce)
        self._keep(d, key, snapshot)
        return d

    def _look(
        self, raw: Reading | Mapping[str, object], facts: Mapping[str, object]
    ) -> Snapshot:
        """What is known now."""
        now_ns = self._now_ns = self._monotonic_ns()
        request = Request(facts) if facts else NOTHING_KNOWN
        if now_ns >= self.ledger.next_expiry_ns:
            self.ledger.expire(now_ns)
        view = raw.views.get(self._number) if type(raw) is Reading else None
        if view is None:
            view = self._view(raw, now_ns)
            now_ns = self._now_ns  # later, when `observe` asked about another request
        if now_ns > view.good_until_ns:
            view = view.at(now_ns)
        if view.reading.own_since:
            view = self._own.added(view)
        self._gates.clear()
        return Snapshot(view, request, self.ledger, now_ns, self._gates)

    def _keep(
        self, d: Decision, key: str, snapshot: Snapshot, asked: Asked | None = None
    ) -> None:
        """Takes a decision into the ledger and the log, now.

        Args:
            asked: what an open refusal was decided on earlier.
        """
        request, now_ns, ledger = snapshot.request, self._now_ns, self.ledger
        recorded = self._journal.sink is not None
        derived = ""
        if recorded and asked is None and (request.given or ledger.live):
            derived = snapshot.text()
        entry = Entry(d.seq, key, request, now_ns, d.admitted)
        if not d.admitted:
            ledger.refuse(entry)
        else:
            ledger.open(entry)
            if self._own.live:
                entry.replica = snapshot.replica
                self._own.opened(entry)
        if self._takes:
            self._take(d, entry, snapshot)
        if recorded:
            took_ns = self._monotonic_ns() - now_ns
            if asked is not None:
                derived, took_ns = asked.derived, asked.took_ns
            self._journal.decision(d, key, snapshot, derived, now_ns, took_ns)
        if request.faults:
            self._event("bad_fact", {"facts": request.faults[:8]})

    def _take(self, d: Decision, entry: Entry, snapshot: Snapshot) -> None:
        if snapshot.now_ns != self._now_ns:  # asked a while ago, and answered now
            view, request = snapshot.view, snapshot.request
            snapshot = Snapshot(view, request, self.ledger, self._now_ns, self._gates)
        try:
            charge = self.decided(snapshot, d)
            if d.admitted:
                self.ledger.charge(entry, charge)
        except Exception as error:  # noqa: BLE001  a hook must not cost a request
            self._hook_failed("decided", error)

    def _rule(self, snapshot: Snapshot) -> Decision:
        """What the policy says, or its posture; with the gates that led there."""
        blindness = self._blindness
        view = snapshot.view
        asked = self._required or blindness.owed
        why = blindness.why(snapshot, view, self._required) if asked else None
        if why is None:
            try:
                d = self.decide(snapshot)
                if (
                    type(d) is not Decision
                    or d.verdict is not _ADMIT
                    or d.reason is not None
                ):
                    self._check_answer(d)
            except Exception as error:  # noqa: BLE001  a failing rule makes it blind
                why = blindness.failed(error, snapshot, view)
            else:
                if blindness.noted is not view or self.ledger.live:
                    blindness.sighted(view.base or view, d)
        if why is not None:
            d = self._blind_answer(why, snapshot)
        if d.request_id:  # used twice: what it told before must stand
            d = _anew(d)
        d.gates = tuple(self._gates)
        return d

    def _blind_answer(self, why: str, snapshot: Snapshot) -> Decision:
        return self._blindness.answer(
            why, snapshot.now_ns, lambda held: self._again(held, snapshot)
        )

    def _again(self, held: View, now: Snapshot) -> Decision:
        """The rule on another view, for a posture that holds the last good one."""
        if held.reading.own_since:
            held = self._own.added(held)
        past = Snapshot(held, now.request, self.ledger, now.now_ns, self._gates)
        return self._check_answer(self.decide(past))

    def _check_answer(self, decision: object) -> Decision:
        if type(decision) is not Decision:
            msg = f"decide returned {decision!r}, not a decision"
            raise TypeError(msg)
        if not isinstance(decision.verdict, Verdict):
            msg = f"verdict {decision.verdict!r} is none of {', '.join(Verdict)}"
            raise TypeError(msg)
        refused = decision.verdict is not _ADMIT
        if not refused:
            decision.retry_after_ms = decision.estimate_ms = None
        if (refused or decision.reason is not None) and (
            decision.reason not in self._reasons
        ):
            msg = f"reason {decision.reason!r} is not in the table; add it to `reasons`"
            raise TypeError(msg)
        return decision

    def _settle(self, d: Decision, snapshot: Snapshot, enforce: float) -> None:
        refused = d.verdict is not _ADMIT
        if refused:
            d.said = d.verdict, d.reason, d.retry_after_ms, d.estimate_ms
            self._estimator.settle(d, self._reasons[d.reason or ""], snapshot)
        d.enforced = governed(snapshot.request, d.request_id, enforce)
        d.admitted = not (refused and d.enforced)
        if refused and d.admitted:
            d.status, d.retry_after_ms, d.should_retry = _OK, None, True

    def _identify(self, d: Decision, given: object) -> str:
        """Gives a decision its request id; returns its name in our tables."""
        if given is not None:
            key: str | None = bounded(given)
            if key is not None and key not in self.ledger.opened:
                d.request_id = given if isinstance(given, str) else key
                return key
            text = f"{self.name}: request id {key!r} is still open or not usable"
            self._once("id_reused", {"id": key}, text)
        made = f"{self._journal.run}-{d.seq}"
        if d.seq < 0:  # not numbered yet
            self._unnumbered += 1
            made = f"{self._journal.run}-a{self._unnumbered}"
        while made in self.ledger.opened:  # a caller who guessed it
            made += "x"
        d.request_id = made
        return made

    def _view(self, raw: Reading | Mapping[str, object], now_ns: int) -> View:
        if type(raw) is Reading:
            return self._new_view(raw, now_ns, timed=True)
        if self._plain_view is not None and self._unchanged(raw):
            self._blindness.reading(self._plain_view, now_ns)
            if self._observes and now_ns - self._observed_ns >= _OBSERVED_AGAIN_NS:
                self._observe(self._plain_view, NOTHING_KNOWN, None, now_ns)
            return self._plain_view
        try:
            reading = Reading(raw, taken_ns=now_ns)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001  what is no mapping supplies nothing
            reading = Reading({}, taken_ns=now_ns)
        self._plain_view = self._new_view(reading, now_ns, timed=False)
        self._plain = reading.raw
        return self._plain_view

    def _unchanged(self, raw: object) -> bool:
        try:
            return bool(raw == self._plain)
        except Exception:  # noqa: BLE001  a mapping that cannot be compared is new
            return False

    def _new_view(self, reading: Reading, now_ns: int, *, timed: bool) -> View:
        if reading.taken_ns > now_ns:  # another clock: what is to come is not known
            reading.taken_ns = now_ns
            self._once(
                "reading_from_the_future", {}, f"{self.name}: reading from the future"
            )
        view = self._resolver.view(reading, timed=timed)
        reading.views[self._number] = self._latest = view
        self._estimator.watch(view)
        self._blindness.reading(view.at(now_ns), now_ns)
        if self._observes:
            self._observe(view, NOTHING_KNOWN, None, now_ns)
        return view

    def _take_outcome(
        self, request_id: str, ok: object, told: Mapping[str, object]
    ) -> None:
        """Gives the lease back first: what is told about the end may be unusable."""
        now_ns = self._now_ns = self._monotonic_ns()
        key = bounded(request_id)
        entry = None if key is None else self.ledger.close(key, now_ns)
        if entry is None:
            known = key is not None and self.ledger.was_closed(key)
            self._event("outcome_repeated" if known else "outcome_unknown", {"id": key})
            return
        if self._own.live and entry.admitted:
            self._own.closed(entry, now_ns)
        self._seq += 1
        whole = Outcome.told(request_id, ok, told, entry)
        if whole.ok and whole.output_tokens is not None:
            self.ledger.lengths.learn(entry.request, whole.output_tokens)
        open_ms = (now_ns - entry.opened_ns) // 1_000_000
        self._journal.outcome(whole, self._seq, now_ns, open_ms)
        view = self._latest
        if self._observes and view is not None:
            self._observe(view.at(now_ns), entry.request, whole, now_ns)

    def _observe(
        self, view: View, request: Request, outcome: Outcome | None, now_ns: int
    ) -> None:
        if outcome is None:
            self._observed_ns = now_ns
        try:
            self.observe(
                Snapshot(view, request, self.ledger, now_ns, self._gates), outcome
            )
        except Exception as error:  # noqa: BLE001  a hook must not cost a request
            self._hook_failed("observe", error)

    def _task(self) -> Callable[[], object] | None:
        with self._lock:
            metrics = self._newest()
            return None if metrics is None else self.task(metrics)

    def _task_done(self, result: object) -> None:
        with self._lock:
            metrics = self._newest()
            if metrics is not None:  # None: a fork has forgotten it meanwhile
                self.task_done(metrics, result)

    def _newest(self) -> Snapshot | None:
        """The newest reading, of no request; None before the first."""
        now_ns = self._now_ns = self._monotonic_ns()
        if self._latest is None:
            return None
        view = self._latest.at(now_ns)
        return Snapshot(view, NOTHING_KNOWN, self.ledger, now_ns, self._gates)

    def _hook_failed(self, hook: str, error: Exception) -> None:
        if f"{hook}_failed" not in self._said:
            text = in_words(error)
            told = f"{self.name}.{hook} failed: {text}"
            self._once(f"{hook}_failed", {"error": text}, told)

    def _event(self, event: str, details: Mapping[str, object]) -> None:
        self._seq += 1
        self._journal.control(event, details, self._seq, self._now_ns)

    def _once(self, event: str, details: Mapping[str, object], message: str) -> None:
        self._event(event, details)
        if event not in self._said:
            self._said.add(event)
            say(message)

    def _last_resort(self, error: Exception, given_id: object) -> Decision:
        """When we fail ourselves: an answer from the posture alone, on the record."""
        try:
            return self._posture_alone(error, given_id)
        except Exception as again:  # noqa: BLE001  then without record, but said
            say(f"{self.name}: decision not recorded: {in_words(again)}")
        refuse = self.settings.on_blind in ("reject", "defer")
        d = Decision(Verdict.REJECT if refuse else _ADMIT, "policy_error")
        d.request_id = f"{self._journal.run}-{self._seq}"
        if refuse and self.settings.enforce >= 1.0:
            d.admitted, d.status, d.retry_after_ms = False, 503, 1000
        return d

    def _posture_alone(self, error: Exception, given_id: object) -> Decision:
        text = in_words(error)
        say(f"{self.name}: decision failed: {text}")
        now_ns = self._now_ns
        view = View(0, Reading({}, taken_ns=now_ns), {}, {}, {}, {}, timed=False)
        refuse = self.settings.on_blind in ("reject", "defer")
        d = Decision(Verdict.REJECT if refuse else _ADMIT, "policy_error")
        d.blind = text
        self._seq = d.seq = self._seq + 1
        key = self._identify(d, given_id if type(given_id) is str else None)
        snapshot = Snapshot(view, NOTHING_KNOWN, self.ledger, now_ns, [])
        self._settle(d, snapshot, self.settings.enforce)
        self._keep(d, key, snapshot, Asked(snapshot, "", 0))
        return d

    def _after_fork(self) -> None:
        """A forked child has none of the parent's requests in flight.

        It is a run of its own, with numbers, notices and readings of its own.
        """
        self._seq = 0
        self._number = next(_numbers)
        self._said.clear()
        self._begin()
        self._journal.after_fork()


def _anew(d: Decision) -> Decision:
    """What a decision said before it was used for another request."""
    made = Decision(*d.said) if d.said else Decision(d.verdict, d.reason)
    made.rank, made.limit, made.used = d.rank, d.limit, d.used
    made.rests_on = d.rests_on
    return made


def _held(held_ms: float | None) -> str:
    known = milliseconds(held_ms)
    return "" if known is None else f'"held_ms":{round(known, 3)},'


_policies: "weakref.WeakSet[Policy]" = weakref.WeakSet()


def _all_after_fork() -> None:
    for policy in list(_policies):
        policy._after_fork()  # noqa: SLF001  the same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_all_after_fork)
