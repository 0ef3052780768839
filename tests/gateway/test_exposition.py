"""A front door's own metrics page."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.asgi import DONE, Caller, answers, event, scope, streams

from admitperf import __version__
from admitperf.core.reading import Reading
from admitperf.gateway.edge import Fixed, one_pool
from admitperf.gateway.exposition import Exposition
from admitperf.gateway.setup import EdgeSetup, PoolSetup, Upstream
from admitperf.policies import load

CHAT = json.dumps({"model": "tiny", "stream": True, "messages": []}).encode()
STREAM = (event(), event("", "stop"), DONE)
QUEUED = {"vllm:num_requests_waiting": 5, "vllm:num_requests_running": 4}


POOLLESS = ("admitperf_build_info", "process_")


def samples(page):
    """What stands on a page: its text by name and labels, without the pool's."""
    families = text_string_to_metric_families(page.decode())
    found = {}
    for one in (sample for family in families for sample in family.samples):
        labels = dict(one.labels)
        if not one.name.startswith(POOLLESS):
            assert labels.pop("pool") == "default"
        found[one.name.removeprefix("admitperf_"), *labels.values()] = one.value
    return found


def asked(door, *bodies, headers=()):
    """Send requests one after another; what stands on the page then."""

    async def main():
        for body in bodies:
            await door.app(scope(headers=headers), *pair(Caller(body)))

    asyncio.run(main())
    return samples(Exposition(door.edge).page())


def pair(caller):
    """Its two halves."""
    return caller.receive, caller.send


def test_a_page_before_the_first_request(door):
    """Every number that is known is there, as 0; nothing is missing for want of one."""
    page = asked(door(streams(*STREAM)))
    assert page["leases",] == page["lease_drift",] == page["held",] == 0
    assert page["lost_records_total",] == page["expired_leases_total",] == 0
    assert page["decision_seconds_count",] == 0
    assert not [name for name, *_ in page if name == "decisions_total"]


def test_decisions_and_outcomes_are_counted(door):
    """By verdict, reason and what became of them; the refused one is no outcome."""
    served = asked(door(streams(*STREAM)), CHAT, CHAT)
    assert served["decisions_total", "true", "policy", "", "admit"] == 2
    assert served["outcomes_total", "ok"] == 2
    assert served["attempts_total", "0"] == 2
    assert served["decision_seconds_count",] == 2
    assert served["first_token_seconds_count",] == 2
    full = door(streams(*STREAM), "queue_depth", max_waiting=2, reading=Reading(QUEUED))
    refused = asked(full, CHAT)
    key = ("decisions_total", "false", "policy", "queue_depth", "defer")
    (found,) = [name for name in refused if name[0] == "decisions_total"]
    assert set(found) == set(key)
    assert refused["wait_seconds_count",] == 1
    assert refused["wait_seconds_sum",] >= 1
    assert not [name for name, *_ in refused if name == "outcomes_total"]


def test_what_the_policy_sees_is_on_the_page(door):
    """Signals, how old they are, and how far the last decision was from its gate."""
    page = asked(
        door(streams(*STREAM), "queue_depth", max_waiting=2, reading=Reading(QUEUED)),
        CHAT,
    )
    assert page["signal", "", "queue_depth"] == 5
    assert page["signal", "", "running"] == 4
    assert 0 <= page["reading_age_seconds", ""] < 60
    assert page["gate_distance", "queue_depth"] == -3
    assert page["engine_drift",] == 9


@pytest.mark.parametrize("seen_before", [True, False])
def test_a_signal_that_is_too_old_is_absent(door, seen_before):
    """Not its last value: an alert on it would be about what is long gone."""
    reading = Reading(QUEUED, age_s=60)
    old = door(streams(*STREAM), "queue_depth", max_waiting=2, reading=reading)
    if seen_before:
        old.policy.look(reading)
    page = samples(Exposition(old.edge).page())
    assert not [name for name, *_ in page if name in {"signal", "engine_drift"}]
    assert page["reading_age_seconds", ""] >= 60


def test_blind_lasts_until_a_decision_is_made_with_open_eyes(door):
    """1 after a decision of the posture's, 0 after the policy's own."""
    unseeing = door(streams(*STREAM), "queue_depth", max_waiting=2)
    assert samples(Exposition(unseeing.edge).page())["blind",] == 0
    assert asked(unseeing, CHAT)["blind",] == 1
    unseeing.pool.seen.pool = Reading({**QUEUED, "vllm:num_requests_waiting": 0})
    assert asked(unseeing, CHAT)["blind",] == 0


class Read(Fixed):
    """Readings that say how the last round went."""

    rounds = failures = 0

    def __init__(self, *failed):
        super().__init__()
        self.failed = dict.fromkeys(failed, "refused")


def seen_by(seen, *names):
    """A front door with these replicas, whose pages were read so."""
    replicas = tuple(Upstream(url="", metrics_url="", name=name) for name in names)
    setup = EdgeSetup(pools=(PoolSetup(upstreams=replicas),))
    return one_pool(load("no_admission")(), seen, setup)


def test_a_replica_is_up_if_its_page_was_read_in_the_last_round():
    """Each by its name; none is before the first round."""
    seen = Read("r1")
    edge = seen_by(seen, "r0", "r1")
    page = samples(Exposition(edge).page())
    assert page["up", "r0"] == page["up", "r1"] == 0
    seen.rounds = 1
    page = samples(Exposition(edge).page())
    assert (page["up", "r0"], page["up", "r1"]) == (1, 0)


@pytest.mark.parametrize(("failed", "up"), [((), 1), (("engine",), 0)])
def test_an_engine_without_a_name_is_up_too(failed, up):
    """Where the host is the engine, or names no replica."""
    seen = Read(*failed)
    seen.rounds = 1
    assert samples(Exposition(seen_by(seen)).page())["up", ""] == up


def test_nobody_is_up_where_the_host_hands_readings_in(door):
    """There is no page that could be read."""
    assert not [name for name, *_ in asked(door(streams(*STREAM))) if name == "up"]


def test_requests_of_a_replica_are_told_by_who_forwards(door):
    """By replica; a host that forwards nothing has no such number."""
    edge = door(streams(*STREAM)).edge
    page = samples(Exposition(edge, {"default": {"r0": 3}}.__getitem__).page())
    assert page["replica_in_flight", "r0"] == 3
    assert not [n for n, *_ in samples(Exposition(edge).page()) if "replica_in" in n]


def test_the_page_says_which_program_it_is_and_what_it_takes(door):
    """Version, memory and open files; on a host's page the last two are the host's."""
    own = Exposition(door(streams(*STREAM)).edge)
    page = samples(own.page())
    assert page["build_info", __version__] == 1
    assert page["process_resident_memory_bytes",] > 1_000_000
    assert page["process_open_fds",] > 0
    registry = CollectorRegistry()
    registry.register(own)
    assert b"process_" not in generate_latest(registry)


def test_records_that_wait_for_the_disk_are_on_the_page(door, monkeypatch):
    """Before they count as lost."""
    one = door(streams(*STREAM))
    kind = type(one.policy)
    monkeypatch.setattr(kind, "waiting_records", property(lambda _: 7), raising=False)
    assert asked(one)["log_waiting_records",] == 7


def test_no_name_of_a_caller_is_a_label(door):
    """Not its key, tenant, session, model, nor what an engine says of its prompt."""
    body = json.dumps({"model": "SECRET-model", "user": "SECRET-user"}).encode()
    error = b'{"error": {"message": "SECRET prompt", "code": "SECRET"}}'
    names = ("x-session-id", "x-request-id", "x-tenant-id", "idempotency-key")
    headers = [(name, f"SECRET-{name}") for name in names]
    headers += [("authorization", "Bearer SECRET-key")]
    for status in (200, 400, 418, 503):
        refusing = door(answers(error, status))
        for word in ("SECRET words", "upstream_refused"):
            refusing.pool.counters.outcomes[word] += 1
        page = asked(refusing, body, headers=headers)
        assert page["outcomes_total", "other"] >= 1
        assert "SECRET" not in str(page)


@pytest.mark.parametrize(
    "word",
    [
        *("ok", "client_closed", "handler_error", "shutdown"),
        *("timeout_first_token", "timeout_gap", "timeout_total"),
        *("upstream_refused", "upstream_ended_early", "upstream_unreachable"),
        *("upstream_unreadable", "upstream_no_output", "upstream_error"),
        *("upstream_404", "upstream_500"),
    ],
)
def test_the_words_for_how_a_request_ended_are_kept(door, word):
    """Each of ours is a label of its own."""
    one = door(streams(*STREAM))
    one.pool.counters.outcomes[word] += 1
    assert asked(one)["outcomes_total", word] == 1


def test_a_family_that_fails_takes_no_other_along(door, caplog):
    """The page may be a host's: it is whole but for that one, and it is said once."""
    broken = door(streams(*STREAM))
    del broken.pool.counters.probes
    own = Exposition(broken.edge)
    registry = CollectorRegistry()
    registry.register(own)
    for _ in range(2):
        page = samples(generate_latest(registry))
        assert ("probes_total",) not in page
        assert page["leases",] == 0
    (said,) = caplog.messages
    assert "admitperf_probes is not on the page: AttributeError" in said


PROGRAM = """
import os, sys
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from admitperf.gateway.edge import Edge, Fixed
from admitperf.gateway.exposition import Exposition, Shared
from admitperf.gateway.setup import EdgeSetup, PoolSetup
from admitperf.policies import load

names = ("default", "other")
pools = tuple(PoolSetup(name=name, models=(name,)) for name in names)
policies = {name: load("no_admission")() for name in names}
edge = Edge(EdgeSetup(pools=pools), policies, {name: Fixed() for name in names})
pool, other = edge.pools.values()
for _ in range(10):
    other.counters.wait_s.add(0.05)
shared = Shared(Exposition(edge))
for told in (0.05, 0.7, 700.0):
    pool.counters.decisions["admit", "", True, "policy"] += 1
    pool.counters.wait_s.add(told)
    pool.counters.live = -2
    shared.write()
registry = CollectorRegistry()
MultiProcessCollector(registry)
sys.stdout.buffer.write(generate_latest(registry))
"""


def test_several_processes_make_one_page(tmp_path):
    """Counters, buckets and leases of all are summed; what all see is not."""
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr.decode()
    text = ran.stdout.decode().splitlines()
    assert 'admitperf_wait_seconds_bucket{le="0.1",pool="other"} 20.0' in text
    own = [line for line in text if 'pool="other"' not in line]
    page = samples("\n".join(own).encode())
    assert page["decisions_total", "true", "policy", "", "admit"] == 6
    assert page["lease_drift",] == 4
    assert page["wait_seconds_bucket", "0.1"] == 2
    assert page["wait_seconds_bucket", "0.5"] == 2
    assert page["wait_seconds_bucket", "1.0"] == 4
    assert page["wait_seconds_bucket", "60.0"] == 4
    assert page["wait_seconds_bucket", "+Inf"] == 6
    assert page["wait_seconds_count",] == 6
    assert page["wait_seconds_sum",] == pytest.approx(2 * 700.75)
    assert 0 <= page["reading_age_seconds", ""] < 60
