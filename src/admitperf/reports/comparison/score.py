"""What a run is compared by, over what was offered: its goodput, and its refusals."""

from typing import Literal

from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import RunReport

Unit = Literal["planned calls", "calls", "attempts"]


def unit(run: RunReport) -> Unit:
    """What is counted: of a plan its calls, else calls by logical id, else attempts."""
    if run.planned is not None:
        return "planned calls"
    return "attempts" if run.cost.requests is None else "calls"


def offered(run: RunReport) -> int:
    """How many were offered, in the run's unit."""
    if run.planned is not None:
        return run.planned.offered
    calls = run.cost.requests
    return run.cost.offered if calls is None else calls.offered


def met(run: RunReport) -> Share | None:
    """Those that met the SLO, of those offered; None when no outcome says.

    A run that let nobody in has no outcomes, and its goodput is 0.
    """
    if run.goodput is None and offered(run) and not run.cost.let_in.n:
        return Share.part(0, offered(run))
    return run.goodput


def refused(run: RunReport) -> Share:
    """Those that were never let in, of those offered.

    Of a plan also those never asked, since a refusal had ended their session.
    """
    if run.planned is not None:
        away = run.planned.refused.n + run.planned.never_asked.n
        return Share.part(away, run.planned.offered)
    calls = run.cost.requests
    if calls is None:
        return Share.part(run.cost.offered - run.cost.let_in.n, run.cost.offered)
    return Share.part(calls.offered - calls.let_in.n, calls.offered)


def ttft_user_ms(run: RunReport) -> Spread | None:
    """Time to first token on the user's clock.

    From the arrival of a call's first attempt; without logical ids from the time a
    request was due. None when the log carries neither, so that it is the same as from
    each attempt's arrival.
    """
    calls = run.cost.requests
    if calls is not None and calls.ttft_user_ms.n:
        return calls.ttft_user_ms
    return run.cost.ttft_due_ms if run.cost.ttft_due_ms.n else None
