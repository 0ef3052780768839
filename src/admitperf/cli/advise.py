"""`admitperf advise`."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from admitperf.cli.log_options import MEMORY_LIMIT, SLO, WARMUP
from admitperf.cli.reading import UnreadableInput, end_unread, say_when_waiting
from admitperf.core.errors import AdmitPerfError, ConfigError, LogError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import plural, printable

if TYPE_CHECKING:
    from admitperf.lab.advice.advice import Advice, RunAdvice, Tried
    from admitperf.lab.advice.candidates import Candidate
    from admitperf.lab.advice.shape import Shape
    from admitperf.reports.runs.log import Files

_ORDER = "The order is a starting point: how each fared is in docs/results/policies.md."

_UNFITTED = (
    "Not fitted: every bound here is a default, tried as it is. How far the signals"
    " went in this log is said above; a bound of your own belongs inside that range."
)


_DEEP = 18
"""Where what is said of one policy begins."""


class _Options(TypedDict):
    """The options as click hands them over."""

    as_json: bool
    slo: Slo | None
    warmup: str | None
    memory_limit: str | None


@click.command()
@click.argument("logs", metavar="LOG|DIR...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@SLO
@WARMUP
@MEMORY_LIMIT
def command(logs: tuple[str, ...], **options: Unpack[_Options]) -> None:
    """Say which shape of policy follows from a log, and which would be INERT.

    Asks each run seven questions: was there overload, what do requests say of
    themselves, does KV memory fill, does a queue form, what does it wait for, is it
    one tenant or sessions, and does the log's own policy act. Each answer has the
    facts behind it; where a log does not hold them it says so. From the answers
    follows a shape (unit, signal, rule, action) and the policies that have it.

    Each policy is tried at its defaults on the signals of the log, and those that
    could not have fired are named. No bound is fitted.

    A LOG may be packed (.gz, .zst); - is standard input. Exit code 2 when a LOG could
    not be read; the others are advised on all the same.
    """
    from admitperf.lab.advice.advice import advise

    say_when_waiting(logs)
    limits = {"warmup": options["warmup"], "memory_limit": options["memory_limit"]}
    try:
        made = advise(logs, options["slo"], **limits)
    except LogError as error:
        end_unread(error.args)
        return
    except ConfigError as error:
        raise click.UsageError(printable(str(error))) from None
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    if options["as_json"]:
        click.echo(json.dumps(made.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(_text(made)))
    end_unread(made.files.unread)


def _text(made: "Advice") -> Iterator[str]:
    for run in made.runs:
        yield from _run(run)
        yield ""
    yield from _files(made.files)


def _run(run: "RunAdvice") -> Iterator[str]:
    yield from _headline(run)
    yield ""
    yield from _questions(run)
    yield ""
    yield from _follows(run)
    yield ""
    yield from _others(run)


# --------------------------------------------------------------------- headline


def _headline(run: "RunAdvice") -> Iterator[str]:
    from admitperf.reports.pages import stated
    from admitperf.reports.pages.headline import stamps
    from admitperf.reports.pages.layout import WIDTH, row, wrapped

    seen = run.seen
    policy = printable(str(seen.run.header.get("policy") or "an unnamed policy"))
    title = f"Advice on the run of {policy}"
    yield from wrapped(title, indent="")
    yield "=" * min(len(title), WIDTH)
    yield from row("follows", _shapes(run))
    if run.inert:
        names = ", ".join(one.policy for one in run.inert)
        yield from row("INERT", f"at their defaults here: {names}")
    simulated, oracle = stated.simulated(seen.run), stated.oracle(seen.run)
    if run.kept_low:
        names = ", ".join(one.policy for one in run.kept_low)
        yield from row(
            "not fired", f"on signals kept low by this log's policy: {names}"
        )
    for name, value in stamps(simulated=simulated, oracle=oracle):
        yield from row(name, value)
    for notice in seen.run.notices:
        yield from row("notice", printable(notice))
    for other in run.also:
        yield from row("also judged", printable(f"{other.policy}: {other.says}"))
    what = "sample" if seen.samples else "decision"
    when = f", {seen.run.when.text}" if seen.run.when.text else ""
    yield from row("read", f"{plural(seen.offered, what)}{when}")


def _shapes(run: "RunAdvice") -> str:
    if run.why_none is not None:
        return _nothing(run)
    names = ", ".join(shape.name for shape in run.shapes)
    first = run.shapes[0].candidates[0].name
    own = any(one.policy == first for one in (*run.inert, *run.kept_low))
    bound = ", with a bound of your own" if own else ""
    return f"{names}; try first: {first}{bound}"


def _nothing(run: "RunAdvice") -> str:
    """Why nothing follows; where the log's own policy is the trouble, that alone."""
    said = printable(run.why_none or "")
    return said if run.seen.too_tight else f"nothing. {said}"


# -------------------------------------------------------------------- questions


def _questions(run: "RunAdvice") -> Iterator[str]:
    from admitperf.reports.pages.layout import wrapped

    yield "The questions"
    for number, one in enumerate(run.questions, 1):
        yield from wrapped(f"{number} {one.asks} {one.answer}", hang="    ")
        for sentence in one.says:
            yield from wrapped(sentence, indent="      ", hang="        ")


# ---------------------------------------------------------------------- follows


def _follows(run: "RunAdvice") -> Iterator[str]:
    from admitperf.reports.pages.layout import wrapped

    yield "What follows"
    if run.why_none is not None:
        yield from wrapped(run.why_none)
    told: set[str] = set()
    for shape in run.shapes:
        yield from _shape(shape)
        for candidate in shape.candidates:
            yield from _candidate(candidate)
            if candidate.name not in told:
                yield from _tried(run.policy(candidate.name))
            told.add(candidate.name)
    if run.shapes:
        yield from wrapped(_ORDER)
    yield from wrapped(_UNFITTED)


def _shape(shape: "Shape") -> Iterator[str]:
    from admitperf.reports.pages.layout import row, wrapped

    yield from wrapped(f"{shape.name}: {shape.why}")
    for name in ("unit", "signal", "rule", "action"):
        yield from row(f"  {name}", getattr(shape, name))


def _candidate(candidate: "Candidate") -> Iterator[str]:
    from admitperf.reports.pages.layout import wrapped

    yield from wrapped(f"- {candidate.name} {candidate.why}", "    ", "      ")


def _tried(tried: "Tried") -> Iterator[str]:
    from admitperf.lab.advice import said
    from admitperf.reports.pages.layout import row

    if tried.needs:
        yield from row("      needs", said.needs(tried), _DEEP)
    if tried.defaults:
        yield from row("      defaults", said.defaults(tried), _DEEP)
    yield from row("      here", said.verdict(tried), _DEEP)


# ----------------------------------------------------------------------- others


def _others(run: "RunAdvice") -> Iterator[str]:
    """What is commonly tried and does not follow."""
    from admitperf.reports.pages.layout import wrapped

    follow = {one.name for shape in run.shapes for one in shape.candidates}
    yield "Commonly tried, and not what follows"
    for tried in run.tried:
        if tried.policy not in follow:
            yield from wrapped(tried.policy, indent="    ")
            yield from _tried(tried)
    if run.seen.kept_away:
        yield from wrapped(
            f"The log's own policy or host turned {run.seen.kept_away} away: without"
            " that, signals may have gone higher than they did here."
        )


# ------------------------------------------------------------------------ files


def _files(files: "Files") -> Iterator[str]:
    from admitperf.reports.pages.layout import row

    yield "Files"
    for path in files.paths:
        yield from row("read", printable(path))
    unusable = sum(files.unusable.values())
    yield from row("lines", f"{files.lines} read, {unusable} could not be used")
    for first in files.first:
        yield from row("at", printable(first))
    for notice in files.notices:
        yield from row("notice", printable(notice))
