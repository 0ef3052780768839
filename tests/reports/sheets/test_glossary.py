"""Which terms a page defines: those it uses."""

from admitperf.reports.sheets.glossary import used, words
from admitperf.reports.sheets.sheet import (
    Answer,
    Answers,
    Column,
    Figure,
    Rows,
    Section,
    Sheet,
    Source,
    Table,
    Words,
)

TABLE = Table("caption", (Column("heading"), Column("n")), ((1, 2),), "note")


def sheet(*blocks, word=""):
    """A page with some blocks in its one section."""
    return Sheet("title", word, "plain", (), (Section("section", blocks),))


def terms(*blocks, word=""):
    """The terms it defines, by name."""
    return {one.word for one in used(sheet(*blocks, word=word))}


def test_every_kind_of_block_is_read_but_for_the_configuration():
    """Numbers and other people's text define nothing."""
    blocks = (
        Words("text", "label"),
        Rows((("name", "said"),)),
        TABLE,
        Figure("figure", "says", {}, TABLE),
        Answers((Answer("answer", "question", ("why",), "good"),)),
        Source("goodput"),
    )
    said = set(words(sheet(*blocks)))
    assert {
        "text",
        "label",
        "name",
        "said",
        "heading",
        "note",
        "figure",
        "says",
    } <= said
    assert {"answer", "question", "why", "section", "title"} <= said
    assert "goodput" not in terms(*blocks)


def test_a_form_of_a_term_finds_it():
    """Plurals and abbreviations stand beside the word itself."""
    assert "gate" in terms(Words("Two gates were asked."))
    assert "gate" not in terms(Words("Two gatesmen were asked."))


def test_words_of_every_sentence_are_defined_where_a_table_heads_with_them():
    """A "no" in a sentence is no answer to a check."""
    assert "n" not in terms(Words("n of 5, from 1 to 2, and no more"))
    assert "n" in terms(TABLE)
    assert "no" in terms(Answers((Answer("no", "q", (), "bad"),)))


def test_the_word_of_the_page_is_defined():
    """It is what a reader sees first."""
    assert "INERT" in terms(word="INERT")
