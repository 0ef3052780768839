"""A comparison as plain text: ASCII, at most 80 columns, the verdict first."""

from collections.abc import Iterator, Mapping, Sequence

from admitperf.reports.comparison.comparison import Comparison, Side
from admitperf.reports.pages.checks import OK
from admitperf.reports.pages.difference_page import difference, signed, written
from admitperf.reports.pages.headline import parameters, stamps
from admitperf.reports.pages.layout import WIDTH, Said, laid_out, row, wrapped
from admitperf.reports.pages.repeats_page import arms, goodputs, repeats
from admitperf.reports.runs.log import Files
from admitperf.reports.wording import plural, printable

_MEANING = {
    "better": "goodput rose",
    "worse": "goodput fell",
    "equivalent": "goodput stayed within the margin",
    "inconclusive": "these runs do not settle it",
    "void": "a check failed, so no claim is made",
}
DIFFERENCE = "The difference, arm minus baseline, in goodput of offered"
_ANSWERS = 19  # the column where a check's name begins


def text(made: Sequence[Comparison], files: Files) -> str:
    """Every comparison, with a line end; an overview first when there are several."""
    pages = [list(_page(one)) for one in made]
    if len(made) > 1:
        pages.insert(0, list(_overview(made)))
    parts = [line for page in pages for line in (*page, "")]
    return "\n".join([*parts, *files_read(files)]) + "\n"


# --------------------------------------------------------------------- overview


def _overview(made: Sequence[Comparison]) -> Iterator[str]:
    yield from titled(overall(made))
    for one in made:
        yield from row(one.verdict.upper(), headline(one))
    yield from laid_out(stamped(made))
    yield from laid_out(family(made))
    sides = [*(one.arm for one in made), made[0].baseline]
    yield ""
    yield from arms(sides)
    yield ""
    yield from goodputs(sides)


def overall(made: Sequence[Comparison]) -> str:
    """The title above several comparisons."""
    baseline, experiment = made[0].baseline.label, made[0].experiment
    of = f"Experiment {experiment}" if experiment else plural(len(made), "arm")
    return f"{of}: every arm against {baseline}"


def stamped(made: Sequence[Comparison]) -> Iterator[tuple[str, str]]:
    """What has to be said wherever the numbers of some comparisons are."""
    simulated = any(one.simulated for one in made)
    return stamps(simulated=simulated, oracle=any(one.oracle for one in made))


def family(made: Sequence[Comparison]) -> Iterator[str]:
    """That several gains are claimed, where they are."""
    most = max(one.statistics.family for one in made)
    if most > 1:
        yield (
            f"{most} arms claim a gain: Holm's procedure raises their p, so"
            " that any false alarm among them stays as rare as 1 in 20."
        )


def headline(one: Comparison) -> str:
    """An arm and what it came to, in a sentence."""
    return f"{one.arm.label}: {verdict(one)}"


def verdict(one: Comparison) -> str:
    """What the verdict means, and what it rests on."""
    return f"{_MEANING[one.verdict]}{_by(one)}."


def _by(one: Comparison) -> str:
    found = one.statistics
    if one.verdict == "void":
        numbers = ", ".join(str(check.number) for check in one.failed)
        return f" (check {numbers})" if len(one.failed) == 1 else f" (checks {numbers})"
    if found.mean is None:
        return ""
    pairs = plural(found.n, "pair")
    if found.interval is None or not found.asked:
        return f": {signed(found.mean)} of offered, {pairs}"
    return (
        f": {signed(found.mean)} of offered,"
        f" 95 % interval {written(found.interval)}, {pairs}"
    )


# ------------------------------------------------------------------------- page


def _page(one: Comparison) -> Iterator[str]:
    yield from titled(f"{one.arm.label} against {one.baseline.label}")
    yield from _head(one)
    for title, section in (
        ("Checks before numbers", _checks),
        ("Repeats", repeats),
        ("What it comes to", _says),
        (DIFFERENCE, lambda one: laid_out(difference(one))),
    ):
        yield ""
        yield title
        yield from section(one)
    if one.notices:
        yield ""
        yield "Notices"
        for said in one.notices:
            yield from wrapped(printable(said), "  - ", "    ")


def _head(one: Comparison) -> Iterator[str]:
    yield from row(one.verdict.upper(), verdict(one))
    for check in one.failed:
        yield from row("", f"Check {check.number}: {check.says[0]}")
    yield from laid_out((*stamped([one]), *who(one)))


def who(one: Comparison) -> Iterator[Said]:
    """Which experiment, which arms, and with which parameters."""
    if one.experiment:
        yield "experiment", one.experiment
    for name, side in (("arm", one.arm), ("baseline", one.baseline)):
        n = plural(len(side.repeats), "repeat")
        yield name, f"{side.label}, {n}{_parameters(side)}"


def _parameters(side: Side) -> str:
    said = parameters({"params": side.params, "provenance": side.provenance})
    return f"; {said}" if said else ""


def _checks(one: Comparison) -> Iterator[str]:
    for check in one.checks:
        name, first = f"{check.number:>2} {check.name}", f"  {check.answer}"
        lines = [name, *check.says]
        if check.answer == OK:
            lines = [" ".join([f"{name}.", *check.says])]
        first = first.ljust(_ANSWERS)
        for line in lines:
            yield from wrapped(printable(line), first, " " * (_ANSWERS + 3))
            first = " " * (_ANSWERS + 3)


def _says(one: Comparison) -> Iterator[str]:
    for said in one.says:
        yield from wrapped(printable(said))


# ------------------------------------------------------------------------ files


def titled(title: str) -> Iterator[str]:
    """A title and a line under it."""
    yield from wrapped(title, indent="")
    yield "=" * min(len(title), WIDTH)


def files_read(files: Files) -> Iterator[str]:
    """What the numbers were read from, and what could not be used."""
    unusable = sum(files.unusable.values())
    yield "Files"
    read = plural(len(files.paths), "file")
    yield from row("read", f"{read}, {files.lines} lines, {unusable} could not be used")
    for name, many in _told(files).items():
        for said in many:
            yield from row(name, printable(said))


def _told(files: Files) -> Mapping[str, Sequence[str]]:
    return {"not read": files.unread, "at": files.first, "notice": files.notices}
