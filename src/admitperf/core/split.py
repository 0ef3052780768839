"""Which half of the traffic a roll-out governs."""

from admitperf.core.request import Request
from admitperf.core.wait import unit_interval


def governed(request: Request, request_id: str, enforce: float) -> bool:
    """Whether this request belongs to the governed share.

    Decided by the session, else the logical id, else the request id, through a keyed
    hash: a session stays on one side in every process, on every host, after a restart.

    Args:
        enforce: share governed, from 0.0 (declared shadow) to 1.0 (everything).
    """
    if enforce >= 1.0:
        return True
    if enforce <= 0.0:
        return False
    key = request.session or request.logical_id or request_id
    return unit_interval(key) < enforce
