"""A benchmark's comparison as plain text: ASCII, at most 80 columns, verdicts first."""

from collections.abc import Iterator, Sequence

from admitperf.bench.design.claims import Pooled
from admitperf.bench.design.comparison import Compared, Verdicts
from admitperf.bench.design.measures import margin_told, signed, words
from admitperf.bench.design.results import Run, finite, number_at
from admitperf.bench.pages import middles
from admitperf.reports.comparison.design import FEWEST_ASKED, FEWEST_FLIPPED, factor
from admitperf.reports.comparison.verdict import Paired
from admitperf.reports.pages.checks import OK
from admitperf.reports.pages.columns import aligned
from admitperf.reports.pages.comparison_page import titled
from admitperf.reports.pages.headline import parameters, stamps
from admitperf.reports.pages.layout import Said, laid_out, row, wrapped
from admitperf.reports.wording import NOT_KNOWN, number, plural, printable

SINGLE = "Single loads, exploratory: difference, 95 % interval unadjusted"
_ANSWERS = 19  # the column where a check's name begins
_PARTIAL = "it was ended early, or planned runs are missing."


def text(made: Verdicts, runs: Sequence[Run] = ()) -> str:
    """The page, with a line end.

    Args:
        made: what is shown.
        runs: what it was made of, for the numbers beside the metric; empty = those are
            not shown.
    """
    return "\n".join(_page(made, runs)) + "\n"


def _page(made: Verdicts, runs: Sequence[Run]) -> Iterator[str]:
    yield from titled(f"{made.experiment}: every arm against {made.design.baseline}")
    yield from _head(made)
    for title, section in (
        (metric(made), _means),
        (_middle_of(made, runs), lambda one: _middles(one, runs)),
        ("Claims", _claims),
        (SINGLE, _cells),
        ("Checks before numbers", _checks),
        ("Design", _design),
        ("Left out", lambda one: _listed(one.left_out)),
        ("Notices", lambda one: _listed(one.notices)),
    ):
        lines = [*section(made)]
        if lines:
            yield from ("", title, *lines)


# ------------------------------------------------------------------------- head


def _head(made: Verdicts) -> Iterator[str]:
    yield from laid_out(head(made))


def head(made: Verdicts) -> Iterator[tuple[str, str]]:
    """The verdicts, and what has to be said before any number."""
    if made.exploratory:
        said = f"the claims were set on {made.declared} before any run; {made.metric}"
        yield "EXPLORATORY", f"{said} was chosen afterwards, so it proves nothing."
    for one in made.arms:
        yield one.verdict.upper(), f"{one.arm}: {one.headline}{_by(made, one)}."
    yield from stamps(simulated=made.simulated, oracle=False)
    if made.partial:
        yield "PARTIAL", _PARTIAL


def _by(made: Verdicts, one: Compared) -> str:
    if one.verdict == "void":
        hit = [str(check.number) for check in made.checks if one.arm in check.voids]
        return f" (check {hit[0]})" if len(hit) == 1 else f" (checks {', '.join(hit)})"
    if one.gain is None or one.gain.statistics.mean is None:
        return ""
    return f": {_measured(one.gain.statistics)}"


def _measured(found: Paired) -> str:
    """`+0.310, 95 % interval +0.211 to +0.402, 8 blocks`."""
    parts = [] if found.mean is None else [signed(found.mean, found.margin)]
    if found.interval is not None:
        parts.append(f"95 % interval {_interval(found)}")
    return ", ".join([*parts, plural(found.n, "block")])


# ------------------------------------------------------------------------ means


def metric(made: Verdicts) -> str:
    """What is compared, which way it improves, and over how many blocks."""
    blocks = sorted({point.n for curve in made.curves for point in curve.points})
    n = plural(blocks[-1], "block") if len(blocks) == 1 else "blocks"
    name = made.metric.replace("_", " ").capitalize()
    way = "" if made.better == "higher" else ", lower is better"
    return f"{name} by load{way}: mean of {n}"


def _means(made: Verdicts) -> Iterator[str]:
    loads = sorted({point.load for curve in made.curves for point in curve.points})
    rows = [["", *(f"{load:g}x" for load in loads)]]
    for curve in made.curves:
        by_load = {point.load: point.mean for point in curve.points}
        cells = (_mean(made, by_load.get(load)) for load in loads)
        rows.append([printable(curve.arm), *cells])
    yield from aligned(rows)


def _mean(made: Verdicts, value: float | None) -> str:
    return f"{value:.3f}" if value is not None and made.share else number(value)


def _interval(found: Paired) -> str:
    """`+0.310 to +0.394`."""
    if found.interval is None:
        return NOT_KNOWN
    ends = (found.interval.low, found.interval.high)
    return " to ".join(signed(end, found.margin) for end in ends)


# ---------------------------------------------------------------------- middles


def _above(made: Verdicts, runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.load in made.design.above]


def _middle_of(made: Verdicts, runs: Sequence[Run]) -> str:
    """What the medians are over."""
    above = _above(made, runs)
    loads = ", ".join(f"{load:g}x" for load in sorted({run.load for run in above}))
    blocks = plural(len({run.block for run in above}), "block")
    return f"Beside it: the middle run of {blocks} at {loads}"


def _middles(made: Verdicts, runs: Sequence[Run]) -> Iterator[str]:
    yield from middles.table([curve.arm for curve in made.curves], _above(made, runs))


# ----------------------------------------------------------------------- claims


def _claims(made: Verdicts) -> Iterator[str]:
    for one in made.arms:
        yield from wrapped(whose(one))
        for said in claims(one):
            if isinstance(said, str):
                yield from wrapped(said, "    ")
            else:
                yield from row(f"  {said[0]}" if said[0] else "", said[1])


def whose(one: Compared) -> str:
    """An arm with its policy and parameters."""
    said = parameters({"params": one.parameters, "provenance": one.provenance})
    policy = f"{one.policy or one.arm}; {said}" if said else one.policy or one.arm
    told = "" if policy == one.arm else f" ({printable(policy)})"
    return f"{one.arm}{told}"


def claims(one: Compared) -> Iterator[Said]:
    """What an arm comes to: in sentences, then its two claims."""
    yield from one.says
    if one.verdict == "void":
        yield "A check failed: no difference is judged."
        return
    for name, found in (("gain", one.gain), ("no harm", one.no_harm)):
        yield from _claim(name, found, one)


def _claim(name: str, found: Pooled | None, of: Compared) -> Iterator[tuple[str, str]]:
    if found is None:
        yield name, "not asked: no load of its kind was run"
        return
    answer = "noise" if of.twin else _answer(name, found)
    if of.identical:
        answer = "not even noise"
    loads = ", ".join(f"{load:g}x" for load in found.loads)
    yield name, f"{answer}: {_measured(found.statistics)}, mean over {loads}"
    told = _gain_tests if name == "gain" else _harm_tests
    for said in told(found):
        yield "", said
    needed = found.statistics.blocks_needed
    if name == "gain" and not (of.twin or found.rises or found.falls) and needed:
        yield "", f"{needed} blocks would settle a mean like this one"
    if found.lacking:
        blocks = ", ".join(map(str, found.lacking))
        yield "", f"without block {blocks}: a load of it is missing"


def _answer(name: str, found: Pooled) -> str:
    """Whether a claim holds, and whether the opposite does."""
    if found.rises if name == "gain" else found.not_worse:
        return "holds"
    if found.falls:
        return "fails, it lost" if name == "gain" else "fails, it harms"
    return "not shown"


def _gain_tests(found: Pooled) -> Iterator[str]:
    own = found.statistics
    if own.sd is None or own.t_p is None:
        return
    holm = ""
    if own.family_p is not None:
        holm = f", {_p(own.family_p)} by Holm among {own.family} gains"
    flips = _p(own.sign_flip_p)
    if own.n < FEWEST_FLIPPED:
        flips = f"not asked below {FEWEST_FLIPPED} blocks"
    yield f"t p {_p(own.t_p)}{holm}; sign-flip p {flips}"
    sd = signed(own.sd, own.margin).lstrip("+")
    yield (
        f"MDE {number(own.smallest_effect)} ({factor(own.n):.2f} x SD {sd});"
        f" margin {number(own.margin)}"
    )


def _harm_tests(found: Pooled) -> Iterator[str]:
    own = found.statistics
    if own.interval_90 is None:
        return
    if own.n < FEWEST_ASKED:
        yield f"not asked below {FEWEST_ASKED} blocks"
        return
    ruled = "is ruled out" if found.not_worse else "is not ruled out"
    bound = signed(own.interval_90.low, own.margin)
    yield f"a loss of {number(own.margin)} {ruled}: one-sided 95 % bound {bound}"


def _p(value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return "<0.0001" if value < 0.0001 else f"{value:.2g}"  # noqa: PLR2004  what is printed


# ------------------------------------------------------------------------ cells


def _cells(made: Verdicts) -> Iterator[str]:
    rows = []
    for one in made.arms:
        if one.verdict == "void":
            continue
        for cell in one.cells:
            found = cell.statistics
            interval = _interval(found)
            mean = NOT_KNOWN if found.mean is None else signed(found.mean, found.margin)
            rows.append(
                [printable(one.arm), f"{cell.load:g}x", str(found.n), mean, interval]
            )
    if rows:
        yield from aligned([["", "load", "blocks", "difference", "interval"], *rows])


# ----------------------------------------------------------------------- checks


def _checks(made: Verdicts) -> Iterator[str]:
    for check in made.checks:
        name, first = f"{check.number:>2} {check.name}", f"  {check.answer}"
        lines = [f"{name}{whom(made, check.voids)}", *check.says]
        if check.answer == OK:
            lines = [" ".join([f"{name}.", *check.says])]
        first = first.ljust(_ANSWERS)
        for line in lines:
            yield from wrapped(printable(line), first, " " * (_ANSWERS + 3))
            first = " " * (_ANSWERS + 3)


def whom(made: Verdicts, voids: Sequence[str]) -> str:
    """Whose claims it stands in the way of."""
    if not voids:
        return ""
    if len(voids) == len(made.arms):
        return " (voids every arm)"
    return f" (voids {', '.join(voids)})"


# ----------------------------------------------------------------------- design


def _design(made: Verdicts) -> Iterator[str]:
    yield from laid_out(design(made))
    yield from _listed(made.plan)


def design(made: Verdicts) -> Iterator[tuple[str, str]]:
    """What was asked of what, as planned."""
    for name, said in (("workload", made.workload), ("client", made.client)):
        if said:
            yield name, said
    per_s = number_at(made.capacity, "per_s")
    if per_s is not None:
        yield "capacity", _capacity(made, per_s)
    if made.window:
        begins, ends = map(number, made.window)
        yield "window", f"what begins from {begins} to {ends} s is scored"
    yield from _slo(made)
    plan = made.design
    loads = ", ".join(f"{load:g}x" for load in sorted(plan.loads))
    runs = f"{plural(len(plan.arms), 'arm')}, {plural(plan.runs, 'run')}"
    yield "margin", _margin(made)
    yield "plan", f"{loads}; {plural(plan.blocks, 'block')}; {runs}"


def _margin(made: Verdicts) -> str:
    told = margin_told(made.design.margin, made.metric)
    kind = "a share" if made.share else "no share"
    return f"{told}: {words(made.metric)} is {kind}"


def _slo(made: Verdicts) -> Iterator[tuple[str, str]]:
    classes = made.slo.get("classes")
    for name, bounds in (classes if isinstance(classes, dict) else {}).items():
        if isinstance(bounds, dict):
            told = ", ".join(
                f"{one} {number(finite(bound))}" for one, bound in bounds.items()
            )
            yield "SLO", printable(f"{name}: {told}" if name else told)


def _capacity(made: Verdicts, per_s: float) -> str:
    low, high = (number_at(made.capacity, name) for name in ("low", "high"))
    unit = printable(str(made.capacity.get("unit") or "request"))
    said = f"{number(per_s)} {unit}s a second without a policy"
    if low is None or high is None:
        return said
    return f"{said}, 95 % interval {number(low)} to {number(high)}"


def _listed(sentences: Sequence[str]) -> Iterator[str]:
    for said in sentences:
        yield from wrapped(printable(said), "  - ", "    ")
