"""Why a trace or an answer cannot be had."""

from admitperf.core.errors import AdmitPerfError


class LabError(AdmitPerfError, ValueError):
    """Input that cannot be used, or a trace that cannot be written; says what to do."""
