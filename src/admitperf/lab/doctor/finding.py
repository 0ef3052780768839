"""What a check found: its level, what to do about it, and where to read on."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["problem", "warning", "ok", "not asked"]
LEVELS: tuple[Level, ...] = ("problem", "warning", "ok", "not asked")
"""In the order in which they are shown."""

_SIGNALS = "docs/reference/signals.md"
_GATEWAY = "docs/reference/gateway.md"
_LOG = "docs/reference/log.md"
_DOCTOR = "docs/reference/doctor.md"

LINKS = {
    "engine.reachable": f"{_DOCTOR}#the-engine",
    "engine.token": "docs/reference/cli.md#the-token",
    "engine.page": f"{_SIGNALS}#what-each-engine-offers",
    "engine.known": "docs/how-to/metrics.md#1-see-what-is-missing",
    "engine.whole": "docs/reference/cli.md#what-counts-as-read",
    "engine.signals": f"{_SIGNALS}#what-each-engine-offers",
    "engine.names": "docs/how-to/metrics.md#2-map-it-with-its-scale",
    "engine.percent": "docs/how-to/metrics.md#2-map-it-with-its-scale",
    "engine.labels": f"{_SIGNALS}#combination",
    "engine.one": "docs/how-to/run-the-gateway.md#more-than-one-engine",
    "engine.fresh": f"{_SIGNALS}#freshness",
    "engine.moving": f"{_SIGNALS}#freshness",
    "engine.speed": f"{_SIGNALS}#freshness",
    "engine.clock": f"{_LOG}#what-every-line-has",
    "gateway.reachable": f"{_DOCTOR}#the-gateway",
    "gateway.itself": f"{_GATEWAY}#paths",
    "gateway.ready": f"{_GATEWAY}#start-and-end",
    "gateway.clock": f"{_LOG}#what-every-line-has",
    "gateway.state": f"{_GATEWAY}#paths",
    "gateway.policy": "docs/how-to/choose-a-policy.md",
    "gateway.shadow": "docs/how-to/shadow-and-split.md#3-go-live-and-keep-the-way-back",
    "gateway.replicas": f"{_GATEWAY}#start-and-end",
    "gateway.fresh": f"{_SIGNALS}#freshness",
    "gateway.blind": "docs/reference/host.md#when-it-cannot-see",
    "gateway.lossless": f"{_LOG}#loss",
    "gateway.leases": f"{_GATEWAY}#metrics",
    "gateway.alone": f"{_GATEWAY}#one-process",
    "gateway.bodies": "docs/reference/conventions.md#the-table",
    "gateway.reach": "docs/reference/reach.md#the-arithmetic",
    "probe.sent": f"{_DOCTOR}#the-probe",
    "probe.answer": f"{_DOCTOR}#the-probe",
    "probe.headers-back": "docs/reference/security.md#callers-that-leave",
    "probe.headers-in": "docs/reference/conventions.md#the-table",
    "probe.encoding": f"{_GATEWAY}#what-is-passed-on",
    "probe.events": f"{_GATEWAY}#what-is-passed-on",
    "probe.refusal": "docs/reference/reasons.md#what-a-refusal-says",
    "log.file": f"{_LOG}#files",
    "log.readable": f"{_LOG}#files",
    "log.writable": f"{_LOG}#files",
    "log.disk": f"{_LOG}#files",
    "log.permissions": "docs/reference/security.md#what-is-never-written",
    "log.lines": f"{_LOG}#files",
    "log.lossless": f"{_LOG}#loss",
    "log.header": f"{_LOG}#what-the-log-cannot-know-by-itself",
    "log.fired": "docs/reference/report.md#the-top",
    "log.blind": "docs/reference/host.md#when-it-cannot-see",
    "log.outcomes": "docs/reference/host.md#asking",
    "log.clock": f"{_LOG}#what-every-line-has",
    "log.age": f"{_LOG}#files",
    "log.gateway": "docs/how-to/run-the-gateway.md#4-watch-it",
    "log.retries": "docs/reference/reasons.md#how-the-wait-is-computed",
    "log.waits": "docs/reference/reasons.md#how-the-wait-is-computed",
    "log.attempts": "docs/reference/conventions.md#which-call-it-is",
    "log.calls": "docs/reference/conventions.md#which-call-it-is",
    "log.sessions": "docs/reference/conventions.md#the-table",
    "log.mixed": "docs/reference/host.md#identity",
    "log.notices": "docs/reference/report.md#the-sections",
}
"""Each check, and the page that says more about it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name, such as "engine.percent"; the part before the dot is what it
            is about.
        level: "problem" = set up wrong; "warning" = look at it; "ok"; "not asked" =
            could not be said, and `says` says why.
        says: what was seen, with the numbers.
        fix: what to do about it; empty for what is fine.
        link: page and heading that say more.
    """

    check: str
    level: Level
    says: str
    fix: str
    link: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def problem(check: str, says: str, fix: str) -> Finding:
    """Something is set up wrong."""
    return Finding(check, "problem", says, fix, LINKS[check])


def warning(check: str, says: str, fix: str) -> Finding:
    """Something to look at, which may be meant so."""
    return Finding(check, "warning", says, fix, LINKS[check])


def fine(check: str, says: str) -> Finding:
    """All is well."""
    return Finding(check, "ok", says, "", LINKS[check])


def not_asked(check: str, why: str, fix: str = "") -> Finding:
    """It could not be said, and why not."""
    return Finding(check, "not asked", why, fix, LINKS[check])
