"""docs/reference/terms.md, made from the list of terms."""

from admitperf.reports.pages.terminology import GROUPS, SURVEY

HEAD = """# Terms

Each word that a report, a comparison or a demo prints, and what it means there.
The list is `admitperf.reports.pages.terminology`; this page is made from it.

A term marked *survey* is a notion of the published survey of admission control.
Its words are not quoted: the telling is ours, and it says what AdmitPerf computes.
"""


def page():
    """The whole page."""
    return "\n".join([HEAD, *(line for group in GROUPS for line in _group(group))])


def _group(group):
    yield f"## {group.title}\n"
    yield "| term | what it means |"
    yield "|---|---|"
    for term in group.terms:
        mark = " *survey*" if term.origin == SURVEY else ""
        also = ", ".join(f"`{form}`" for form in term.also)
        printed = f" Also printed: {also}." if also else ""
        yield f"| **{term.word}**{mark} | {term.means}{printed} |"
    yield ""
