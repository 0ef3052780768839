"""Text of a log made safe to show."""

from hypothesis import given
from hypothesis import strategies as st

from admitperf.reports.sheets.plain import LONGEST, plain, shown, visible


def test_what_cannot_be_seen_is_shown_as_such():
    """Control characters, halves of a character, what turns text round."""
    for hidden in "\x00\x07\x1b\n\r\x7f\x9b\ud800\u202e\u2066\u200b\u2028\ufeff\u061c":
        assert visible(f"a{hidden}b") == "a\ufffdb"
    for text in ("naïve", "门控", "שלום", "🙂", "a b"):
        assert visible(text) == text


def test_a_text_without_end_is_cut():
    """With its length beside it."""
    assert shown("x" * 100_000) == "x" * LONGEST + "... (100000 characters)"
    assert shown("x" * LONGEST) == "x" * LONGEST


def test_a_document_is_cleaned_all_through():
    """Names and values at any depth; numbers and nulls stay."""
    assert plain({"\x00": ["\ud800", 1, None, (True, {"a": "\x1b"})]}) == {
        "\ufffd": ["\ufffd", 1, None, [True, {"a": "\ufffd"}]]
    }


@given(st.text())
def test_any_text_can_be_written_as_utf_8(text):
    """A file is UTF-8, whatever the log had."""
    assert visible(text).encode().decode() == visible(text)
