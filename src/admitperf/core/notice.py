"""What an operator should hear, once."""

import sys


def say(message: str) -> None:
    """Warns through the standard logger `admitperf`.

    A process that never imported `logging` is told on stderr, as `logging` itself
    would do there; importing it here would be work in the request path. A set-up that
    fails is not our caller's problem.
    """
    try:
        logging = sys.modules.get("logging")
        if logging is not None:
            logging.getLogger("admitperf").warning(message)
        else:
            sys.stderr.write(f"admitperf: {message}\n")
    except Exception:  # noqa: BLE001  nothing in the request path raises
        return


def in_words(error: BaseException) -> str:
    """An error's type and text, at most 300 characters, whatever its text does."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:  # noqa: BLE001  an error that cannot say what it is
        return type(error).__name__
