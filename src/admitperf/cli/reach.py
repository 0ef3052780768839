"""`admitperf reach`."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from admitperf.cli.asking import token_options
from admitperf.cli.layout import row, wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.wording import number, plural, printable
from admitperf.scrape.limits import TIMEOUT_S

if TYPE_CHECKING:
    from admitperf.lab.reach import Reach, Shape
    from admitperf.lab.sizes import Sizes

    _Large = tuple[Reach, int | None]  # and the slots that must hold one

SCHEMA = 1
_COLUMN = 22
_NEEDED = {
    "kv_tokens": "--kv-tokens",
    "max_num_seqs": "--max-num-seqs",
    "tokens_per_request": "--tokens-per-request",
}
_NAMES = {
    "kv_tokens": "KV memory",
    "block_tokens": "block",
    "max_num_seqs": "slots",
    "tokens_per_request": "request",
    "tokens_p95": "large request",
}
_UNITS = {"max_num_seqs": "requests"}
_SIMULATED = "SIMULATED: the numbers come from a simulated engine, not from hardware."
_OPTION = "option"
_OBSERVED = "the most that ran"


@click.command()
@click.argument("source", metavar="[URL|PAGE|LOG]", required=False)
@click.option("--kv-tokens", type=int, help="Tokens the KV memory of one engine holds.")
@click.option("--max-num-seqs", type=int, help="Requests one engine runs at once.")
@click.option(
    "--tokens-per-request", type=float, help="Input and output of a request, mean."
)
@click.option("--tokens-p95", type=float, help="The same of a large one.")
@click.option("--block-tokens", type=int, help="Tokens in a block of KV memory.")
@click.option(
    "--threshold",
    type=float,
    default=0.9,
    show_default=True,
    help="KV pressure asked about, as a fraction.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@token_options
def command(
    source: str | None,
    *,
    threshold: float,
    as_json: bool,
    token_env: str | None,
    token_file: str | None,
    **given: float | None,
) -> None:
    """Say how high KV pressure can get at all.

    An engine runs at most --max-num-seqs requests at once. If all of them together
    need less KV memory than there is, slots bind first, and a threshold above the
    fraction they fill is never reached, at any arrival rate.

    The numbers come from the options; what they leave open comes from an engine's
    page (a URL or a saved PAGE) or from a LOG: the memory from what the engine says of
    itself, the size of a request from those it served. Engines do not say how many
    requests they run at once, so a LOG gives the most that ran, and no claim is made
    when the KV pressure in it was at or above what its sizes add up to.
    """
    from admitperf.lab.reach import Shape, reach

    try:
        known = _known(source, given, (token_env, token_file))
        simulated = known.pop("simulated", None) is not None
        shape = Shape(
            kv_tokens=int(known["kv_tokens"].value),
            max_num_seqs=int(known["max_num_seqs"].value),
            tokens_per_request=known["tokens_per_request"].value,
            threshold=threshold,
            block_tokens=int(known["block_tokens"].value)
            if "block_tokens" in known
            else 1,
        )
        found = reach(shape)
        large = _large(shape, known)
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    if as_json:
        made = _document(source, known, shape, found, large)
        told = {**made, "simulated": simulated}
        click.echo(json.dumps(told, indent=2, allow_nan=False))
        return
    if simulated:
        click.echo(f"{_SIMULATED}\n")
    for line in _text(known, shape, found, large):
        click.echo(line)


def _known(
    source: str | None,
    given: dict[str, float | None],
    where: tuple[str | None, str | None],
) -> "Sizes":
    """Every number that is known, and who says it; options come first."""
    from admitperf.lab.fault import LabError
    from admitperf.lab.sizes import Known

    known = _read(source, where) if source is not None else {}
    for name, value in given.items():
        if value is not None:
            known[name] = Known(value, _OPTION)
    if "max_num_seqs" not in known and known.get("running", Known(0, "")).value:
        known["max_num_seqs"] = Known(known["running"].value, _OBSERVED)
    missing = [option for name, option in _NEEDED.items() if name not in known]
    if missing:
        where_from = "and no URL, PAGE or LOG to take it from"
        if source is not None:
            where_from = f"and {source} does not say"
        raise LabError(f"give {' and '.join(missing)}: not known, {where_from}")
    return known


def _read(source: str, where: tuple[str | None, str | None]) -> "Sizes":
    from admitperf.lab.fault import LabError
    from admitperf.lab.sizes import from_log, from_page, is_log
    from admitperf.scrape.target import File, target_of
    from admitperf.scrape.token import read_token

    target = target_of(source, read_token(*where), TIMEOUT_S)
    if isinstance(target, File) and source not in ("", "-"):
        try:
            if is_log(source):
                return from_log(source)
        except (OSError, ValueError, EOFError) as error:
            why = (getattr(error, "strerror", None) or "not a path").lower()
            raise LabError(f"{source}: {why}") from None
    return from_page(target.read().page)


def _large(shape: "Shape", known: "Sizes") -> "_Large | None":
    from dataclasses import replace

    from admitperf.lab.reach import large_slots, reach

    if "tokens_p95" not in known:
        return None
    tokens = known["tokens_p95"].value
    found = reach(replace(shape, tokens_per_request=tokens))
    return found, large_slots(shape, tokens)


def _describes(known: "Sizes", found: "Reach") -> bool | None:
    """Whether the log stays below the ceiling; None = no KV pressure was seen."""
    if "kv_pressure" not in known:
        return None
    seen = known["kv_pressure"].value
    return found.reachable_fraction >= 1 or seen < found.reachable_fraction


def _document(
    source: str | None,
    known: "Sizes",
    shape: "Shape",
    found: "Reach",
    large: "_Large | None",
) -> dict[str, Any]:
    describes = _describes(known, found)
    no_claim = {"reaches": None} if describes is False else {}
    told = None
    if large is not None:
        told = {**large[0].to_dict(), "slots": large[1], **no_claim}
    return {
        "schema": SCHEMA,
        "source": source,
        "inputs": {
            name: {"value": one.value, "origin": one.origin}
            for name, one in known.items()
        },
        "threshold": shape.threshold,
        **found.to_dict(),
        **no_claim,
        "describes_log": describes,
        "large": told,
    }


def _text(
    known: "Sizes", shape: "Shape", found: "Reach", large: "_Large | None"
) -> Iterator[str]:
    for name, title in _NAMES.items():
        if name in known:
            one = known[name]
            told = f"{number(one.value)} {_UNITS.get(name, 'tokens')}"
            told += "" if one.origin == _OPTION else f" ({one.origin})"
            yield from row(title, told, 0, _COLUMN)
    yield from row("threshold", number(shape.threshold), 0, _COLUMN)
    yield ""
    if _describes(known, found) is False:
        yield from _not_described(known, shape, found)
        return
    yield from row("largest reachable", _reachable(shape, found), 0, _COLUMN)
    yield from row("binds first", _binds(shape, found), 0, _COLUMN)
    yield from row(f"to reach {number(shape.threshold)}", _smallest(found), 0, _COLUMN)
    if large is not None:
        told = f"{large[0].reachable_fraction:.3f}, were every request a large one"
        yield from row("large requests", told, 0, _COLUMN)
    yield from _seen(known)
    yield ""
    yield from wrapped(_verdict(known, shape, found, large))


def _not_described(known: "Sizes", shape: "Shape", found: "Reach") -> Iterator[str]:
    """A log that was at or above the ceiling refutes it: nothing is claimed."""
    yield from row("sizes add up to", _reachable(shape, found), 0, _COLUMN)
    yield from _seen(known)
    yield ""
    more = ""
    if known["max_num_seqs"].origin == _OBSERVED:
        more = f", or more than {shape.max_num_seqs} may run at once"
    yield from wrapped(
        "KV pressure was seen at or above what these sizes add up to, so the"
        " arithmetic does not describe this log, and nothing is claimed about a"
        f" threshold of {number(shape.threshold)}. Sizes are mixed, or others than the"
        f" requests in the log held memory{more}."
    )


def _reachable(shape: "Shape", found: "Reach") -> str:
    held = f"{found.held_tokens} of {shape.kv_tokens} tokens"
    return f"{found.reachable_fraction:.3f} ({held})"


def _seen(known: "Sizes") -> Iterator[str]:
    if "kv_pressure" in known:
        told = f"{number(known['kv_pressure'].value)} ({known['kv_pressure'].origin})"
        yield from row("KV pressure seen", told, 0, _COLUMN)


def _binds(shape: "Shape", found: "Reach") -> str:
    fit = (
        f"{plural(found.fits, 'such request')} would fit, {shape.max_num_seqs} may run"
    )
    if found.binds == "both":
        return f"slots and KV memory, at the same request: {fit}"
    return f"{'slots' if found.binds == 'slots' else 'KV memory'}: {fit}"


def _smallest(found: "Reach") -> str:
    if found.smallest_tokens is None:
        return "no request does: whole blocks leave a rest"
    return f"requests of {found.smallest_tokens} tokens, in all slots"


def _verdict(
    known: "Sizes", shape: "Shape", found: "Reach", large: "_Large | None"
) -> str:
    bound = f"A threshold of {number(shape.threshold)}"
    if found.reaches:
        return (
            f"{bound} can be reached: when that many run at once and each is near its"
            " end. What requests share in a prefix cache counts once and lowers it."
        )
    observed = known["max_num_seqs"].origin == _OBSERVED
    unless = f"unless the engine may run more than {shape.max_num_seqs} at once"
    if large is not None and large[1] is not None:
        said = (
            f"{bound} is reached only when at least {large[1]} of the"
            f" {plural(shape.max_num_seqs, 'slot')} hold a large request at once"
        )
        return f"{said}, {unless}." if observed else f"{said}."
    when = unless if observed else "at any arrival rate"
    return (
        f"{bound} cannot be reached by such requests, {when}: more of them"
        " wait in the queue, which is the signal to bound. Longer requests, more slots"
        " or less memory change that."
    )
