"""Decisions without a time of their own: a 0, where the run does not begin at 0."""

from admitperf.reports.runs.store import Store

EPOCH_US = 86_400_000_000
"""Plain choice: what happened on the first day of 1970 has no time."""


def drop_times(store: Store) -> None:
    """Makes such a time unknown; the decision itself counts like any other.

    Without this, one request whose sender recorded no time would stretch its run to the
    epoch. A run on a clock that starts at 0, as in a test, keeps its times.

    Args:
        store: with the tables `decision` and `other`.
    """
    store.rows(
        f"""UPDATE decision SET t_us = NULL FROM (
            SELECT run, min(t_us) AS began_us FROM other WHERE k = 'run' GROUP BY run
        ) AS header
        WHERE decision.run = header.run AND t_us < {EPOCH_US}
            AND began_us >= {EPOCH_US}"""
    )
