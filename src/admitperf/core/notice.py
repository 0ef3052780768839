"""What an operator should hear, once: the standard logger `admitperf`."""

import logging

_logger = logging.getLogger("admitperf")


def in_words(error: Exception) -> str:
    """What went wrong, at most 300 characters, even of an error that cannot say it."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:  # noqa: BLE001  its own text fails
        return type(error).__name__


def say(message: str) -> None:
    """Logs a warning; a logging set-up that fails is not our caller's problem."""
    try:
        _logger.warning(message)
    except Exception:  # noqa: BLE001  nothing in the request path raises
        return
