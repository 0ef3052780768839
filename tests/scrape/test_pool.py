"""Several pages as one reading."""

import pytest
from tests.engines.pages import load

from admitperf.core.clock import SYSTEM
from admitperf.core.reading import Reading
from admitperf.core.series import Series
from admitperf.core.window import Window
from admitperf.engines.exposition import parse
from admitperf.policies.no_admission import NoAdmission
from admitperf.scrape.pool import merged, pool_sources
from admitperf.testing import FakeClock, MemoryLog


def vllm(waiting, kv, *, hits=0, lookups=0, started=1.0, preempted=0):
    """A page of one vLLM engine."""
    return parse(
        f'vllm:num_requests_waiting{{engine="0"}} {waiting}\n'
        f'vllm:num_requests_running{{engine="0"}} 1\n'
        f'vllm:kv_cache_usage_perc{{engine="0"}} {kv}\n'
        f'vllm:prefix_cache_hits_total{{engine="0"}} {hits}\n'
        f'vllm:prefix_cache_queries_total{{engine="0"}} {lookups}\n'
        f'vllm:num_preemptions_total{{engine="0"}} {preempted}\n'
        f"process_start_time_seconds {started}\n".encode()
    )


class Pool:
    """The baseline over merged pages, one a second."""

    def __init__(self):
        self.clock = FakeClock(10.0)
        self.log = MemoryLog()
        self.policy = NoAdmission(
            log=self.log, clock=self.clock, enforce=0.0, sources=pool_sources()
        )

    def see(self, **pages):
        """What is known after one more sample."""
        self.clock.advance(1.0)
        taken_ns = self.clock.monotonic_ns()
        self.policy(Reading(merged(pages), taken_ns=taken_ns, interval_s=1.0))
        return self.log.decisions[-1]["signals"]


def found(name, **pages):
    """One signal's own account of merged pages."""
    source, *_ = next(v for k, v in pool_sources().items() if k.name == name)
    return source.formula(Series(merged(pages)), Window.EMPTY)


def test_a_single_page_stays_as_it_is():
    """What one engine says is written down as the engine wrote it."""
    assert merged({"a:1": {"vllm:x": 1.0}}) == {"vllm:x": 1.0}


def test_each_series_names_its_replica():
    """With labels or without, and one that is called replica already."""
    assert merged(
        {"a:1": {"x": 1.0, 'y{b="c"}': 2.0}, "b:1": {'z{c="d",replica="7"}': 3.0}}
    ) == {
        'x{replica="a:1"}': 1.0,
        'y{b="c",replica="a:1"}': 2.0,
        'z{c="d",exported_replica="7",replica="b:1"}': 3.0,
    }


def test_counts_are_summed_and_fractions_take_the_largest():
    """Two replicas are told apart though their labels are the same."""
    known = Pool().see(a=vllm(3, 0.2), b=vllm(4, 0.9))
    assert known["queue_depth"] == 7
    assert known["running"] == 2
    assert known["kv_pressure"] == 0.9


def test_each_replicas_own_value_is_kept():
    """The full one of two stays visible."""
    parts = found("kv_pressure", a=vllm(0, 0.2), b=vllm(0, 0.9)).parts
    assert parts == {"replica=a": 0.2, "replica=b": 0.9}


def test_replicas_of_different_engines_and_releases_all_count():
    """No replica is left out because another one's names come first."""
    old = parse(b"vllm:gpu_cache_usage_perc 0.95\nvllm:num_requests_waiting 2\n")
    sglang = parse(b"sglang:token_usage 0.5\nsglang:num_queue_reqs 5\n")
    known = Pool().see(a=vllm(1, 0.1), b=old, c=sglang)
    assert known["kv_pressure"] == 0.95
    assert known["queue_depth"] == 8


def test_a_gpu_exporter_stands_beside_the_engines():
    """Its utilisation is theirs; it adds nothing to their queue."""
    dcgm = parse(
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="h"} 80\n'
        b'DCGM_FI_DEV_GPU_UTIL{gpu="1",Hostname="h"} 40\n'
    )
    known = Pool().see(a=vllm(1, 0.1), gpu=dcgm)
    assert known["gpu_util"] == pytest.approx(0.6)
    assert known["queue_depth"] == 1


def test_two_exporters_give_the_mean_over_their_gpus():
    """Not the mean of two means."""
    one = parse(b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 90\n')
    three = parse(
        b"".join(b'DCGM_FI_DEV_GPU_UTIL{gpu="%d"} 10\n' % n for n in range(3))
    )
    assert Pool().see(x=one, y=three)["gpu_util"] == pytest.approx(0.3)


def test_a_router_beside_its_engines_is_not_added():
    """It repeats what the engines say; alone it speaks for them."""
    epp = parse(
        b'inference_pool_average_queue_size{name="p"} 4\n'
        b'inference_pool_ready_pods{name="p"} 2\n'
    )
    assert Pool().see(a=vllm(3, 0.1), b=vllm(5, 0.1), router=epp)["queue_depth"] == 8
    assert Pool().see(router=epp, gpu=parse(b"x 1\n"))["queue_depth"] == 8


def test_a_hit_rate_weighs_each_replica_by_its_lookups():
    """Hits of all over lookups of all: 90 of 110, not the mean of 0.9 and 0."""
    pool = Pool()
    pool.see(a=vllm(0, 0.1), b=vllm(0, 0.1))
    known = pool.see(
        a=vllm(0, 0.1, hits=90, lookups=100), b=vllm(0, 0.1, hits=0, lookups=10)
    )
    assert known["prefix_hit_rate"] == pytest.approx(90 / 110)


def test_a_replica_that_restarts_restarts_alone():
    """The others' counters do not count from zero again."""
    pool = Pool()
    pool.see(a=vllm(0, 0.1, preempted=500), b=vllm(0, 0.1, preempted=7))
    known = pool.see(
        a=vllm(0, 0.1, preempted=500), b=vllm(0, 0.1, preempted=1, started=9.0)
    )
    assert known["preemptions"] == 1


def test_a_replica_that_dies_makes_no_counter_rise():
    """Its restart marker is gone from the page, which is no restart of the others."""
    pool = Pool()
    pool.see(
        a=vllm(0, 0.1, preempted=500, hits=9, lookups=90), b=vllm(0, 0.1), c=vllm(0, 0)
    )
    known = pool.see(a=vllm(0, 0.1, preempted=500, hits=9, lookups=90), b=vllm(0, 0.1))
    assert known["preemptions"] == 0
    assert "prefix_hit_rate" not in known


def test_a_value_out_of_range_names_its_replica():
    """What is left out can be found."""
    made = found("kv_pressure", a=vllm(0, 43), b=vllm(0, 0.4))
    assert made.value == 0.4
    assert made.skipped == ("a: vllm_kv_cache_usage_perc{} = 43",)


def test_nothing_usable_is_not_known():
    """Neither zero, nor what a page made of all might seem to say."""
    made = found("kv_pressure", a=vllm(0, 43), b=vllm(0, -1))
    assert made.value is None
    assert len(made.skipped) == 2
    assert "kv_pressure" not in Pool().see(a=vllm(0, 43), b=vllm(0, -1))


def test_a_full_cache_with_nothing_running_is_believed_for_a_while_only():
    """An engine that aborted everything may never refresh its gauge."""
    idle = parse(
        b"vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
        b"vllm:kv_cache_usage_perc 0.97\n"
    )
    pool = Pool()
    seen = ["kv_pressure" in pool.see(a=idle, b=idle) for _ in range(8)]
    assert seen[0]
    assert not seen[-1]


def test_a_real_page_twice_is_twice_the_engine():
    """All of a real engine's series, merged: sums double, fractions stay."""
    page = load("real-vllm-0.32.0-load.prom")
    one = Reading(page, taken_ns=SYSTEM.monotonic_ns())
    alone = NoAdmission(log=(log := MemoryLog()), enforce=0.0)
    alone(one)
    single = log.decisions[-1]["signals"]
    both = Pool().see(a=page, b=page)
    assert both["queue_depth"] == 2 * single["queue_depth"] > 0
    assert both["kv_capacity_tokens"] == 2 * single["kv_capacity_tokens"] > 0
    assert both["kv_pressure"] == single["kv_pressure"] > 0
