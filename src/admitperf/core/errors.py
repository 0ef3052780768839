"""What can go wrong at set-up. In the request path nothing raises.

Each error keeps its facts as attributes; its text says what, where and what to do.
"""

from collections.abc import Sequence


class AdmitPerfError(Exception):
    """Parent of everything AdmitPerf raises."""


class ConfigError(AdmitPerfError, ValueError):
    """A policy, signal or reason was set up wrongly; `faults` lists every fault."""

    def __init__(self, where: str, faults: Sequence[str]) -> None:
        self.where = where
        self.faults = list(faults)
        super().__init__(f"{where}: " + "; ".join(self.faults))


class MissingSignal(AdmitPerfError):
    """A signal or fact that a policy requires is not supplied.

    Attributes:
        signal: its name.
        tried: the sources that were asked, in order.
        nearest: the names present that look most like them.
        also: the other required signals that are not supplied either.
    """

    def __init__(
        self,
        signal: str,
        tried: Sequence[str] = (),
        nearest: Sequence[str] = (),
        why: str = "",
        also: Sequence[str] = (),
    ) -> None:
        self.signal = signal
        self.tried = list(tried)
        self.nearest = list(nearest)
        self.also = list(also)
        parts = [f"{signal} is not supplied" + (f": {why}" if why else "")]
        if tried:
            parts.append("tried " + ", ".join(tried))
        if nearest:
            parts.append("nearest names present: " + ", ".join(nearest))
            parts.append(f'to map one: {signal.upper()}.add_source("{nearest[0]}")')
        if also:
            parts.append("also missing: " + ", ".join(also))
        super().__init__("; ".join(parts))


class PolicyNotFound(AdmitPerfError, LookupError):
    """No installed policy has this name."""


class BadPlugin(AdmitPerfError, TypeError):
    """A plug-in cannot be used: not a policy, or two distributions offer one name."""


class LogError(AdmitPerfError, ValueError):
    """A log cannot be read as one."""


class MissingExtra(AdmitPerfError, ImportError):
    """Something needs a package that the base install does not bring."""


class AbsentSignal(AdmitPerfError):
    """A rule needs a signal that nothing supplies; the policy catches it."""
