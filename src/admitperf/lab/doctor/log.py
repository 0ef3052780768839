"""What is wrong with a log: lost, unreadable, never fired, callers back too early."""

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.errors import AdmitPerfError, LogError, MissingExtra
from admitperf.lab.doctor.clocks import MOST_SKEW_S
from admitperf.lab.doctor.finding import (
    Finding,
    fine,
    not_asked,
    problem,
    warning,
)
from admitperf.reports.report import Report, RunReport, reported
from admitperf.reports.runs.finding import FEWEST_FOR_NEVER, MOST_BLIND
from admitperf.reports.wording import counted, number, plural, share

MOST_BYTES = 2**27
"""Longest part of a log that is read, its end. Plain choice: 128 MiB are half a million
decisions and some seconds."""

LEAST_FREE_BYTES = 2**30
LEAST_FREE_SHARE = 0.05
NO_ROOM_BYTES = 2**26
"""Plain choices: a gateway at 100 requests a second writes 64 MiB in about ten
minutes."""

OLD_S = 3600.0
"""Plain choice: a log that is written now has a decision from the last hour."""

LONGEST_WAIT_MS = 60_000.0
"""Origin: SDKs of OpenAI before 2.52 and of Anthropic wait at most 60 s."""

_PACKED = (".gz", ".zst")
_TAIL = 2**20
_RUN_LINE = re.compile(rb'\n(?=\{"k": ?"run")')
_ANY_LINE = re.compile(rb"\n")
_SESSION_FACT = "session"
_SESSION_POLICIES = ("session_ledger", "session_aimd")
_SESSION_PARAMETER = "max_per_session"

# Plain choice: who is back before nine tenths of the wait did not go by it.
_EARLY = """
WITH tries AS (
    SELECT admitted, gone, retry_after_ms,
        t_us + coalesce(held_ms, 0) * 1000 AS told_us,
        lead(t_us) OVER (PARTITION BY run_n, call ORDER BY t_us, row) AS next_us
    FROM decisions WHERE named)
SELECT count(*),
    count(*) FILTER (next_us - told_us < retry_after_ms * 1000 * 0.9)
FROM tries WHERE NOT admitted AND NOT gone AND retry_after_ms > 0
    AND next_us IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class Read:
    """A log that could be read.

    Attributes:
        report: what `admitperf report` says of it.
        came_back: refused attempts with a wait whose caller tried again.
        early: those of them that did not wait so long.
        whole: whether all of it was read, not its end only.
    """

    report: Report
    came_back: int
    early: int
    whole: bool


def of_file(path: str) -> Iterator[Finding]:
    """What can be said of the file itself, whatever is in it."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or "not a path").lower()
        fix = "give the path that --log or `log:` of the gateway names"
        yield problem("log.file", f"{path}: {why}", fix)
        return
    if not stat.S_ISREG(status.st_mode):
        yield problem("log.file", f"{path}: is no file", "give the log itself")
        return
    yield fine("log.file", f"{path}, {status.st_size / 2**20:.1f} MiB")
    if not os.access(path, os.R_OK):
        fix = "run doctor as the gateway's user"
        yield problem("log.readable", "this user may not read it", fix)
    yield _permissions(path, status)
    yield _writable(path)
    yield _disk(path)


def there(path: str) -> bool:
    """Whether it is a file that may be read."""
    return Path(path).is_file() and os.access(path, os.R_OK)


def short(path: str) -> bool:
    """Whether all of it is read."""
    return Path(path).stat().st_size <= MOST_BYTES


def _permissions(path: str, status: os.stat_result) -> Finding:
    mode = stat.S_IMODE(status.st_mode)
    said = f"mode {mode:03o}"
    fix = f"chmod 600 {path}"
    if mode & stat.S_IWOTH:
        return problem("log.permissions", f"everybody may write to it ({said})", fix)
    if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0) and os.getuid():
        says = f"it belongs to another user (id {status.st_uid}, ours {os.getuid()})"
        owner = "see under which user the gateway runs: it has to own its log"
        return warning("log.permissions", says, owner)
    if mode & (stat.S_IROTH | stat.S_IWGRP):
        says = f"others may read or write it ({said}): it names tenants and sessions"
        return warning("log.permissions", says, fix)
    return fine("log.permissions", said)


def _writable(path: str) -> Finding:
    folder = Path(path).resolve().parent
    if not os.access(path, os.W_OK) or not os.access(folder, os.W_OK):
        says = f"this user may not write to it or to {folder}, so it cannot rotate"
        fix = "run doctor as the gateway's user; if it is, give that user the folder"
        return warning("log.writable", says, fix)
    return fine("log.writable", f"{folder} may be written")


def _disk(path: str) -> Finding:
    try:
        usage = shutil.disk_usage(Path(path).resolve().parent)
    except OSError as error:
        return not_asked("log.disk", (error.strerror or "not known").lower())
    says = f"{usage.free / 2**30:.1f} GiB are free there"
    fix = "make room, or let it rotate: --log-max-mb"
    if usage.free < NO_ROOM_BYTES:
        return problem("log.disk", says, fix)
    if usage.free < min(LEAST_FREE_BYTES, LEAST_FREE_SHARE * usage.total):
        return warning("log.disk", says, fix)
    return fine("log.disk", says)


def read(path: str) -> Read | Finding:
    """Reads the log, or the end of a long one; why not, where that fails."""
    if path.endswith(_PACKED) and not short(path):
        why = f"it is packed, and over {MOST_BYTES / 2**20:.0f} MiB"
        return not_asked("log.readable", why, "`admitperf report` reads all of it")
    try:
        with _recent(path) as (part, whole), reported([part]) as (log, report):
            ((came_back, early),) = log.store.rows(_EARLY)
            return Read(report, came_back, early, whole)
    except MissingExtra as error:
        return not_asked("log.readable", str(error), "install what it names")
    except LogError as error:
        fix = "give the decision log, whole lines of JSON"
        return problem("log.readable", str(error), fix)
    except (AdmitPerfError, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return problem("log.readable", f"{path}: {why}", "see who may read it")


@contextmanager
def _recent(path: str) -> Iterator[tuple[str, bool]]:
    """The log, or a file with its end, from a run line on."""
    size = Path(path).stat().st_size
    if size <= MOST_BYTES:
        yield path, True
        return
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "end.jsonl"
        with Path(path).open("rb") as file:
            file.seek(size - MOST_BYTES)
            text = file.read(MOST_BYTES)
        start = _RUN_LINE.search(text) or _ANY_LINE.search(text)
        part.write_bytes(text[start.end() if start else 0 :])
        yield str(part), False


def findings(
    got: Read, runs: Sequence[str] = (), clock: Clock = SYSTEM
) -> Iterator[Finding]:
    """Every check on what stands in the log.

    Args:
        got: the log.
        runs: ids of the runs that a gateway has now, of those that decided something.
        clock: source of time.
    """
    report = got.report
    run = max(report.runs, key=lambda one: one.when.last_utc or "")
    n = plural(len(report.runs), "run")
    end = "" if got.whole else f"; only the last {MOST_BYTES / 2**20:.0f} MiB were read"
    of = plural(run.answers.offered, "decision")
    yield fine("log.readable", f"{n}, {of} in the newest{end}")
    yield _lines(report)
    yield from _written_by(report, runs)
    yield from _mixed(report)
    yield _lossless(run)
    yield from _header(run)
    yield from _times(run, clock)
    yield _fired(run)
    yield _blind(run)
    yield _outcomes(run)
    yield from _sessions(run)
    yield from _waits(run)
    yield from _retries(got, run)
    yield from _notices(run)


def _lines(report: Report) -> Finding:
    files = report.files
    if files.unusable:
        says = f"{counted(files.unusable)}; first: {files.first[0]}"
        fix = "see whether two programs write to it, or the disk was full"
        return problem("log.lines", f"lines that cannot be used: {says}", fix)
    return fine("log.lines", f"{plural(files.lines, 'line')}, all whole")


def _written_by(report: Report, runs: Sequence[str]) -> Iterator[Finding]:
    """Whether this is the log that the gateway writes."""
    known = {one for run in report.runs for one in run.ids}
    if runs:
        if known.isdisjoint(runs):
            says = f"the gateway's run {', '.join(runs)} is not in it"
            fix = "give the path of the gateway's own --log; it may have rotated"
            yield problem("log.gateway", says, fix)
        else:
            yield fine("log.gateway", "the gateway that was asked writes it")


def _mixed(report: Report) -> Iterator[Finding]:
    names = {str(run.header.get("policy")) for run in report.runs}
    if len(names) > 1:
        says = f"runs of {plural(len(names), 'policy', 'policies')} stand in one log: "
        fix = "give each its own file; `report` keeps them apart, other readers may not"
        yield warning("log.mixed", says + ", ".join(sorted(names)), fix)


def _lossless(run: RunReport) -> Finding:
    lost = run.faults.lost
    if lost:
        why = f" ({counted(run.faults.lost_why)})" if run.faults.lost_why else ""
        says = f"records that could not be written: {counted(lost)}{why}"
        fix = "give it a faster or larger disk; numbers of this log lack them"
        return problem("log.lossless", says, fix)
    return fine("log.lossless", "no record was lost")


def _header(run: RunReport) -> Iterator[Finding]:
    if not run.header:
        says = "no run header: a policy that never fired looks like a baseline"
        fix = "keep the log whole, from its first line: a run line comes every 60 s"
        yield problem("log.header", says, fix)
        return
    enforce = run.header.get("enforce")
    policy = run.header.get("policy")
    blind = run.header.get("on_blind")
    says = f"{policy}, enforce {enforce}, when blind: {blind}"
    yield fine("log.header", says)


def _times(run: RunReport, clock: Clock) -> Iterator[Finding]:
    last = run.when.last_utc
    if last is None:
        return
    age_s = clock.wall_ns() / 1e9 - datetime.fromisoformat(last).timestamp()
    if age_s < -MOST_SKEW_S:
        says = f"its last decision is {-age_s:.0f} s in the future"
        fix = "let the machine that writes it keep time with NTP"
        yield problem("log.clock", says, fix)
    elif age_s > OLD_S:
        says = f"its last decision is {age_s / OLD_S:.1f} h old"
        yield warning("log.age", says, "see that this is the log that is written now")
    else:
        yield fine("log.age", f"its last decision is {max(age_s, 0):.0f} s old")


def _fired(run: RunReport) -> Finding:
    word, says = run.finding.word, " ".join(run.finding.says[:3])
    said = f"{word}: {says}"
    if word == "LIVE":
        return fine("log.fired", said)
    if word == "INERT" and run.answers.decided < FEWEST_FOR_NEVER:
        few = plural(run.answers.decided, "decision")
        return not_asked("log.fired", f"{few} so far: too few to tell from bad luck")
    if word == "INERT":
        fix = "bound a signal that moves: `admitperf advise LOG` names some"
        return problem("log.fired", said, fix)
    if word == "UNKNOWN":
        fix = "see the checks on signals; `admitperf report` says more"
        return problem("log.fired", said, fix)
    fix = {
        "SHADOW": "if it is to govern: --enforce 1",
        "BASELINE": "if it is to refuse, choose a policy",
    }.get(word, "look again when more requests came")
    return warning("log.fired", said, fix)


def _blind(run: RunReport) -> Finding:
    blind, of = run.answers.blind_total, run.answers.decided
    said = f"{share(blind, of)} decisions were made blind"
    if blind > MOST_BLIND * of:
        why = counted(run.answers.blind)
        fix = "see that the engine supplies what the policy reads, and how old it is"
        return problem("log.blind", f"{said}: {why}", fix)
    return fine("log.blind", said)


def _outcomes(run: RunReport) -> Finding:
    let_in, told = run.cost.let_in.n, run.cost.reported.n
    said = f"{share(told, let_in)} requests let in have an outcome"
    if let_in and not told:
        fix = "have the host report how each request ended: policy.outcome(...)"
        return problem("log.outcomes", f"{said}: nothing says what it cost", fix)
    return fine("log.outcomes", said)


def _sessions(run: RunReport) -> Iterator[Finding]:
    """Whether a policy that counts sessions is told of any."""
    policy, params = run.header.get("policy"), run.header.get("params")
    requires = run.header.get("requires") or ()
    counts = isinstance(params, dict) and params.get(_SESSION_PARAMETER) is not None
    needs = policy in _SESSION_POLICIES or _SESSION_FACT in requires or counts
    if not needs or not run.answers.offered:
        return
    n, of = run.facts.get(_SESSION_FACT, 0), run.answers.offered
    if n:
        yield fine("log.sessions", f"{share(n, of)} decisions name a session")
    else:
        says = f"{policy} counts sessions, and no decision of {of} names one"
        fix = "have callers send x-session-id, or map the header they send"
        yield problem("log.sessions", says, fix)


def _waits(run: RunReport) -> Iterator[Finding]:
    """Waits that SDKs do not keep to: none at all, or over a minute."""
    waits = [row.retry_after_ms for row in run.answers.rows if row.retry_after_ms.n]
    if not waits:
        return
    low = min(one.low for one in waits if one.low is not None)
    high = max(one.high for one in waits if one.high is not None)
    said = f"callers were told to wait {number(low / 1e3)} to {number(high / 1e3)} s"
    if high > LONGEST_WAIT_MS or low <= 0:
        says = f"{said}: SDKs do not keep to 0 s, nor to more than 60 s"
        fix = "lower max_defer_s; beyond a minute refuse with x-should-retry: false"
        yield problem("log.waits", says, fix)
    else:
        yield fine("log.waits", said)


def _retries(got: Read, run: RunReport) -> Iterator[Finding]:
    """How callers came back: when, and with which numbers."""
    if got.early:
        said = share(got.early, got.came_back)
        says = f"{said} retries came before the wait they were told was over"
        fix = (
            "see whether Retry-After reaches them and whether their SDK keeps to it;"
            " `max_retries` of the SDK, or holding (--defer hold), stops the storm"
        )
        yield problem("log.retries", says, fix)
    elif got.came_back:
        n = plural(got.came_back, "retry", "retries")
        yield fine("log.retries", f"{n}, none before its time")
    calls = run.cost.requests
    if calls is None:
        if run.answers.turned_away:
            says = "no decision names its call, so retries cannot be told from calls"
            fix = "have the host give logical_id; the gateway does so by itself"
            yield warning("log.calls", says, fix)
        return
    again = calls.attempts - calls.offered
    tries = next((one for one in run.signals if one.name == "attempt"), None)
    if again > 0 and (tries is None or not tries.spread.high):
        says = f"{again} attempts are repeats, and none has a number above 0"
        fix = "let x-stainless-retry-count through, or count attempts at the host"
        yield warning("log.attempts", says, fix)


def _notices(run: RunReport) -> Iterator[Finding]:
    for notice in run.notices:
        yield warning("log.notices", notice, "see `admitperf report`")


def names(path: str, word: str) -> bool:
    """Whether a word stands near the end of a log."""
    return any(word.encode() in line for line in _end(path))


def line_of(path: str, request_id: str) -> Mapping[str, Any] | None:
    """The decision on a request, near the end of a log; None = not there."""
    for text in reversed(_end(path)):
        if request_id.encode() in text and b'"decision"' in text:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and line.get("k") == "decision":
                return line
    return None


def _end(path: str) -> list[bytes]:
    """The last lines of a file; none where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            return file.read().split(b"\n")
    except OSError:
        return []
