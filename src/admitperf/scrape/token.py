"""The token an endpoint asks for: from the environment or a file, never from argv.

What was typed is not repeated in a message, since people type the token itself.
"""

import os
import re
from functools import lru_cache

from admitperf.core.errors import ConfigError

DEFAULT_ENV = "ADMITPERF_TOKEN"
HOW_TO_PASS = (
    f"put the token into the environment variable {DEFAULT_ENV}, or say where it is"
    " with --token-env NAME or --token-file PATH"
)

MASK = "***"
_SOUGHT = 64  # as many first characters tell a token; what is glued to them goes too
_LONGEST = 16_384  # far above any signed token; a bound on what a wrong path can cost
_USABLE = re.compile(r"[!-~]+")


def read_token(env: str | None = None, file: str | None = None) -> str | None:
    """Looks for a token.

    Args:
        env: name of the environment variable that holds it; None = ADMITPERF_TOKEN,
            which may be absent.
        file: path of the file that holds it and nothing else.

    Returns:
        The token; None when nobody named one and the default variable is not set.

    Raises:
        ConfigError: it is not where it was said to be, or is no token.
    """
    if env is not None and file is not None:
        raise ConfigError("token", ["give --token-env or --token-file, not both"])
    if file is not None:
        return _usable(_from_file(file), "--token-file")
    if env is None:
        found = os.environ.get(DEFAULT_ENV, "")
        return _usable(found, DEFAULT_ENV) if found.strip() else None
    if not os.environ.get(env, "").strip():
        fault = "the environment variable that --token-env names is not set, or empty"
        raise ConfigError("token", [fault])
    return _usable(os.environ[env], "--token-env")


def _from_file(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  a path may be no path at all
            return file.read(_LONGEST + 1).decode("latin-1")
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or "not a path").lower()
        fault = f"the file that --token-file names cannot be read: {why}"
        raise ConfigError("token", [fault]) from None


def _usable(text: str, where: str) -> str:
    token = text.strip()
    if len(token) > _LONGEST or not _USABLE.fullmatch(token):
        fault = f"what {where} holds is not one word of printable ASCII"
        raise ConfigError("token", [fault])
    return token


def blanked(text: str, token: str | None) -> str:
    """A text without the token.

    A server can echo it in capitals or small letters, with escapes as in JSON or in a
    label, or as in an address; all of these are found.
    """
    return _forms(token).sub(MASK, text) if token else text


@lru_cache(maxsize=16)
def _forms(token: str) -> re.Pattern[str]:
    sought = "".join(map(_form, token[:_SOUGHT]))
    rest = r"[^\s\"]*" if len(token) > _SOUGHT else ""
    return re.compile(sought + rest)


def _form(char: str) -> str:
    """One character however it is written."""
    codes = {f"{ord(case):02x}" for case in (char.lower(), char.upper())}
    coded = "|".join(rf"\\u00(?i:{code})|%(?i:{code})" for code in sorted(codes))
    plain = "".join(map(re.escape, {char.lower(), char.upper()}))
    return rf"(?:\\?[{plain}]|{coded})"
