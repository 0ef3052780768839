"""Whether a run says that its engine was simulated."""

from collections.abc import Iterable, Mapping

from admitperf.simulator.fit.vetted import Fields

INFO = "admitperf_simulated_info"
"""The series by which the page of `admitperf sim serve` says what it is."""

ENGINE = "admitperf simulator"
"""What the notes of `admitperf sim run` call the engine."""

MODEL = "simulated"
"""What `admitperf sim serve` calls its model when it is not told otherwise."""


def simulated(lines: Iterable[Fields]) -> bool:
    """Whether any object of a run's file says so: one makes the whole run so.

    Args:
        lines: of a decision log or a load run; a bench file is one object. The notes of
            a header count, the bench's --metadata, which it writes as text, and pages
            of metrics.
    """
    return any(_line(fields) for fields in lines)


def _line(fields: Fields) -> bool:
    notes = (fields, fields.get("notes"), fields.get("meta"))
    pages = (fields.get("raw"), fields.get("m"))
    return (
        any(_noted(one) for one in notes)
        or any(_shown(one) for one in pages)
        or fields.get("model_id") == MODEL
    )


def _noted(notes: object) -> bool:
    if not isinstance(notes, Mapping):
        return False
    said = str(notes.get("simulated", "")).lower() == "true"
    return said or notes.get("engine") == ENGINE


def _shown(page: object) -> bool:
    names = page if isinstance(page, Mapping) else ()
    return any(INFO in str(name) for name in names)
