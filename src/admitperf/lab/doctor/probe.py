"""One small streamed request through the gateway: what arrives, and when.

A proxy in between may strip headers on the way in or out, pack the answer, or keep its
events back until the end. All of that shows on one request whose headers are known.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from admitperf.lab.doctor.call import Answer, UnansweredError, call
from admitperf.lab.doctor.door import EXPLAIN, Door
from admitperf.lab.doctor.finding import (
    Finding,
    fine,
    not_asked,
    problem,
    warning,
)
from admitperf.reports.wording import plural
from admitperf.scrape.address import Address

TOKENS = 24
"""Plain choice: a stream of a fifth of a second on a fast engine, and cheap."""

TIMES = 4.0
"""How many times the usual time a probe may take. Plain choice: a saturated engine
takes its time over the first token."""

DEADLINE_S = 599
"""What the probe says its caller waits. Plain choice: as long as SDKs do, and not the
600 s that count as not said."""

BURST = 0.3
"""Plain choice: events within less than this share of the time the same events took
elsewhere came in one burst."""

LEAST_SPREAD_S = 0.03
"""Plain choice: events closer together than this may share one piece on the wire."""

_PATH = "/v1/chat/completions"
_FACTS = {
    "session": "x-session-id",
    "deadline_s": "x-stainless-read-timeout",
}
_BACK = ("x-request-id", "request-id", "x-admitperf-decision-id")
_OK = 200
_REFUSALS = (429, 503, 529)
_LEAST_EVENTS = 3
_WAIT_S = 0.1
_WAITS = 20


@dataclass(frozen=True, slots=True)
class Probe:
    """A request that was sent, and what came back.

    Attributes:
        id: its request id.
        session: its session.
        answer: what came back.
    """

    id: str
    session: str
    answer: Answer

    @property
    def spread_s(self) -> float:
        """From the first piece of its answer to the last."""
        times = self.answer.pieces_s
        return times[-1] - times[0] if times else 0.0

    @property
    def events(self) -> int:
        """Events in its answer."""
        return self.answer.body.count(b"data:")


def model_of(address: Address, token: str | None, timeout_s: float) -> str | None:
    """The first model that is offered; None = none, or no list."""
    try:
        told = call(address, "/v1/models", timeout_s, token=token).json()
    except UnansweredError:
        return None
    listed = told.get("data") if isinstance(told, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    name = first.get("id") if isinstance(first, dict) else None
    return name if isinstance(name, str) else None


def send(address: Address, token: str | None, model: str, timeout_s: float) -> Probe:
    """Sends the request.

    Raises:
        UnansweredError: nothing came back.
    """
    name = f"doctor-{secrets.token_hex(6)}"
    session = f"doctor-session-{secrets.token_hex(4)}"
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "gzip, deflate",  # as SDKs say
        "X-Request-Id": name,
        "X-Session-Id": session,
        "X-Stainless-Read-Timeout": str(DEADLINE_S),
        "X-Stainless-Retry-Count": "0",
    }
    asked = {
        "model": model,
        "stream": True,
        "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": "Count from 1 to 30."}],
    }
    body = json.dumps(asked).encode()
    answer = call(address, _PATH, timeout_s, token=token, headers=headers, body=body)
    return Probe(name, session, answer)


def findings(
    door: Door,
    engine: Address | None,
    logged: Callable[[str], Mapping[str, Any] | None] | None,
    pause: Callable[[float], object],
) -> Iterator[Finding]:
    """Sends the probe through a gateway and says what became of it.

    Args:
        door: the gateway.
        engine: asked the same directly, only where the events came in one burst.
        logged: the decision line of a request id in the gateway's log, once it is
            there; None = no log was given.
        pause: waits so many seconds.
    """
    model = model_of(door.address, door.token, door.timeout_s)
    if model is None:
        why = "/v1/models names no model, so there is nothing to ask for"
        yield not_asked("probe.sent", why)
        return
    try:
        probe = send(door.address, door.token, model, TIMES * door.timeout_s)
    except UnansweredError as error:
        fix = "see whether the engine hangs, and the timeouts of what is in between"
        yield problem("probe.answer", f"the probe: {error}", fix)
        return
    yield fine("probe.sent", f"one request of {TOKENS} tokens to {model}")
    yield _answered(probe)
    yield _headers_back(probe.answer)
    seen = _explained(door, probe, pause) or _logged(logged, probe, pause)
    yield _headers_in(probe, seen)
    if probe.answer.status in _REFUSALS:
        yield _refusal(probe.answer)
    elif probe.answer.status == _OK:
        yield _encoding(probe.answer)
        yield _events(probe, seen, engine, model, door)


def _answered(probe: Probe) -> Finding:
    answer = probe.answer
    if answer.status in _REFUSALS:
        says = f"it was refused with {answer.status}, so no stream was seen"
        return warning("probe.answer", says, "run doctor again when there is room")
    if answer.status != _OK:
        says = f"it was answered with {answer.status}"
        fix = "see what the engine says to such a request; a token may be missing"
        return problem("probe.answer", says, fix)
    if answer.cut or b"[DONE]" not in answer.body:
        if answer.headers.get("content-encoding"):
            return not_asked("probe.answer", "it came packed, see probe.encoding")
        says = "its stream ended before its end"
        fix = "see the timeouts of every proxy in between"
        return problem("probe.answer", says, fix)
    return fine("probe.answer", f"{plural(probe.events, 'event')}, to the end")


def _headers_back(answer: Answer) -> Finding:
    """The ids that the gateway puts on every answer."""
    gone = [name for name in _BACK if name not in answer.headers]
    if not gone:
        return fine("probe.headers-back", f"the answer has {', '.join(_BACK)}")
    says = f"the answer lacks {', '.join(gone)}: a proxy in between strips them"
    fix = "let the proxy pass these headers, Retry-After and x-should-retry on"
    return problem("probe.headers-back", says, fix)


def _explained(
    door: Door, probe: Probe, pause: Callable[[float], object]
) -> Mapping[str, Any] | None:
    """The gateway's own account of it, once its outcome is there."""
    name = probe.answer.headers.get("x-admitperf-decision-id", probe.id)
    found: Mapping[str, Any] | None = None
    for _ in range(_WAITS):
        answer = door.ask(EXPLAIN + name)
        told = answer.json() if answer is not None else None
        if answer is None or answer.status != _OK or not isinstance(told, dict):
            return found
        found = told
        if told.get("outcome") or not told.get("admitted"):
            return found
        pause(_WAIT_S)
    return found


def _logged(
    logged: Callable[[str], Mapping[str, Any] | None] | None,
    probe: Probe,
    pause: Callable[[float], object],
) -> Mapping[str, Any] | None:
    """The line of it in the log, which is written a moment later."""
    if logged is None:
        return None
    for _ in range(_WAITS):
        found = logged(probe.id)
        if found is not None:
            return found
        pause(_WAIT_S)
    return None


def _headers_in(probe: Probe, seen: Mapping[str, Any] | None) -> Finding:
    """What the gateway knows of a request whose headers are known."""
    if seen is None:
        why = "neither /admitperf/explain nor a log (--log) tells what it saw"
        fix = "run doctor on the gateway's machine, or give its log"
        return not_asked("probe.headers-in", why, fix)
    facts = seen.get("facts")
    known = facts if isinstance(facts, dict) else {}
    gone = [header for fact, header in _FACTS.items() if known.get(fact) is None]
    if probe.id not in (seen.get("request_id"), seen.get("id")):
        gone.insert(0, "x-request-id")
    if not gone:
        sent = ", ".join(("x-request-id", *_FACTS.values()))
        return fine("probe.headers-in", f"it saw {sent}")
    says = f"sent and not seen by the gateway: {', '.join(gone)}"
    fix = (
        "let the proxy in front pass them on (nginx drops names with _), or map the"
        " names yours uses under `conventions`"
    )
    return problem("probe.headers-in", says, fix)


def _refusal(answer: Answer) -> Finding:
    """What a caller needs to come back at the right time."""
    told = ("retry-after", "retry-after-ms", "x-should-retry")
    if any(name in answer.headers for name in told):
        return fine("probe.refusal", "the refusal says when to come back, or not to")
    says = f"a refusal ({answer.status}) without Retry-After or x-should-retry"
    fix = "let the proxy in between pass them on: SDKs go by them"
    return problem("probe.refusal", says, fix)


def _encoding(answer: Answer) -> Finding:
    coding = answer.headers.get("content-encoding", "")
    if coding in ("", "identity"):
        return fine("probe.encoding", "the stream is not packed")
    says = f"the stream comes packed ({coding}): a packer keeps events back"
    fix = "switch compression off for text/event-stream in the proxy"
    return problem("probe.encoding", says, fix)


def _events(
    probe: Probe,
    seen: Mapping[str, Any] | None,
    engine: Address | None,
    model: str,
    door: Door,
) -> Finding:
    """Whether the events came as they were made, or all at the end."""
    if 0 < probe.events < _LEAST_EVENTS:
        return not_asked("probe.events", "the answer has too few events to tell")
    ours_s = probe.spread_s
    made_s = _spread_at_gateway(seen)
    if made_s is not None and _burst(ours_s, made_s):
        return _buffered(ours_s, made_s, "the gateway had them", "in front of it")
    direct = None
    if _bunched(probe) and engine is not None:
        direct = _direct_s(engine, model, door)
    if direct is not None and _burst(ours_s, direct):
        where = "in between" if made_s is None else "between it and the engine"
        return _buffered(ours_s, direct, "the engine makes them", where)
    if _bunched(probe) and made_s is None and direct is None:
        says = f"{plural(probe.events, 'event')} came within {ours_s * 1e3:.0f} ms"
        fix = "give --engine too, so that the same can be asked of it directly"
        return warning("probe.events", f"{says}: buffered, or a fast engine", fix)
    return fine("probe.events", f"they came one by one, over {ours_s * 1e3:.0f} ms")


def _bunched(probe: Probe) -> bool:
    return len(probe.answer.pieces_s) < _LEAST_EVENTS or probe.spread_s < LEAST_SPREAD_S


def _burst(ours_s: float, made_s: float) -> bool:
    return made_s >= LEAST_SPREAD_S and ours_s < BURST * made_s


def _buffered(ours_s: float, made_s: float, who: str, where: str) -> Finding:
    says = (
        f"the events came within {ours_s * 1e3:.0f} ms, while {who} over"
        f" {made_s * 1e3:.0f} ms: something {where} keeps them back"
    )
    fix = (
        "switch buffering off there for event streams (nginx: proxy_buffering off;"
        " X-Accel-Buffering: no must not be ignored)"
    )
    return problem("probe.events", says, fix)


def _spread_at_gateway(seen: Mapping[str, Any] | None) -> float | None:
    """First output to the end, as the gateway saw it; None = it does not say."""
    outcome = seen.get("outcome") if seen is not None else None
    if not isinstance(outcome, dict):
        return None
    first, end = outcome.get("ttft_ms"), outcome.get("e2e_ms")
    if not isinstance(first, int | float) or not isinstance(end, int | float):
        return None
    return (end - first) / 1e3


def _direct_s(engine: Address, model: str, door: Door) -> float | None:
    """How long the same events take without a gateway; None = not known."""
    try:
        probe = send(engine, door.token, model, TIMES * door.timeout_s)
    except UnansweredError:
        return None
    return probe.spread_s if probe.answer.status == _OK else None
