"""The engine of a configuration, ready to be driven, and what it asks at its end."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from admitperf.bench.harness.config import TargetConfig
from admitperf.bench.harness.target import Target
from admitperf.bench.harness.virtual import VirtualTarget, virtual
from admitperf.core.errors import MissingExtra
from admitperf.scrape.token import read_token
from admitperf.simulator.profile import profile


@contextmanager
def opened(told: TargetConfig) -> Iterator[Target]:
    """The target, for a `with` statement: a server that was started ends with it.

    Raises:
        AdmitPerfError: it cannot be had so, or cannot be reached.
    """
    if told.kind == "http":
        yield _http(told, told.url or "")
        return
    made = _virtual(told)
    if told.over != "http":
        yield made
        return
    with _served(made) as url:
        yield _http(replace(told, metrics_url=None), url)


def _virtual(told: TargetConfig) -> VirtualTarget:
    routing: Any = told.routing  # one of them: it was checked
    return virtual(
        profile(told.profile or ""),
        told.engine,
        replicas=told.replicas,
        routing=routing,
        scrape_interval_s=told.scrape_interval_s,
    )


def _http(told: TargetConfig, url: str) -> Target:
    _needed()
    from admitperf.bench.harness.http import HttpTarget  # noqa: PLC0415  an extra

    made: Target = HttpTarget(
        url,
        told.metrics_url,
        model=told.model,
        scrape_interval_s=told.scrape_interval_s,
        token=read_token(told.token),
        hardware=told.hardware,
    )
    return made


@contextmanager
def _served(made: VirtualTarget) -> Iterator[str]:
    """A simulated engine as a server of its own, with the sizes that differ."""
    _needed()
    from admitperf.bench.harness.http_serve import SimServe  # noqa: PLC0415  as above

    with tempfile.TemporaryDirectory(prefix="admitperf-") as folder:
        path = Path(folder) / "profile.json"
        changed = replace(made.profile, engine=made.model)
        path.write_text(changed.text(), encoding="utf-8")
        with SimServe(str(path)) as server:
            yield server.url


def _needed() -> None:
    try:
        import aiohttp  # noqa: F401, PLC0415  the extra's
    except ImportError:
        said = "this needs aiohttp, of the extra admitperf[bench]: pip install aiohttp"
        raise MissingExtra(said) from None
