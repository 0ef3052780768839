"""What it cost, as text: by attempt, and by call where calls are known."""

from collections.abc import Iterator, Mapping

from admitperf.reports.pages.headline import at_least
from admitperf.reports.pages.layout import Said
from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport
from admitperf.reports.runs.calls import Requests
from admitperf.reports.runs.cost import Cost, Output
from admitperf.reports.runs.planned import Planned
from admitperf.reports.runs.slo import FROM_OPTION
from admitperf.reports.wording import (
    NOT_KNOWN,
    counted,
    number,
    plural,
    printable,
    ratio,
    share,
    tails,
)


def cost(run: RunReport) -> Iterator[Said]:
    """Section 4 of a run's page."""
    paid = run.cost
    if run.basis == "samples":
        yield "It cannot be answered: no request stood behind a sample."
        return
    yield "let in", f"{_share(paid.let_in)} attempts offered"
    if paid.refused_but_served:
        served = paid.refused_but_served
        yield "", f"{served} of them were refused and served all the same"
    if paid.goodput is not None:
        yield from _served(paid)
        yield from _met(run)
    if paid.requests is not None:
        yield from _calls(paid.requests, at_least(run))
    if run.planned is not None:
        yield from _plan(run.planned)
    if paid.goodput is None:
        yield "No outcome was reported, so TTFT and goodput cannot be answered."
    yield from _caveats(paid)


def _served(paid: Cost) -> Iterator[Said]:
    """How what was let in ended, by attempt."""
    yield "outcomes", f"{_share(paid.reported)} let in"
    errors = f": {counted(paid.errors)}" if paid.errors else ""
    yield "failed", f"{_share(paid.failed)} with an outcome{errors}"
    for name, part in (
        ("left", paid.left),
        ("engine refused", paid.engine_refused),
    ):
        if part.n:
            yield name, f"{_share(part)} with an outcome"
    yield "completed", _completed(paid)
    if paid.truncated.n:
        yield "truncated", f"{_share(paid.truncated)} ok"
    yield "TTFT served", _ttft(paid.ttft_ms, "ok", paid.ttft_mean_ms)
    if paid.ttft_due_ms.n:
        yield "TTFT, due", _ttft(paid.ttft_due_ms, "ok")
    if paid.output is not None:
        yield "outputs", _output(paid.output)


def _completed(paid: Cost) -> str:
    """How many ended well, and how fast, up to the last end."""
    said = f"{paid.ok.n} ok"
    if paid.completed_per_s is None:
        return said
    took, rate = number(paid.completed_s), number(paid.completed_per_s)
    return f"{said} in {took} s ({rate}/s), up to the end of the last"


def _ttft(values: Spread, of: str, mean_ms: float | None = None) -> str:
    if not values.n:
        return "no ok outcome carries ttft_ms: it cannot be answered"
    mean = "" if mean_ms is None else f"mean {number(mean_ms)} ms, "
    return mean + tails(values, "ms", of)


def _output(output: Output) -> str:
    got = share(output.got_tokens, output.asked_tokens)
    return f"{got} of the tokens asked for came, n {output.n} ok"


def _met(run: RunReport) -> Iterator[Said]:
    """Goodput by attempt, and what stands behind it."""
    paid = run.cost
    yield "SLO", _slo(paid)
    if paid.goodput is not None:
        good = f"{at_least(run)}{_ratio(paid.goodput)} attempts offered"
        yield "goodput", good
    if paid.attained is not None:
        yield "attained", f"{_ratio(paid.attained)} with an outcome"


def _calls(calls: Requests, more: str) -> Iterator[Said]:
    """The same by call: what users met, retries and waits included."""
    yield "By call:"
    yield "let in", f"{_share(calls.let_in)} calls offered"
    refused = _share(calls.refused_attempts)
    yield "refused", f"{refused} attempts; {_tries(calls)} attempts a call"
    for name, values in (
        ("TTFT, user", calls.ttft_user_ms),
        ("TTFT, last", calls.ttft_last_ms),
    ):
        if values.n:
            yield name, tails(values, "ms", "calls")
    if calls.goodput is not None:
        user = f"{more}{_ratio(calls.goodput)} calls offered, on the user's clock"
        yield "goodput", user
    if calls.goodput_last is not None and calls.goodput_last != calls.goodput:
        yield "", f"{_ratio(calls.goodput_last)} on the last attempt's clock"


def _plan(plan: Planned) -> Iterator[Said]:
    """The same by planned call: what was never asked is in the denominator."""
    yield "By planned call:"
    counted_in = f", {plan.calls - plan.offered} more outside the scored window"
    more = counted_in if plan.calls > plan.offered else ""
    yield "offered", f"{plural(plan.offered, 'planned call')}{more}"
    yield "ended", _ends(plan.ended) or "none"
    yield "never asked", f"{_share(plan.never_asked)} planned calls"
    good = f"{_ratio(plan.goodput)} planned calls, on the user's clock"
    yield "goodput", good
    yield "sessions", f"{_share(plan.sessions)} completed"


def _ends(ended: Mapping[str, int]) -> str:
    return counted({name.replace("_", " "): n for name, n in ended.items()})


def _tries(calls: Requests) -> str:
    return number(calls.attempts / calls.offered) if calls.offered else NOT_KNOWN


def _slo(paid: Cost) -> str:
    if not paid.slo_origin:
        return "none declared: ok alone counts, no deadline is judged"
    said = printable(paid.slo)
    if paid.slo_origin == FROM_OPTION:
        return f"{said}, from {FROM_OPTION}, in place of the run header's"
    return f"{said}, from the {paid.slo_origin}"


def _caveats(paid: Cost) -> Iterator[Said]:
    if paid.missed:
        yield f"Missed, by the first bound: {counted(paid.missed)}."
    if paid.unjudged:
        yield f"Counted as not met, for want of a number: {counted(paid.unjudged)}."
    missing = paid.reported.of - paid.reported.n
    if missing and paid.goodput is not None:
        yield f"{missing} let in have no outcome and count as not met."
    if paid.slo_origin and paid.ok_alone:
        yield f"{paid.ok_alone} ok of a class without bounds are judged by ok alone."
    if paid.by_e2e:
        yield f"{paid.by_e2e} ok were not streamed: e2e_ms is judged against ttft_ms."


def _share(part: Share) -> str:
    return share(part.n, part.of)


def _ratio(part: Share) -> str:
    return ratio(part.n, part.of)
