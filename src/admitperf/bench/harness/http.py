"""Any engine behind HTTP as the target of a benchmark, in wall time.

The policy runs in this process and sees the engine as in production, by looking at its
metrics page now and then; requests are streamed completions of token ids.
"""

import asyncio
import gc
import json
import math
import os
import platform
import resource
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from statistics import median
from typing import Any

from admitperf.bench.harness.http_looks import Looks
from admitperf.bench.harness.http_prompts import Prompts
from admitperf.bench.harness.http_run import Asking, WallDriven, driven
from admitperf.bench.harness.target import Arm
from admitperf.core.background import Background
from admitperf.core.clock import SYSTEM
from admitperf.core.errors import AdmitPerfError
from admitperf.core.notes import Note
from admitperf.core.notice import hushed
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.signals import QUEUE_DEPTH, RUNNING
from admitperf.engines.catalogue import ENGINES, engine_of
from admitperf.policies import load
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.fetch import fetch
from admitperf.scrape.simulated import simulated_by
from admitperf.scrape.target import Endpoint
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.traffic import Answer, Traffic

SCRAPE_INTERVAL_S = 0.25
"""Between two looks at the engine, as `admitperf sim run`'s."""

QUIET_S = 60.0
"""Longest wait for an engine to have nothing to do before and after a run. Plain
choice: an engine that is done with its callers is so within seconds."""

VOCABULARY = (5, 400)
"""Token ids of prompts, from and up to: every model has these, and the first few are
special ones."""

_PROBES = 8
_PROBE_TOKENS = (128, 16)
_LOOK_S = 0.25
_MOST_FILES = 65_536


class HttpTarget:
    """An engine behind an address.

    Args:
        url: of its API, with or without `/v1`.
        metrics_url: of its page, or of one page for each replica; None = `/metrics`
            under `url`.
        model: the name it is asked for; None = the first it serves.
        scrape_interval_s: seconds between two looks.
        token: sent as a bearer token with requests and looks; None = none.
        vocabulary: ids prompts are made of, from and up to.
        hardware: what it runs on, in words; None = this machine for an engine on it,
            otherwise not known.
        quiet_s: longest wait for it to have nothing to do.

    Attributes:
        simulated: whether its page says that it is simulated.

    Raises:
        AdmitPerfError: it cannot be reached, or says nothing that could be read.
    """

    def __init__(  # noqa: PLR0913  all but the first by keyword
        self,
        url: str,
        metrics_url: str | Sequence[str] | None = None,
        *,
        model: str | None = None,
        scrape_interval_s: float = SCRAPE_INTERVAL_S,
        token: str | None = None,
        vocabulary: tuple[int, int] = VOCABULARY,
        hardware: str | None = None,
        quiet_s: float = QUIET_S,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        pages = [metrics_url] if isinstance(metrics_url, str) else metrics_url
        self._pages = list(pages or [f"{self.url}/metrics"])
        self._interval_s = scrape_interval_s
        self._token = token
        self._vocabulary = vocabulary
        self._hardware = hardware
        self._quiet_s = quiet_s
        page = self.reading().raw
        self._engine = engine_of(page)
        self.simulated = simulated_by(_floats(page)) is not None
        self._served = _first(self._asked("/v1/models").get("data"))
        self._model = model or str(self._served.get("id") or "default")
        self._notes = self._described()

    # ------------------------------------------------------------- what it is

    def notes(self) -> dict[str, Note]:
        """What it is, as far as it says so."""
        return dict(self._notes)

    def _described(self) -> dict[str, Note]:
        titles = [one.title for one in ENGINES if one.name == self._engine]
        version = self._version()
        hardware = self._hardware or (_this_machine() if self._is_here() else None)
        return {
            **({"simulated": True} if self.simulated else {}),
            "model": self._model,
            **({"hardware": hardware} if hardware else {}),
            "engine": titles[0] if titles else "not known",
            **({"engine_version": version} if version else {}),
            "replicas": len(self._pages),
            "scrape_interval_s": self._interval_s,
            "ignore_eos": True,
            "transport": "HTTP, streamed /v1/completions, a connection for each",
        }

    def reading(self) -> Reading:
        """One look at it.

        Raises:
            AdmitPerfError: it cannot be read.
        """
        return Looks(self._endpoints(self.url), self._interval_s).first()

    def longest_tokens(self) -> int | None:
        """Most tokens of a prompt and its answer; None = the engine does not say."""
        told = self._served.get("max_model_len")
        if told is None:  # llama.cpp: the share of one slot
            slot = self._asked("/props").get("default_generation_settings")
            told = slot.get("n_ctx") if isinstance(slot, dict) else None
        return told if isinstance(told, int) else None

    # ---------------------------------------------------------------- driving

    def drive(  # noqa: PLR0913  as the protocol
        self,
        arm: Arm,
        log: Path | None,
        traffic: Traffic,
        *,
        seed: int,
        notes: Mapping[str, Note],
        slo: Mapping[str, object] | None,
        run: str,
        experiment: str,
        until_s: float,
    ) -> WallDriven:
        """Drives traffic through an arm's policy, once the engine has nothing to do.

        Raises:
            AdmitPerfError: the policy cannot be had so, the log cannot be written, or
                the engine cannot be reached.
        """
        del seed  # the wall clock has no chance of its own
        url = (arm.url or self.url).rstrip("/").removesuffix("/v1")
        reserved: dict[str, Any] = {
            "notes": dict(notes),
            "raw": "reference",
            "reports_outcomes": True,
            "slo": slo or None,
            "provenance": dict(arm.provenance),
        }
        if log is not None:
            reserved |= {"log": log, "experiment": experiment, "run": run}
        looks = Looks(self._endpoints(url), self._interval_s)
        reserved["sources"] = looks.sources
        made: type[Policy] = load(arm.policy)
        with (
            _punctual() as realtime,
            hushed(),
            made(**reserved, **arm.parameters) as policy,
        ):
            driven = self._driven(policy, url, looks, traffic, until_s)
        return replace(driven, facts={"realtime": realtime, **driven.facts})

    def _driven(
        self, policy: Policy, url: str, looks: Looks, traffic: Traffic, until_s: float
    ) -> WallDriven:
        _allow_connections()
        beside = Background(policy)

        def on_new(reading: Reading) -> None:
            policy.look(reading)
            beside.soon()

        looks.on_new = on_new
        before = self._is_quiet(url)
        salt = f"{SYSTEM.wall_ns()}"  # nothing that an earlier run asked is asked again
        looks.first()
        looks.start()
        try:
            asking = self._asking(url, salt)
            made = asyncio.run(driven(policy, traffic, asking, looks, until_s))
        finally:
            looks.stop()
        told = {"quiet_before": before, "quiet_after": self._is_quiet(url)}
        return replace(made, facts={"url": url, "salt": salt, **told, **made.facts})

    def _asking(self, url: str, salt: str) -> Asking:
        token = {"authorization": f"Bearer {self._token}"} if self._token else {}
        return Asking(
            url=f"{url}/v1/completions",
            model=self._model,
            headers={"content-type": "application/json", **token},
            prompts=Prompts(salt, self._vocabulary),
            longest=self.longest_tokens(),
        )

    def probe(self) -> float | None:
        """Median of how long a few small requests take, one after the other, in ms.

        None = none of them was answered.
        """
        probes = _Probes()
        arm = Arm(name="probe", policy="no_admission")
        self.drive(
            arm,
            None,
            probes,
            seed=0,
            notes={},
            slo=None,
            run="probe",
            experiment="probe",
            until_s=self._quiet_s,
        )
        return round(median(probes.took_ms), 3) if probes.took_ms else None

    # ---------------------------------------------------------------- looking

    def _endpoints(self, url: str) -> list[Endpoint]:
        """The pages of what is driven; an engine of an arm's own has one."""
        pages = self._pages if url == self.url else [f"{url}/metrics"]
        return [Endpoint(Address.of(page), self._token) for page in pages]

    def _is_quiet(self, url: str) -> bool | None:
        """Waits until it answers and has nothing to do; False when it came to neither.

        None = it does not say what it has to do.
        """
        until_ns = SYSTEM.monotonic_ns() + int(self._quiet_s * 1e9)
        while True:
            busy = self._busy(url)
            if not busy:
                return None if busy is None else True
            if SYSTEM.monotonic_ns() > until_ns:
                return False
            threading.Event().wait(_LOOK_S)

    def _busy(self, url: str) -> float | None:
        """Requests inside, inf when it does not answer; None = it does not say."""
        try:
            reading = Looks(self._endpoints(url), self._interval_s).first()
        except AdmitPerfError:
            return math.inf
        found = [signal.read(reading) for signal in (RUNNING, QUEUE_DEPTH)]
        known = [value for value in found if value is not None]
        return sum(known) if known else None

    def _version(self) -> str | None:
        told = self._asked("/version").get("version")
        told = told or self._asked("/props").get("build_info")
        return str(told) if told else None

    def _is_here(self) -> bool:
        host = Address.of(self.url).host
        with suppress(ValueError):
            return ip_address(host).is_loopback
        return host == "localhost"

    def _asked(self, path: str) -> dict[str, Any]:
        """A JSON object from the engine; empty = it has none there."""
        try:
            address = Address.of(f"{self.url}{path}")
            told = json.loads(fetch(address, token=self._token).body)
        except (ScrapeError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}


class _Probes:
    """Requests of one size, each sent when the one before it is answered."""

    def __init__(self) -> None:
        self.took_ms: list[float] = []
        self._n = 0

    def first(self) -> Iterable[Arrival]:
        """The first one."""
        return [self._next(0.0)]

    def after(self, _: Arrival, at_s: float, answer: Answer) -> Iterable[Arrival]:
        """The next one, until there were enough."""
        if answer.e2e_ms is not None:
            self.took_ms.append(answer.e2e_ms)
        return [self._next(at_s)] if self._n < _PROBES else []

    def _next(self, at_s: float) -> Arrival:
        self._n += 1
        prompt, output = _PROBE_TOKENS
        return Arrival(
            id=f"probe-{self._n}",
            at_s=at_s,
            input_tokens=prompt,
            max_output_tokens=output,
            output_tokens=output,
        )


def _first(found: object) -> dict[str, Any]:
    """The first object of a list; empty = there is none."""
    one = found[0] if isinstance(found, list) and found else None
    return one if isinstance(one, dict) else {}


def _floats(page: Mapping[str, object]) -> dict[str, float]:
    return {key: value for key, value in page.items() if isinstance(value, float)}


def _this_machine() -> str:
    """The processor of this machine, and how many of it."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(": ")[2]
                break
    return f"{os.cpu_count()} cores of {name}"


@contextmanager
def _punctual() -> Iterator[bool]:
    """Lets this thread and those it starts go first; whether the system allowed it.

    On two busy cores an engine held the instrument up by 10 to 50 ms, time and again,
    and by under 3 ms with real-time scheduling, which takes a privilege. And a garbage
    collection of a benchmark's heap took 0.13 s, so what is there already is left out.
    """
    gc.collect()
    gc.freeze()
    try:
        with _realtime() as allowed:
            yield allowed
    finally:
        gc.unfreeze()


@contextmanager
def _realtime() -> Iterator[bool]:
    """Real-time scheduling, where there is such a thing and it is allowed."""
    if not hasattr(os, "sched_setscheduler"):
        yield False
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, *before)


def _allow_connections() -> None:
    """As many open connections as this process may have at most: the plan decides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
