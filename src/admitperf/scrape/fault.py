"""Why a metrics page could not be had."""

from admitperf.core.errors import AdmitPerfError


class ScrapeError(AdmitPerfError):
    """A page that could not be fetched, or that says nothing.

    Attributes:
        kind: one word for a program, such as "refused_token" or "timeout".
        target: what was asked; of an address, without credentials.
        what: what went wrong.
        fix: what to do about it; empty when there is nothing to say.
    """

    def __init__(self, kind: str, target: str, what: str, fix: str = "") -> None:
        self.kind = kind
        self.target = target
        self.what = what
        self.fix = fix
        super().__init__(f"{target}: {what}" + (f"; {fix}" if fix else ""))
