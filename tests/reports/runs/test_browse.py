"""Every decision is a row, and rows are found by what is written on its line."""

import pytest
from tests.reports.byhand import decision, header, outcome

from admitperf.reports.report import reported
from admitperf.reports.runs import browse


@pytest.fixture
def parquet(write, tmp_path):
    """The rows of some lines."""

    def made(*lines, **options):
        path = tmp_path / "rows.parquet"
        with reported([write(*lines)], **options) as (log, report):
            browse.write(log, report, path)
        return path

    return made


LINES = (
    header(),
    decision(1, id="r-1", facts={"tenant": "a'; DROP", "session": "s1", "attempt": 2}),
    decision(2, "defer", "queue_depth", id="r-2", facts={"tenant": "b"}),
    decision(3, "defer", "queue_depth", id="\u2713", facts={"tenant": "b"}),
    outcome(1, ttft_ms=12.5),
)


def rows(found):
    """Rows as mappings."""
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_a_row_has_what_the_line_says_and_how_it_ended(parquet):
    """Texts as they are, numbers as numbers, the outcome beside its decision."""
    first, second, _ = rows(browse.find(parquet(*LINES), 0, {}))
    assert first["request_id"] == "r-1"
    assert first["tenant"] == "a'; DROP"
    assert first["attempt"] == 2
    assert first["ttft_ms"] == 12.5
    assert first["ok"] is True
    assert second["session"] == ""
    assert second["ttft_ms"] is None
    assert second["at_s"] > first["at_s"] == 0


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ({"tenant": "b"}, ["r-2", "\u2713"]),
        ({"tenant": "a'; DROP"}, ["r-1"]),
        ({"verdict": "defer", "request_id": "\u2713"}, ["\u2713"]),
        ({"reason": "no such"}, []),
    ],
)
def test_rows_are_found_by_text(parquet, chosen, ids):
    """Whatever the text holds; and how many there are of all."""
    found = browse.find(parquet(*LINES), 0, chosen)
    assert [row["request_id"] for row in rows(found)] == ids
    assert (found.n, found.of) == (len(ids), 3)


def test_rows_are_found_by_time(parquet):
    """Both ends are in."""
    path = parquet(*LINES)
    times = [row["at_s"] for row in rows(browse.find(path, 0, {}))]
    found = browse.find(path, 0, {}, (times[1], times[2]))
    assert found.n == 2


def test_only_the_first_thousand_come_and_all_are_counted(parquet):
    """What a page shows stays small."""
    found = browse.find(parquet(header(), *map(decision, range(1, 1202))), 0, {})
    assert len(found.rows) == browse.MOST_ROWS
    assert found.n == found.of == 1201


def test_a_repeated_line_is_one_row(parquet):
    """As it is one decision in the report."""
    found = browse.find(parquet(*LINES, LINES[1]), 0, {})
    assert found.n == 3


def test_a_run_without_rows_has_none(parquet):
    """Its number is not of this file."""
    found = browse.find(parquet(*LINES), 7, {})
    assert (found.n, found.of, found.rows) == (0, 0, ())


def test_values_come_commonest_first(parquet):
    """For a list to choose from."""
    assert browse.values(parquet(*LINES), 0, "tenant") == ["b", "a'; DROP"]
    assert browse.values(parquet(*LINES), 0, "session") == ["s1"]


def test_no_such_file_is_said(tmp_path):
    """As any file that cannot be read."""
    with pytest.raises(OSError, match="parquet"):
        browse.find(tmp_path / "gone.parquet", 0, {})
