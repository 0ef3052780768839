"""A benchmark's comparison as a sheet: verdicts first, load against the metric.

Order and wording are those of `page`; every number is one of the document.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from admitperf.bench.design.claims import Pooled
from admitperf.bench.design.comparison import Compared, Curve, Point, Verdicts
from admitperf.bench.pages import middles, page
from admitperf.reports.charts import comparison as charts
from admitperf.reports.charts.comparison import Estimate
from admitperf.reports.comparison.verdict import Paired
from admitperf.reports.pages.revived import read
from admitperf.reports.sheets.comparison_sheet import (
    apart,
    as_text,
    claim,
    ends,
    seven,
)
from admitperf.reports.sheets.plain import plain, visible
from admitperf.reports.sheets.said import blocks
from admitperf.reports.sheets.sheet import (
    Answer,
    Answers,
    Block,
    Cell,
    Column,
    Figure,
    Rows,
    Section,
    Sheet,
    Table,
    Words,
    mood_of,
)
from admitperf.reports.wording import as_written, plural

Document = Mapping[str, Any]

_CLAIMS = (("gain", "gain"), ("no harm", "no_harm"))
_MOST_TOLD = 8
"""Plain choice: the means of more arms are read in a table and not in a sentence."""


def bench_sheet(document: Document, command: str = "") -> Sheet:
    """The page of a benchmark.

    Args:
        document: as `bench.pages.document` makes it.
        command: what makes the page again; "" = not known.
    """
    safe = plain(document)
    with as_written():
        made = read(Verdicts, safe["comparison"])
        words = {one.verdict for one in made.arms}
        word = words.pop() if len(words) == 1 else ""
        return Sheet(
            title=f"{made.experiment}: every arm against {made.design.baseline}",
            word=word,
            mood=mood_of(word),
            lead=(*claim(safe["check"]), *_lead(made)),
            sections=tuple(_filled(made, safe)),
            command=visible(command),
        )


def _filled(made: Verdicts, safe: Document) -> Iterator[Section]:
    for title, part in (
        (page.metric(made), _curves(made)),
        ("Beside it: medians above capacity", _beside(safe["beside"])),
        ("Claims", _claims(made)),
        (page.SINGLE, _cells(made)),
        ("Checks before numbers", (_checks(made),)),
        ("Design", blocks(page.design(made))),
        (
            "The seven reporting items",
            seven([(one["arm"], one["items"]) for one in safe["items"]]),
        ),
        ("Configuration", _configuration(made)),
        ("What the design can show", map(Words, made.plan)),
        ("Left out", map(Words, made.left_out)),
        ("Notices", (Words(said, "NOTICE", "unsure") for said in made.notices)),
    ):
        found = tuple(part)
        if found:
            yield Section(title, found)


# --------------------------------------------------------------------------- lead


def _lead(made: Verdicts) -> Iterator[Block]:
    for word, said in page.head(made):
        mood = mood_of(word.lower())
        unsure = word in ("SIMULATED", "EXPLORATORY", "PARTIAL")
        yield Words(said, word, "unsure" if unsure else mood)
    for check in made.checks:
        if check.voids:
            said = f"{check.name}{page.whom(made, check.voids)}: {check.says[0]}"
            yield Words(said, f"Check {check.number}", "bad")


# -------------------------------------------------------------------------- curves


def _curves(made: Verdicts) -> Iterator[Block]:
    names = apart([curve.arm for curve in made.curves])
    curves = [
        (name, [_point(point) for point in curve.points])
        for name, curve in zip(names, made.curves, strict=True)
    ]
    if not any(points for _, points in curves):
        yield Words("No run can be shown.")
        return
    yield Figure(
        title=f"{made.metric} against load",
        says=(
            f"{_all_told(made.curves)} Upright lines are 95 % intervals over blocks;"
            " claims are judged by differences in pairs. Arms stand a little beside"
            " each other, so that none hides another."
        ),
        chart=charts.against_load(curves, f"{made.metric}, mean over blocks"),
        table=Table(
            f"{made.metric} by arm and load",
            (
                Column("arm"),
                *(Column(name, kind="number") for name in _POINT),
            ),
            tuple(
                (curve.arm, point.load, point.n, point.mean, *ends(point.interval))
                for curve in made.curves
                for point in curve.points
            ),
        ),
    )


_POINT = ("load", "blocks", "mean", "95 % low", "95 % high")


def _point(point: Point) -> dict[str, float | None]:
    low, high = ends(point.interval)
    return {"load": point.load, "mean": point.mean, "low": low, "high": high}


def _all_told(curves: Sequence[Curve]) -> str:
    if len(curves) > _MOST_TOLD:
        return f"{plural(len(curves), 'arm')}; the table has the mean of each."
    return " ".join(map(_told, curves))


def _told(curve: Curve) -> str:
    """An arm's means: `queue_depth: 0.984 at 0.5x, 0.912 at 1.2x`."""
    said = (f"{point.mean:.4g} at {point.load:g}x" for point in curve.points)
    return f"{curve.arm}: {', '.join(said) or 'no run'}."


def _beside(beside: Sequence[Document]) -> Iterator[Block]:
    if beside:
        names = [
            name
            for name in beside[0]["values"]
            if name in middles.ALWAYS
            or any(one["values"][name] is not None for one in beside)
        ]
        yield Table(
            "Medians of the runs above capacity",
            (Column("arm"), *(Column(name, kind="number") for name in names)),
            tuple(
                (one["arm"], *(one["values"][name] for name in names)) for one in beside
            ),
            middles.NOTE,
        )


# -------------------------------------------------------------------------- claims


def _claims(made: Verdicts) -> Iterator[Block]:
    if any(_judged(made)):
        yield _forest(made)
    for one in made.arms:
        yield Words(page.whose(one), one.verdict.upper(), mood_of(one.verdict))
        yield from blocks(page.claims(one))


def _judged(made: Verdicts) -> Iterator[tuple[Compared, str, Pooled]]:
    """Every claim of an arm that is not void, with its name."""
    for one in made.arms:
        for name, field in _CLAIMS:
            found = getattr(one, field)
            if one.verdict != "void" and found is not None:
                yield one, name, found


def _forest(made: Verdicts) -> Figure:
    judged = list(_judged(made))
    names = apart([f"{one.arm}, {name}" for one, name, _ in judged])
    rows = [
        Estimate(label, *_estimate(found.statistics), strong=name == "gain")
        for label, (_, name, found) in zip(names, judged, strict=True)
    ]
    margin = made.design.margin if made.share else None
    return Figure(
        title="The two claims of every arm",
        says=(
            f"{plural(len(judged), 'claim')}; above 0 is an improvement. The diamond is"
            " a gain above capacity, the circle the difference below it, each with its"
            " 95 % interval" + ("; the band is the margin." if margin else ".")
        ),
        chart=charts.forest(rows, f"difference in {made.metric}", margin),
        table=Table(
            "Claims with interval, MDE and p",
            (
                Column("arm"),
                Column("claim"),
                *(Column(name, kind="number") for name in _CLAIM),
            ),
            tuple(_claim_row(*one) for one in judged),
        ),
    )


_CLAIM = (
    "blocks",
    "mean",
    "95 % low",
    "95 % high",
    "SD",
    "MDE",
    "t p",
    "Holm p",
    "sign-flip p",
)


def _claim_row(one: Compared, name: str, found: Pooled) -> tuple[Cell, ...]:
    own = found.statistics
    shown = (own.sd, own.smallest_effect, own.t_p, own.family_p, own.sign_flip_p)
    return (one.arm, name, own.n, *_estimate(own), *shown)


def _estimate(found: Paired) -> tuple[float | None, float | None, float | None]:
    return (found.mean, *ends(found.interval))


# --------------------------------------------------------------------------- cells


def _cells(made: Verdicts) -> Iterator[Block]:
    rows = tuple(
        (one.arm, cell.load, cell.statistics.n, *_estimate(cell.statistics))
        for one in made.arms
        if one.verdict != "void"
        for cell in one.cells
    )
    if rows:
        yield Table(
            "Difference at each load; no claim is made of one",
            (
                Column("arm"),
                *(
                    Column(name, kind="number")
                    for name in ("load", "blocks", "difference", "low", "high")
                ),
            ),
            rows,
        )


def _checks(made: Verdicts) -> Answers:
    return Answers(
        tuple(
            Answer(
                check.answer,
                f"{check.number} {check.name}{page.whom(made, check.voids)}.",
                check.says,
                mood_of(check.answer),
            )
            for check in made.checks
        )
    )


def _configuration(made: Verdicts) -> Iterator[Block]:
    for name, given in (("capacity", made.capacity), ("SLO", made.slo)):
        if given:
            pairs = tuple((key, as_text(value)) for key, value in given.items())
            yield Words(f"{name}, as stated:")
            yield Rows(pairs)
    yield Table(
        "Arms",
        (Column("arm"), Column("policy"), Column("parameters"), Column("origin")),
        tuple(
            (one.arm, one.policy, as_text(one.parameters), as_text(one.provenance))
            for one in made.arms
        ),
    )
