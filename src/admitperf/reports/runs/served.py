"""Outcomes next to their decisions, judged by service-level objectives."""

from collections.abc import Mapping

from admitperf.reports.runs.slo import BOUNDS, Slo
from admitperf.reports.runs.store import Store


def serve(store: Store, slos: Mapping[int, Slo]) -> None:
    """Makes the table `served` and, with what each outcome missed, the view `judged`.

    An outcome belongs to the decision of its process with its number; one without a
    decision is in neither. A class without bounds is judged by ok alone.

    Args:
        store: with the views `decisions` and `outcomes`.
        slos: what outcomes are judged by, by the number of the run.
    """
    _bound(store, slos)
    store.rows(
        """CREATE OR REPLACE TABLE served AS
        SELECT d.run_n, o.row, d.call, d.t_us, d.late_ms, d.admitted, o.ok, o.error,
            o.ttft_ms, o.max_gap_ms, o.e2e_ms, d.whole, o.output_tokens, d.asked_tokens,
            o.ended_us, o.truncated,
            coalesce(everyone.slo_n, class.slo_n) AS slo_n
        FROM outcomes o
        JOIN decisions d ON d.process_n = o.process_n AND d.seq = o."of"
        LEFT JOIN slo everyone
            ON everyone.run_n = d.run_n AND everyone.slo_class IS NULL
        LEFT JOIN slo class
            ON class.run_n = d.run_n AND class.slo_class = coalesce(d.slo_class, '')"""
    )
    store.rows(
        f"""CREATE OR REPLACE VIEW judged AS
        SELECT served.*, served.slo_n IS NOT NULL AS bounded,
            bounds.ttft_ms AS ttft_bound_ms, {missed("0.0")} AS missed
        FROM served LEFT JOIN slo bounds ON bounds.slo_n = served.slo_n"""
    )


def missed(later_ms: str) -> str:
    """Which bound an outcome of `served` missed, or could not be judged by.

    An answer that was not streamed shows the caller nothing before its end, so its
    e2e_ms stands where a streamed one has ttft_ms, and there are no gaps.

    Args:
        later_ms: how much later than by the attempt's own clock everything came.

    Returns:
        An expression over `served` and the table `slo`, named `bounds`: NULL when every
        bound was met, the bound's name when one was missed, "no <field>" when the
        outcome lacks the number.
    """
    return f"""CASE
        WHEN NOT whole AND served.ttft_ms + {later_ms} > bounds.ttft_ms
            OR whole AND served.e2e_ms + {later_ms} > bounds.ttft_ms THEN 'ttft_ms'
        WHEN NOT whole AND max_gap_ms > bounds.stall_ms THEN 'stall_ms'
        WHEN served.e2e_ms + {later_ms} > bounds.e2e_ms THEN 'e2e_ms'
        WHEN NOT whole AND bounds.ttft_ms IS NOT NULL AND served.ttft_ms IS NULL
            THEN 'no ttft_ms'
        WHEN NOT whole AND bounds.stall_ms IS NOT NULL AND max_gap_ms IS NULL
            THEN 'no max_gap_ms'
        WHEN served.e2e_ms IS NULL AND (bounds.e2e_ms IS NOT NULL
            OR whole AND bounds.ttft_ms IS NOT NULL) THEN 'no e2e_ms' END"""


def _bound(store: Store, slos: Mapping[int, Slo]) -> None:
    sets = [
        (run, name, bounds)
        for run, slo in slos.items()
        for name, bounds in slo.sets.items()
        if bounds
    ]
    store.table(
        "slo",
        {
            "slo_n INTEGER": list(range(len(sets))),
            "run_n INTEGER": [run for run, _, _ in sets],
            "slo_class VARCHAR": [name for _, name, _ in sets],
            **{
                f"{one} DOUBLE": [bounds.get(one) for _, _, bounds in sets]
                for one in BOUNDS
            },
        },
    )
