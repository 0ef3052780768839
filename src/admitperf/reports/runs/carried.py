"""Which request facts the decisions of a run carried."""

from collections.abc import Sequence

from admitperf.reports.runs.store import Store


def carried(store: Store, facts: Sequence[str]) -> dict[int, dict[str, int]]:
    """How many decisions carried each fact.

    Args:
        store: with the view `decisions`.
        facts: those with a flag there, in its order.

    Returns:
        By name, those carried at least once, by the number of the run.
    """
    if not facts:
        return {}
    counts = ", ".join(f"count(*) FILTER (f{place})" for place in range(len(facts)))
    return {
        run: {name: n for name, n in sorted(zip(facts, found, strict=True)) if n}
        for run, *found in store.rows(
            f"SELECT run_n, {counts} FROM decisions GROUP BY run_n"
        )
    }
