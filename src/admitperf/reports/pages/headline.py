"""The top of a run's page: what a person needs who reads only ten lines.

The finding, what was refused of what was offered, goodput, and what is odd; then whose
run it is, and the load it faced.
"""

from collections.abc import Iterator, Mapping

from admitperf.reports.pages import stated
from admitperf.reports.pages.layout import WIDTH, row, wrapped
from admitperf.reports.quantile import Spread
from admitperf.reports.report import RunReport
from admitperf.reports.wording import (
    NOT_KNOWN,
    number,
    plural,
    printable,
    ratio,
    share,
    spread,
)


def headline(run: RunReport) -> Iterator[str]:
    """The first lines of a run's page."""
    named = title(run)
    yield from wrapped(named, indent="")
    yield "=" * min(len(named), WIDTH)
    for rows in (found(run), who(run), load(run)):
        for name, value in rows:
            yield from row(name, value)


def title(run: RunReport) -> str:
    """Whose run it is, in one line."""
    policy = run.header.get("policy") or "unknown policy (no run header)"
    return f"Run of {printable(str(policy))}"


# ------------------------------------------------------------------------ found

_SIMULATED = "the outcomes come from a simulated engine, not from hardware."
_ORACLE = "the policy was told how long answers would be, which no host can know."
_MEANS = {
    "BASELINE": "it refuses nothing by design.",
    "SHADOW": "nothing was enforced.",
}


def found(run: RunReport) -> Iterator[tuple[str, str]]:
    """The finding, what was refused, goodput, and what is odd."""
    yield "finding", f"{run.finding.word}: {_means(run)}"
    yield _refused(run)
    if run.answers.held.n:
        yield "held", _held(run)
    yield "goodput", goodput(run)
    yield from stamps(simulated=stated.simulated(run), oracle=stated.oracle(run))
    for notice in run.notices:
        yield "notice", printable(notice)


def stamps(*, simulated: bool, oracle: bool) -> Iterator[tuple[str, str]]:
    """What has to be said wherever a run's numbers are: word and meaning."""
    if simulated:
        yield "SIMULATED", _SIMULATED
    if oracle:
        yield "ORACLE", _ORACLE


def _means(run: RunReport) -> str:
    word, says = run.finding.word, run.finding.says
    if run.basis == "samples":
        return "no policy governed; these are samples of an engine."
    if word == "INERT":
        return says[1] if says[1:] else says[0]
    if word == "LIVE":
        return _live(run)
    return _MEANS.get(word) or says[0]


def _live(run: RunReport) -> str:
    refused = ["refused something"] * bool(run.answers.refused)
    held = ["made requests wait"] * bool(run.answers.held.n)
    return f"it {' and '.join([*refused, *held])}."


def _refused(run: RunReport) -> tuple[str, str]:
    answers = run.answers
    part = share(answers.refused, answers.offered)
    if run.basis == "samples":
        return "would fire", f"on {part} samples"
    away = answers.turned_away
    turned = f"{away} turned away" if away else "nobody turned away"
    if answers.host:
        turned += f"; the host refused {answers.host_total} more by itself"
    label = "would refuse" if run.finding.word == "SHADOW" else "refused"
    return label, f"{part} attempts, {turned}"


def _held(run: RunReport) -> str:
    held = run.answers.held
    part = share(held.n, run.answers.offered)
    return f"{part} attempts before they were answered; {spread(held.held_ms, 'ms')}"


def goodput(run: RunReport) -> str:
    """The headline number with its denominator, or why there is none."""
    good, paid = run.goodput, run.cost
    if run.basis == "samples":
        return "cannot be answered: no request stood behind a sample"
    if good is None:
        return "cannot be answered: no outcome was reported"
    by_attempt = run.planned is None and paid.requests is None
    what = "attempts" if by_attempt else "calls"
    what = what if run.planned is None else "planned calls"
    clock = "" if by_attempt else ", on the user's clock"
    without = ", of running without it" if run.finding.word == "SHADOW" else ""
    slo = "" if paid.slo_origin else "; no SLO is declared, so ok alone counts"
    more = at_least(run) if run.planned is None else ""  # a plan leaves nothing open
    said = f"{more}{ratio(good.n, good.of)} {what} offered{clock}"
    return f"{said}{without}{slo}"


def at_least(run: RunReport) -> str:
    """The words before a goodput that could be higher than the log can show."""
    return "at least " if run.cost.at_least else ""


# -------------------------------------------------------------------------- who


def who(run: RunReport) -> Iterator[tuple[str, str]]:
    """Whose run it is."""
    header = run.header
    for label, name in (("experiment", "experiment"), ("run", "name")):
        if header.get(name):
            yield label, printable(str(header[name]))
    if header.get("notes"):
        yield "notes", _notes(run)
    yield "parameters", parameters(header) or "none"
    yield "written by", _written_by(run)
    yield ("samples" if run.basis == "samples" else "decisions"), run.when.text


def _notes(run: RunReport) -> str:
    by_name = stated.notes(run)
    if not by_name:
        return printable(str(run.header["notes"]))
    said = (
        f"{name}={_plain(value)}"
        for name, value in by_name.items()
        if not isinstance(value, dict | list)  # of a manifest, which has them whole
    )
    return printable(", ".join(said))


def _plain(value: object) -> str:
    """A note as its writer would read it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number(value)
    return NOT_KNOWN if value is None else str(value)


def parameters(header: Mapping[str, object]) -> str:
    """Each parameter with its value and where that comes from; "" without any."""
    params, origin = header.get("params"), header.get("provenance")
    params = params if isinstance(params, dict) else {}
    origin = origin if isinstance(origin, dict) else {}
    return ", ".join(
        printable(f"{name}={value}")
        + (printable(f" ({_origin(origin[name])})") if name in origin else "")
        for name, value in params.items()
    )


def _origin(word: object) -> str:
    """Where a parameter's value comes from, for who never saw the log's words."""
    return "given, origin not stated" if word == "unstated" else str(word)


def _written_by(run: RunReport) -> str:
    version = run.header.get("version")
    program = printable(f"admitperf {version}, ") if version else ""
    processes = plural(len(run.ids), "process", "processes")
    ids = ", ".join(map(printable, run.ids[:4])) + (", ..." if run.ids[4:] else "")
    return f"{program}{processes}, run id {ids}"


# ------------------------------------------------------------------------- load


def load(run: RunReport) -> Iterator[tuple[str, str]]:
    """The load it faced."""
    faced = run.load
    yield "offered", _offered(run)
    if run.warmup is not None:
        left = share(run.warmup.left_out, run.warmup.left_out + run.warmup.kept)
        asked = printable(run.warmup.asked)
        yield "warm-up", f"{left} attempts left out of every number ({asked})"
    for name, sizes in (
        ("input tokens", faced.input_tokens),
        ("output asked", faced.max_output_tokens),
    ):
        if sizes.n:
            yield name, spread(sizes, "tokens")
    if faced.late is not None:
        late = share(faced.late.n, faced.late.of)
        yield "sent late", f"{late} over 10 ms; {_lag(faced.late_ms)}"
    if faced.plan:
        yield "plan", printable(faced.plan)


def _lag(late_ms: Spread) -> str:
    return f"lag {spread(late_ms, 'ms')}"


def _offered(run: RunReport) -> str:
    if run.basis == "samples":
        return "nothing: no request stood behind a sample"
    said = plural(run.answers.offered, "attempt")
    requests = run.cost.requests
    if requests is not None:
        said += f" of {plural(requests.offered, 'call')}"
        if requests.without_id:
            said += f" ({requests.without_id} without a logical id)"
    if run.span_s:
        said += f" in {number(run.span_s)} s ({_rate(run)})"
    if requests is None and run.answers.offered:
        said += "; no logical ids, so retries cannot be told from calls"
    return said


def _rate(run: RunReport) -> str:
    what = "attempts" if run.load.calls is None else "calls"
    return f"{number(run.load.rate_per_s)} {what}/s"
