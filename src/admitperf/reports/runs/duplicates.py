"""Records that stand in a log twice, as after a file was copied: each counts once."""

from collections import Counter

from admitperf.reports.runs.store import Store


def drop(store: Store) -> dict[str, Counter[str]]:
    """Keeps the first of the decisions, and of the outcomes, with one number.

    Returns:
        How many of each kind were dropped, by `run` id; ids without any are absent.
    """
    dropped: dict[str, Counter[str]] = {}
    for kind, table, number, only in (
        ("decision", "decision", "seq", "true"),
        ("outcome", "other", '"of"', "k = 'outcome'"),
    ):
        store.rows(
            f"""CREATE OR REPLACE TEMP TABLE twice AS
            SELECT run, {number} AS number, min(rowid) AS first, count(*) - 1 AS n
            FROM {table} WHERE {only} GROUP BY run, {number} HAVING count(*) > 1"""
        )
        found = store.rows("SELECT run, sum(n)::BIGINT FROM twice GROUP BY run")
        for run, n in found:
            dropped.setdefault(run, Counter())[kind] = n
        if found:
            store.rows(
                f"""DELETE FROM {table} USING twice
                WHERE {only} AND {table}.run = twice.run
                AND {table}.{number} = twice.number AND {table}.rowid > twice.first"""
            )
    return dropped
