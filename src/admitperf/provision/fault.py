"""Why an engine could not be brought up or taken down."""

from admitperf.core.errors import AdmitPerfError


class ProvisionError(AdmitPerfError):
    """Something cannot be started, tried or ended; says what to do."""


class TornStateError(ProvisionError):
    """A state file of ours that ends too early, so that what it named is not known."""
