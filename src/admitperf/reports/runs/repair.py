"""What may repair a missing signal: why it is absent, and the names that look like it.

Both stand on the lines themselves and are looked for only when a report needs them.
"""

from collections.abc import Iterable
from functools import cached_property

from admitperf.core.request import FACTS
from admitperf.core.series import Series
from admitperf.core.signals import ALL
from admitperf.reports.runs.fields import member
from admitperf.reports.runs.log import Log
from admitperf.reports.runs.run import Run
from admitperf.reports.runs.store import quoted
from admitperf.reports.runs.tables import kind, lines

MOST_KEYS = 1 << 13  # plain choice: an engine's page has a few hundred series
MOST_LINES = 100_000  # plain choice: an engine names the same series on each
NEAREST = 3
# Counters and the parts of histograms: none is the value of a signal as it stands.
_NO_GAUGE = ("_bucket", "_count", "_created", "_sum", "_total")
_FROM_HOST = FACTS.union(signal.name for signal in ALL if signal.origin != "engine")


class Repair:
    """The advice that a run's log holds on signals which were never supplied."""

    def __init__(self, log: Log, run: Run) -> None:
        self._log, self._run = log, run

    def advice(self, name: str) -> str:
        """What is known of a signal that was never supplied.

        It ends a sentence and may go on with another. When the signal's own series is
        there and not usable, no other name is meant.
        """
        absent = self._absent(name)
        if absent is not None:
            return f": {absent}."
        return f". {advice(name, self._raw)}".rstrip()

    def _absent(self, name: str) -> str | None:
        """Why the first reading without a signal lacked it; None when none says so."""
        why = member("signals", name, "absent")
        ((found,),) = self._log.store.rows(
            f"""SELECT min({{'t_us': t_us, 'why': why}}) FROM (
                SELECT {why} ->> '$' AS why,
                    json_extract(line, '$.t_us')::BIGINT AS t_us
                FROM {self._lines} WHERE {kind("reading")} AND {self._own})
            WHERE why IS NOT NULL"""
        )
        return None if found is None else str(found["why"])

    @cached_property
    def _raw(self) -> list[str]:
        """The names of raw metrics on the first lines that have any."""
        return [
            name
            for (name,) in self._log.store.rows(
                f"""WITH raw AS (
                    SELECT json_keys(line, '$.raw') AS names FROM {self._lines}
                    WHERE ({kind("reading")} OR {kind("decision")})
                        AND contains(line, '"raw"') AND {self._own}
                    LIMIT {MOST_LINES})
                SELECT unnest(names) AS name FROM raw GROUP BY name
                ORDER BY count(*) DESC, name LIMIT {MOST_KEYS}"""
            )
        ]

    @property
    def _lines(self) -> str:
        return lines(self._log.store, self._log.texts)

    @property
    def _own(self) -> str:
        ids = ", ".join(map(quoted, self._run.ids))
        return f"json_extract_string(line, '$.run') IN ({ids})"


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The raw names that look most like a signal's and may be mapped to it."""
    keys = dict.fromkeys(names, None)
    found = Series(keys).nearest(name, len(keys) or 1)
    return [one for one in found if not one.endswith(_NO_GAUGE)][:NEAREST]


def advice(name: str, names: Iterable[str]) -> str:
    """A sentence that helps to repair a missing signal.

    Empty for what comes with a request or from the host's own calls: no metric supplies
    that.

    Args:
        name: the signal's.
        names: raw metrics, with their labels.
    """
    names = list(names)
    if name in _FROM_HOST:
        return ""
    if not names:
        return "No raw metric is in the log."
    near = ", ".join(nearest(name, names))
    if not near:
        return "No raw name in the log looks like it."
    return f"Nearest raw names in the log: {near}."
