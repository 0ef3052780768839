"""Log lines as strict JSON text. What is not finite is null, never a bare NaN."""

import json
import math
from collections.abc import Mapping

from admitperf.core.gate import number
from admitperf.core.view import View

SCHEMA = 1
"""Number of the line format; readers accept every older one."""

Raw = Mapping[str, object]
_SKIPPED_MOST = 16


def strict(value: object) -> object:
    """A value any JSON reader takes.

    Non-finite numbers become None, and what JSON has no word for becomes its text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _strict_number(value)
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-8", "backslashreplace").decode()
        )
    if isinstance(value, Mapping):
        return {str(strict(str(key))): strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [strict(inner) for inner in value]
    return _named(value)


def _named(value: object) -> object:
    try:
        return strict(str(value))
    except Exception:  # noqa: BLE001  an object that cannot even say what it is
        return f"<{type(value).__name__}>"


def _strict_number(value: float) -> float | None:
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return int(value)
    try:
        plain = float(value)
    except OverflowError:
        return None
    return plain if math.isfinite(plain) else None


def dumps(value: object) -> str:
    """Compact strict JSON of anything."""
    return json.dumps(strict(value), separators=(",", ":"), allow_nan=False)


def raw_texts(raw: Raw) -> dict[str, str]:
    """Raw metrics as JSON numbers by key.

    What is no number is left out, as are the histogram buckets of full series.
    """
    texts: dict[str, str] = {}
    for key, value in raw.items():
        text = number_text(value)
        if text is not None and isinstance(key, str) and "_bucket{" not in key:
            texts[key] = text
    return texts


def number_text(value: object) -> str | None:
    """A number as JSON; None for what is no number."""
    if type(value) is float:
        return number(value)
    if type(value) is int and abs(value) < 1 << 63:
        return repr(value)
    if value is None or isinstance(value, (bool, str, bytes)):
        return None
    try:
        return number(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return "null"
    except Exception:  # noqa: BLE001  what cannot be a float is no number
        return None


def supplies_text(view: View) -> str:
    """Per signal of a view: value, source, parts, age, and why one is absent."""
    told: dict[str, object] = {}
    for signal, supply in view.supplies.items():
        found = supply.found
        skipped = list(found.skipped[:_SKIPPED_MOST])
        told[signal.name] = {
            "value": found.value,
            "source": supply.source.describe(signal.combine),
            "age_ms": max(0, (view.reading.taken_ns - supply.taken_ns) // 1_000_000),
            **({"parts": found.parts} if found.parts else {}),
            **({"skipped": skipped} if skipped else {}),
        }
    for signal, why in view.absent.items():
        told[signal.name] = {"value": None, "absent": why}
    return dumps(told)


def sources_text(view: View) -> str:
    """Per signal of a view, where its value came from."""
    return dumps(
        {
            s.name: supply.source.describe(s.combine)
            for s, supply in view.supplies.items()
        }
    )
