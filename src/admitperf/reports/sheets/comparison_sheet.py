"""The page of a comparison as a sheet: checks before numbers, then what they say.

Order and wording are those of `comparison_page`; every number is one of the document.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from admitperf.reports.charts import comparison as charts
from admitperf.reports.charts.comparison import Estimate
from admitperf.reports.comparison.comparison import Comparison, Repeat, Side
from admitperf.reports.comparison.guard import Guard
from admitperf.reports.comparison.statistics import Interval
from admitperf.reports.pages import comparison_page, repeats_page
from admitperf.reports.pages.difference_page import difference, signed, written
from admitperf.reports.pages.revived import read, read_files
from admitperf.reports.quantile import Spread
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
from admitperf.reports.wording import as_written, counted, plural

Document = Mapping[str, Any]

_LONGEST_NAME = 32
"""Plain choice, in characters: two of them and a plot fit beside each other."""
_MOST_TOLD = 8
"""Plain choice: the repeats of more arms are read in a table and not in a sentence."""
_OFFERED = "goodput of offered"
_DIFFERENCE = "difference in goodput of offered, arm minus baseline"


def comparison_sheet(document: Document, command: str = "") -> Sheet:
    """The page of one comparison, or of every arm of an experiment.

    Args:
        document: as `comparison_document.document` makes it.
        command: what makes the page again; "" = not known.
    """
    safe = plain(document)
    with as_written():
        made = [read(Comparison, one) for one in safe["comparisons"]]
        title, word, lead = _front(made)
        return Sheet(
            title=title,
            word=word,
            mood=mood_of(word),
            lead=(*claim(safe["check"]), *lead),
            sections=(*_every(made), _files(safe["files"])),
            command=visible(command),
        )


def _front(made: Sequence[Comparison]) -> tuple[str, str, Iterator[Block]]:
    """Title, word and lead of some comparisons."""
    if not made:
        return "No comparison", "", iter([Words("There are no arms to compare.")])
    if len(made) == 1:
        return _titled(made[0]), made[0].verdict, _lead(made[0])
    return comparison_page.overall(made), "", _overview(made)


def _every(made: Sequence[Comparison]) -> Iterator[Section]:
    if len(made) == 1:
        yield from _sections(made[0])
        return
    for one in made:
        yield Section(_titled(one), tuple(_lead(one)))
        for part in _sections(one):
            yield Section(part.title, part.blocks, 2)


def _titled(one: Comparison) -> str:
    return f"{one.arm.label} against {one.baseline.label}"


# --------------------------------------------------------------------------- lead


def claim(check: Document | None) -> Iterator[Block]:
    """What `--check` came to; nothing when it was not asked.

    Args:
        check: the `check` of a document.
    """
    if check is not None:
        answer = "holds" if check["passed"] else "is not supported"
        mood = mood_of("pass" if check["passed"] else "fail")
        yield Words(f"The claim '{check['claim']}' {answer}.", "CHECK", mood)
        for why in check["failures"]:
            yield Words(why, "CHECK", "bad")


def _lead(one: Comparison) -> Iterator[Block]:
    said = comparison_page.verdict(one)
    yield Words(said, one.verdict.upper(), mood_of(one.verdict))
    for check in one.failed:
        yield Words(check.says[0], f"Check {check.number}", "bad")
    yield from _stamps([one])
    yield from blocks(comparison_page.who(one))


def _stamps(made: Sequence[Comparison]) -> Iterator[Block]:
    for word, said in comparison_page.stamped(made):
        yield Words(said, word, "unsure")


def _overview(made: Sequence[Comparison]) -> Iterator[Block]:
    for one in made:
        said = comparison_page.headline(one)
        yield Words(said, one.verdict.upper(), mood_of(one.verdict))
        for check in one.failed:
            said = f"{one.arm.label}: {check.says[0]}"
            yield Words(said, f"Check {check.number}", "bad")
    yield from _stamps(made)
    yield from map(Words, comparison_page.family(made))
    sides = [*(one.arm for one in made), made[0].baseline]
    yield _medians(sides)
    yield _arms_apart(made)
    yield _repeats_figure(sides)


def _medians(sides: Sequence[Side]) -> Table:
    """The middle repeat of each arm."""
    return Table(
        "Median of repeats",
        (
            Column("arm"),
            Column("n", kind="number"),
            Column("goodput", kind="number"),
            Column("TTFT p95", "ms", "number"),
        ),
        tuple(
            (side.label, len(side.repeats), *repeats_page.middle(side)[:2])
            for side in sides
        ),
    )


def _arms_apart(made: Sequence[Comparison]) -> Figure:
    """Each arm's mean difference; of a void one none is drawn."""
    names = apart([one.arm.label for one in made])
    judged = [one.statistics if one.verdict != "void" else None for one in made]
    rows = [
        Estimate(name, found.mean, *ends(found.interval), strong=True)
        if found
        else Estimate(name, None)
        for name, found in zip(names, judged, strict=True)
    ]
    margin = made[0].statistics.margin
    return Figure(
        title="Every arm against the baseline",
        says=(
            f"The diamond is the mean difference, the line its 95 % interval, the band"
            f" the margin of +-{margin:g}. Of a void arm nothing is drawn."
        ),
        chart=charts.forest(rows, _DIFFERENCE, margin),
        table=Table(
            "Mean difference, interval and MDE of every arm",
            (
                Column("arm"),
                Column("verdict"),
                Column("pairs", kind="number"),
                *(Column(name, kind="number") for name in _ESTIMATE),
            ),
            tuple(
                (one.arm.label, one.verdict, one.statistics.n, *_estimate(one))
                for one in made
            ),
        ),
    )


_ESTIMATE = ("mean", "95 % low", "95 % high", "SD", "MDE", "Holm p")


def _estimate(one: Comparison) -> tuple[Cell, ...]:
    found = one.statistics
    if one.verdict == "void":
        return (None, None, None, None, found.smallest_effect, None)
    low, high = ends(found.interval)
    return (found.mean, low, high, found.sd, found.smallest_effect, found.family_p)


def ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """Both ends of an interval; None for each of one that cannot be given."""
    return (None, None) if interval is None else (interval.low, interval.high)


# ----------------------------------------------------------------------- sections


def _sections(one: Comparison) -> Iterator[Section]:
    yield Section("Checks before numbers", (_checks(one.checks),))
    yield Section("Repeats", tuple(_repeats(one)))
    yield Section("What it comes to", tuple(map(Words, one.says)))
    yield Section(comparison_page.DIFFERENCE, tuple(_difference(one)))
    if one.notices:
        said = (Words(notice, "NOTICE", "unsure") for notice in one.notices)
        yield Section("Notices", tuple(said))
    sides = (one.arm, one.baseline)
    tallied = [(side.label, side.items) for side in sides]
    yield Section("The seven reporting items", tuple(seven(tallied)))
    yield Section("Configuration", tuple(map(_parameters, sides)))


def seven(
    arms: Sequence[tuple[str, Mapping[str, Mapping[str, int]]]],
) -> Iterator[Block]:
    """How the runs of each arm answer the reporting items; nothing without any.

    Args:
        arms: label, and how many runs answer each item how.
    """
    names = list(dict.fromkeys(name for _, own in arms for name in own))
    if names:
        yield Table(
            "How many runs of each arm answer how",
            (Column("item"), *(Column(label) for label, _ in arms)),
            tuple(
                (name, *(counted(dict(own.get(name, {}))) or None for _, own in arms))
                for name in names
            ),
            "What each answer rests on, run by run, is in the report on its log.",
        )


def _checks(checks: Sequence[Guard]) -> Answers:
    return Answers(
        tuple(
            Answer(
                check.answer,
                f"{check.number} {check.name}.",
                check.says,
                mood_of(check.answer),
            )
            for check in checks
        )
    )


def _repeats(one: Comparison) -> Iterator[Block]:
    yield _medians([one.arm, one.baseline])
    yield _repeats_figure([one.arm, one.baseline])
    for side in (one.arm, one.baseline):
        yield Table(
            f"Repeats of {side.label}",
            (
                Column("repeat"),
                Column("finding"),
                Column("goodput", kind="number"),
                Column("met the SLO", kind="number"),
                Column("offered", kind="number"),
                Column("TTFT p95", "ms", "number"),
                Column("p95 user", "ms", "number"),
                Column("refused", kind="number"),
                Column("refused of", kind="number"),
            ),
            tuple(map(_repeat, side.repeats)),
        )
    yield Words(repeats_page.columns(one))


def _repeat(repeat: Repeat) -> tuple[Cell, ...]:
    good = repeat.goodput
    return (
        repeat.name,
        repeat.finding,
        *((None, None, None) if good is None else (good.value, good.n, good.of)),
        _p95(repeat.ttft_ms),
        _p95(repeat.ttft_user_ms),
        repeat.refused.n,
        repeat.refused.of,
    )


def _p95(spread: Spread | None) -> Cell:
    if spread is None or not spread.n:
        return None
    return "n<20" if spread.p95 is None else spread.p95


def _repeats_figure(sides: Sequence[Side]) -> Figure:
    names = apart([side.label for side in sides])
    own = [(name, _goodputs(side)) for name, side in zip(names, sides, strict=True)]
    said = (
        f"{name} {_range(values)} in {plural(len(values), 'repeat')}"
        for name, values in own
        if values
    )
    told = "; ".join(said) or "No repeat has outcomes."
    if len(own) > _MOST_TOLD:
        told = f"{plural(len(own), 'arm')}; the table has every repeat."
    return Figure(
        title="Goodput of offered, one dot a repeat",
        says=told,
        chart=charts.repeats(own, _OFFERED),
        table=Table(
            "Goodput of every repeat",
            (Column("arm"), Column("repeat"), Column("goodput", kind="number")),
            tuple(
                (side.label, one.name, one.goodput.value if one.goodput else None)
                for side in sides
                for one in side.repeats
            ),
        ),
    )


def _range(values: Sequence[float]) -> str:
    """`0.310 to 0.338`, or the one value that all are."""
    ends = dict.fromkeys(f"{end:.3f}" for end in (min(values), max(values)))
    return " to ".join(ends)


def _goodputs(side: Side) -> list[float]:
    shares = [one.goodput for one in side.repeats]
    return [one.value for one in shares if one and one.value is not None]


def _difference(one: Comparison) -> Iterator[Block]:
    if one.verdict != "void":
        yield _pairs_figure(one)
    yield from blocks(difference(one))


def _pairs_figure(one: Comparison) -> Figure:
    found = one.statistics
    names = apart([*(pair.name for pair in one.pairs), "mean"])
    pairs = [
        Estimate(name, pair.goodput)
        for name, pair in zip(names, one.pairs, strict=False)
    ]
    mean = Estimate(names[-1], found.mean, *ends(found.interval), strong=True)
    said = "" if found.mean is None else f"The mean is {signed(found.mean)}"
    if found.interval is not None:
        said += f", its 95 % interval {written(found.interval)}"
    return Figure(
        title="The difference in each pair",
        says=f"{said or 'There is no mean'}; the band is the margin of"
        f" +-{found.margin:g}.",
        chart=charts.forest([*pairs, mean], _DIFFERENCE, found.margin),
        table=Table(
            "Difference by pair",
            (
                Column("pair"),
                Column("difference", kind="number"),
                Column("95 % low", kind="number"),
                Column("95 % high", kind="number"),
            ),
            (
                *((pair.name, pair.goodput, None, None) for pair in one.pairs),
                ("mean", found.mean, *ends(found.interval)),
            ),
        ),
    )


def _parameters(side: Side) -> Block:
    if not side.params:
        return Words(f"{side.label} has no parameters.")
    return Table(
        f"Parameters of {side.label}",
        (Column("parameter"), Column("value"), Column("origin")),
        tuple(
            (name, as_text(value), side.provenance.get(name))
            for name, value in side.params.items()
        ),
    )


def as_text(value: object) -> str:
    """A parameter's value, as its log has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _files(files: Document) -> Section:
    found = read_files(files)
    unusable = sum(found.unusable.values())
    lines = f"{found.lines} lines, {unusable} could not be used"
    rows = [("read", f"{plural(len(found.paths), 'file')}, {lines}")]
    rows += [("not read", why) for why in found.unread]
    rows += [("at", first) for first in found.first]
    rows += [("notice", notice) for notice in found.notices]
    return Section("Files", (Rows(tuple(rows)),))


def apart(names: Sequence[str]) -> list[str]:
    """Names short enough for an axis, each of them once."""
    made: list[str] = []
    for name in names:
        short = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        made.append(short if short not in made else f"{short} #{len(made) + 1}")
    return made
