"""What a policy's answer must be while it cannot see."""

from collections.abc import Iterator, Mapping

from admitperf.core.decision import Decision
from admitperf.core.policy import Policy
from admitperf.core.reasons import DEFAULT
from admitperf.core.settings import POSTURES
from admitperf.core.signal import Signal
from admitperf.testing.situations import FACT_OF, FACTS, facts_for, raw_for
from admitperf.testing.trial import Trial

_BLIND = [name for name, reason in DEFAULT.items() if reason.fault == "instrument"]
"""The reasons that say that nothing was seen."""

_VERDICTS = {"admit": "admit", "defer": "defer", "reject": "reject", "degrade": "admit"}
"""What each answers while nothing has been seen and no cap was given."""


def ill_postured(
    cls: type[Policy], parameters: Mapping[str, object], wanted: list[Signal | str]
) -> Iterator[str]:
    """One fault for each posture that does not answer without a required signal.

    Args:
        wanted: what the policy requires with these parameters.
    """
    for signal in (one for one in wanted if isinstance(one, Signal)):
        for posture in POSTURES:
            first = _blind(cls, parameters, wanted, signal, posture, seeing=False)
            later = _blind(cls, parameters, wanted, signal, posture, seeing=True)
            expected = _VERDICTS.get(posture)
            told = f"with on_blind={posture!r} and without {signal.name} it answers"
            if not _answers(first, expected or "admit"):
                yield f"{told} {first!r}"
            if not _answers(later, expected):
                yield f"{told} {later!r} after it could see"


def _answers(d: Decision | None, verdict: str | None) -> bool:
    """Whether it is the posture's: by its reason, and by its verdict where known."""
    if d is None:  # the call raised, which is a fault already
        return True
    return d.reason in _BLIND and verdict in (None, d.verdict)


def _blind(
    cls: type[Policy],
    parameters: Mapping[str, object],
    wanted: list[Signal | str],
    signal: Signal,
    posture: str,
    *,
    seeing: bool,
) -> Decision | None:
    """Its answer without one signal, to a host that has called it before or not."""
    promised = signal.origin != "ledger"
    trial = Trial(cls, parameters, promised=promised, on_blind=posture)
    signals = [one for one in wanted if isinstance(one, Signal)]
    if seeing:
        trial.call("a quiet engine", raw_for(signals, "quiet"), FACTS)
    rest = [one for one in signals if one is not signal]
    told = {k: v for k, v in facts_for(wanted).items() if k != FACT_OF.get(signal)}
    return trial.call(f"without {signal.name}", raw_for(rest, "full"), told)
