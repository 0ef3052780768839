"""What each word on the pages means."""

import streamlit as st

from admitperf.dashboard.reading import Asked
from admitperf.dashboard.show import badge, literal
from admitperf.reports.pages.terminology import GROUPS, SURVEY, Term

_APART = (
    (
        ("offered", "admitted"),
        (
            "Of 100 requests that asked, 60 are let in, and 45 of them meet their SLO."
            " By offered that is 0.45, by admitted 0.75. A policy that refuses all but"
            " the easiest request has 1.00 by admitted and next to 0 by offered, so"
            " only offered can tell a good policy from one that refuses."
        ),
    ),
    (
        ("INERT", "UNKNOWN"),
        (
            "A threshold of 0.9 on KV pressure, and 1000 decisions. INERT: each had a"
            " KV pressure, the highest was 0.36, all were admitted: it is shown that"
            " this load never reached the bound. UNKNOWN: the engine's page had no KV"
            " pressure, so the policy decided blind: nothing is shown, not even that."
        ),
    ),
)


def show_page(_: Asked) -> None:
    """Pairs that are often mixed up, then every term."""
    terms = {term.word: term for group in GROUPS for term in group.terms}
    for words, example in _APART:
        for column, word in zip(st.columns(2), words, strict=True):
            with column.container(border=True):
                _term(terms[word])
        st.markdown(literal(example))
    sought = st.text_input("Search the terms").strip().lower()
    n = 0
    for group in GROUPS:
        found = [term for term in group.terms if sought in _text(term)]
        n += len(found)
        if found:
            st.header(group.title)
            for term in found:
                _term(term)
    if not n:
        st.info("No term has that in its word or its meaning.")


def _text(term: Term) -> str:
    return " ".join((term.word, term.means, *term.also)).lower()


def _term(term: Term) -> None:
    tag = f" {badge('survey wording', 'plain')}" if term.origin == SURVEY else ""
    also = f" (also: {', '.join(term.also)})" if term.also else ""
    said = f"**{literal(term.word)}**{tag} {literal(term.means + also)}"
    st.markdown(said)
