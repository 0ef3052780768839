"""What an operator should hear, once: the standard logger `admitperf`."""

import logging

_logger = logging.getLogger("admitperf")


def say(message: str) -> None:
    """Logs a warning; a logging set-up that fails is not our caller's problem."""
    try:
        _logger.warning(message)
    except Exception:  # noqa: BLE001  nothing in the request path raises
        return
