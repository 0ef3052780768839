"""Turns what happened into log lines. Written for speed: one f-string a decision."""

import os
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii as quoted

from admitperf.core.clock import Clock
from admitperf.core.decision import Decision
from admitperf.core.notice import in_words, say
from admitperf.core.outcome import Outcome
from admitperf.core.record import dumps, raw_texts, sources_text
from admitperf.core.request import bounded
from admitperf.core.settings import Settings
from admitperf.core.sink import Sink
from admitperf.core.snapshot import Snapshot
from admitperf.core.view import View

INLINE_MOST = 32
"""Raw metrics that stand on the decision line itself. Origin: brief, section 8."""

_PLAIN_YES = (
    '"verdict":"admit","reason":null,"admitted":true,"enforced":true,"status":200,'
)

Header = Callable[[str, int, int], Mapping[str, object]]


class Journal:
    """Writes one policy's run.

    Args:
        header: (run, t_us, wall_us) -> the run line as a mapping.
    """

    def __init__(self, policy: str, settings: Settings, header: Header) -> None:
        self._clock: Clock = settings.clock
        self._raw_mode = settings.raw
        self._header = header
        self._heads: dict[tuple[str, str | None, bool, bool], str] = {}
        self.run = new_run()
        now_ns = self._clock.monotonic_ns()
        self._epoch_us = (self._clock.wall_ns() - now_ns) // 1000
        self.sink = self._open(settings.path(policy), settings)

    def _open(self, log: object, settings: Settings) -> Sink | None:
        if log is None or isinstance(log, Sink):
            return log
        # Only with a log: it brings threads and paths, a third of the import time.
        from admitperf.core.log import Log  # noqa: PLC0415

        return Log(
            os.fspath(log),  # type: ignore[call-overload]
            header=self.header_text,
            run=self.run,
            epoch_us=self._epoch_us,
            max_mb=settings.log_max_mb,
            keep=settings.log_keep,
            clock=self._clock,
        )

    def header_text(self, t_us: int, wall_us: int) -> str:
        """The run line."""
        return dumps(self._header(self.run, t_us, wall_us))

    def after_fork(self) -> None:
        """A forked child is a run of its own."""
        self.run = new_run()
        if self.sink is not None:
            try:
                self.sink.after_fork(self.run)
            except Exception as error:  # noqa: BLE001  the child must start all the same
                say(f"log cannot follow a fork: {in_words(error)}")

    def decision(
        self,
        d: Decision,
        key: str,
        snapshot: Snapshot,
        derived: str,
        now_ns: int,
        took_ns: int,
    ) -> None:
        """Writes a decision.

        Args:
            key: its request id, safe to write.
            snapshot: what it was made on.
            derived: signals that are not the view's, as JSON members.
            now_ns: when it became the answer, which may be later.
            took_ns: how long it took to decide.
        """
        sink = self.sink
        if sink is None:
            return
        seen, request = snapshot.view, snapshot.request
        view = seen.base or seen
        if view.raw_text is None:
            self._place_raw(view)
        age = ""
        if view.timed:
            age_ms = (snapshot.now_ns - view.taken_ns) // 1_000_000
            age = f'"age_ms":{max(0, age_ms)},'
        facts = f'"facts":{{{request.text()}}},' if request.given else ""
        plain = d.reason is None and d.enforced
        head = _PLAIN_YES if plain else self._head(d) + self._refusal(d)
        line = (
            f'{{"k":"decision","run":"{self.run}","seq":{d.seq},'
            f'"t_us":{self._epoch_us + now_ns // 1000},{view.reference}'
            f'"id":{quoted(key)},{head}{d.extra}{seen.told(d.gates, derived)}{facts}'
            f'{view.raw_text}{age}"decide_us":{took_ns // 1000}}}'
        )
        try:
            sink.decision(None if view.inline else view, line)
        except Exception as error:  # noqa: BLE001  a host's sink must not cost a request
            say(f"log refused a decision: {in_words(error)}")

    def outcome(self, o: Outcome, seq: int, now_ns: int, open_ms: int) -> None:
        """Writes an outcome."""
        numbers = (
            ("ttft_ms", o.ttft_ms),
            ("first_text_ms", o.first_text_ms),
            ("max_gap_ms", o.max_gap_ms),
            ("e2e_ms", o.e2e_ms),
            ("output_tokens", o.output_tokens),
            ("cached_tokens", o.cached_tokens),
            ("input_tokens", o.input_tokens),
        )
        words = (("finish_reason", o.finish_reason), ("error", o.error))
        told = "".join(
            f'"{name}":{value!r},' for name, value in numbers if value is not None
        )
        told += "".join(
            f'"{name}":{dumps(text)},' for name, text in words if text is not None
        )
        self._event(
            "outcome",
            seq,
            now_ns,
            f'"of":{o.seq},"id":{quoted(bounded(o.request_id) or "")},'
            f'"ok":{_flag(o.ok)},"admitted":{_flag(o.admitted)},{told}"open_ms":{open_ms}',
        )

    def control(
        self, event: str, details: Mapping[str, object], seq: int, now_ns: int
    ) -> None:
        """Writes a notice about the instrument itself."""
        members = dumps(details)[1:-1]
        self._event(
            "control",
            seq,
            now_ns,
            f'"event":"{event}"' + (f",{members}" if members else ""),
        )

    def _event(self, kind: str, seq: int, now_ns: int, members: str) -> None:
        if self.sink is not None:
            t_us = self._epoch_us + now_ns // 1000
            head = f'"k":"{kind}","run":"{self.run}","seq":{seq},"t_us":{t_us}'
            try:
                self.sink.event(kind, f"{{{head},{members}}}")
            except Exception as error:  # noqa: BLE001  as above
                say(f"log refused a line: {in_words(error)}")

    def _head(self, d: Decision) -> str:
        key = (d.verdict._value_, d.reason, d.admitted, d.enforced)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = (
                f'"verdict":"{d.verdict}","reason":{dumps(d.reason)},"admitted":{_flag(d.admitted)},'
                f'"enforced":{_flag(d.enforced)},"status":{d.status},'
            )
        return head

    def _refusal(self, d: Decision) -> str:
        parts = [
            f'"{name}":{value!r},'
            for name, value in (
                ("retry_after_ms", d.retry_after_ms),
                ("estimate_ms", d.estimate_ms),
            )
            if value is not None
        ]
        if d.wait is not None:
            parts.append(f'"wait":"{d.wait}",')
        if d.blind is not None:
            parts.append(f'"blind":"{d.reason}","why":{dumps(d.blind)},')
        return "".join(parts)

    def _place_raw(self, view: View) -> None:
        """Settles how this reading stands in the log: on the lines, or by reference."""
        few = len(view.reading.raw) <= INLINE_MOST
        view.inline = self._raw_mode == "inline" or (self._raw_mode == "auto" and few)
        replica = view.reading.replica
        view.raw_text = f'"replica":{dumps(replica)},' if replica else ""
        if view.inline:
            texts = raw_texts(view.reading.raw)
            members = ",".join(f"{dumps(key)}:{text}" for key, text in texts.items())
            view.raw_text += f'"raw":{{{members}}},"sources":{sources_text(view)},'
        else:
            view.reference = f'"reading":{view.number},'


def new_run() -> str:
    """A short id, unique for a policy in a process."""
    return os.urandom(5).hex()


def _flag(value: object) -> str:
    return "true" if value else "false"
