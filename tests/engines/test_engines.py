"""What each engine's page means, one trap at a time."""

import pytest

from admitperf.core.series import Series
from admitperf.core.signals import (
    GPU_UTIL,
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    POOL_LOAD,
    PREEMPTIONS,
    PREFIX_HIT_RATE,
    QUEUE_DEPTH,
    RUNNING,
)
from admitperf.core.window import Window
from admitperf.engines.exposition import parse


def find(signal, page, window=Window.EMPTY):
    """What a signal makes of a page, with the source and its notes."""
    return signal.find(Series(parse(page)), window)


def value(signal, page, window=Window.EMPTY):
    """A signal's value on a page."""
    _, found, _ = find(signal, page, window)
    return None if found is None else found.value


def over(before, after, seconds=10.0):
    """The window between two pages."""
    return Window.between(Series(parse(before)), Series(parse(after)), seconds)


def test_vllm_says_that_a_gauge_by_process_may_be_stale():
    """One series per API server is believed for want of better, and flagged."""
    page = 'vllm:kv_cache_usage_perc{engine="0",pid="1"} 0.2\n'
    source, found, notes = find(KV_PRESSURE, page)
    assert source.name == "vllm_kv_cache_usage_perc by pid"
    assert found.value == 0.2
    assert "stale" in notes[-1]


def test_vllm_prefers_the_old_name_to_one_series_per_process():
    """`mostrecent` of the old name beats a maximum over stale processes."""
    page = (
        'vllm:kv_cache_usage_perc{engine="0",pid="1"} 0.9\n'
        'vllm:gpu_cache_usage_perc{engine="0"} 0.4\n'
    )
    assert value(KV_PRESSURE, page) == 0.4


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [
        ('kv_cache_size_tokens="1000",block_size="16",num_gpu_blocks="99"', 1000.0),
        ('kv_cache_size_tokens="None",block_size="16",num_gpu_blocks="99"', 1584.0),
        ('block_size="16",num_gpu_blocks="None"', None),
        ('block_size="16"', None),
        ('block_size="16",num_gpu_blocks="²"', None),
    ],
)
def test_vllm_capacity_is_in_the_labels(labels, tokens):
    """The engine's own size counts, else blocks x block size; "None" is unknown."""
    page = f"vllm:cache_config_info{{{labels}}} 1.0\n"
    assert value(KV_CAPACITY_TOKENS, page) == tokens


def test_vllm_capacity_of_a_rank_that_does_not_say_is_left_out():
    """One rank that prints no size does not hide the other's, and is noted."""
    line = 'vllm:cache_config_info{{engine="{}",kv_cache_size_tokens="{}"}} 1\n'
    _, found, notes = find(
        KV_CAPACITY_TOKENS, line.format(0, 100) + line.format(1, "²")
    )
    assert found.value == 100.0
    assert notes == ("vllm_cache_config_info without a size",)


def test_vllm_capacity_is_summed_over_ranks_and_not_over_processes():
    """Two ranks are twice the memory, two lines of one rank are not."""
    line = (
        'vllm:cache_config_info{{engine="{}",pid="{}",kv_cache_size_tokens="100"}} 1\n'
    )
    page = line.format(0, 1) + line.format(0, 2) + line.format(1, 1)
    _, found, _ = find(KV_CAPACITY_TOKENS, page)
    assert found.value == 200.0
    assert found.parts == {"engine=0": 100.0, "engine=1": 100.0}


@pytest.mark.parametrize("prefix", ["vllm:", "vllm_", "ray_vllm:", "ray_vllm_", ""])
def test_vllm_names_are_found_with_every_prefix(prefix):
    """Ray, a sanitising exporter and a host's own mapping spell them differently."""
    page = (
        f'{prefix}kv_cache_usage_perc{{engine="0"}} 0.5\n'
        f'{prefix}num_requests_waiting{{engine="0"}} 3\n'
    )
    assert value(KV_PRESSURE, page) == 0.5
    assert value(QUEUE_DEPTH, page) == 3.0


def test_vllm_parts_of_the_queue_are_not_added_to_it():
    """`_by_reason` are parts of the line above."""
    page = (
        'vllm:num_requests_waiting{engine="0"} 6\n'
        'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 6\n'
    )
    assert value(QUEUE_DEPTH, page) == 6.0


def test_vllm_counters_printed_twice_by_ray_count_once():
    """Ray prints a counter with and without `_total`."""
    before = "ray_vllm:num_preemptions 3\nray_vllm:num_preemptions_total 3\n"
    after = "ray_vllm:num_preemptions 8\nray_vllm:num_preemptions_total 8\n"
    assert value(PREEMPTIONS, after, over(before, after)) == 0.5


def test_sglang_reads_the_total_and_not_its_parts():
    """With priority scheduling only `priority=""` counts."""
    page = (
        'sglang:num_queue_reqs{tp_rank="0",priority=""} 18\n'
        'sglang:num_queue_reqs{tp_rank="0",priority="0"} 12\n'
        'sglang:num_queue_reqs{tp_rank="0",priority="1"} 6\n'
    )
    assert value(QUEUE_DEPTH, page) == 18.0


def test_sglang_falls_back_to_the_full_attention_pool():
    """Used, available and evictable tokens give the fraction of one pool."""
    page = (
        "sglang:kv_used_tokens 30\n"
        "sglang:kv_available_tokens 50\n"
        "sglang:kv_evictable_tokens 20\n"
    )
    assert value(KV_PRESSURE, page) == 0.3
    assert value(KV_PRESSURE, "sglang:kv_used_tokens 30\n") is None


@pytest.mark.parametrize(
    "sources",
    [
        'sglang:cached_tokens_total{{cache_source="total"}} {}\n',
        "sglang:cached_tokens_total {}\n",
        'sglang:cached_tokens_total{{cache_source="device"}} {}\n',
        (
            'sglang:cached_tokens_total{{cache_source="total"}} {0}\n'
            'sglang:cached_tokens_total{{cache_source="host"}} {0}\n'
        ),
    ],
)
def test_sglang_cached_tokens_are_the_total_or_its_parts(sources):
    """Never both: `total` holds the others."""
    before = sources.format(100) + "sglang:prompt_tokens_total 1000\n"
    after = sources.format(130) + "sglang:prompt_tokens_total 1100\n"
    assert value(PREFIX_HIT_RATE, after, over(before, after)) == pytest.approx(0.3)


def test_sglang_hit_rate_of_the_last_batch_does_not_fill_a_silent_window():
    """When the counters say "no lookups" the gauge is old news."""
    page = (
        "sglang:cache_hit_rate 0.5\n"
        "sglang:cached_tokens_total 100\n"
        "sglang:prompt_tokens_total 1000\n"
    )
    assert value(PREFIX_HIT_RATE, page) == 0.5
    assert value(PREFIX_HIT_RATE, page, over(page, page)) is None


def test_sglang_retractions_are_preemptions_and_ranks_repeat_them():
    """Tensor ranks print one number twice, data-parallel ranks their own."""
    line = 'sglang:num_retracted_requests_total{{dp_rank="{}",tp_rank="{}"}} {}\n'
    before = "".join(line.format(*it, 0) for it in ((0, 0), (0, 1), (1, 2)))
    after = line.format(0, 0, 4) + line.format(0, 1, 4) + line.format(1, 2, 1)
    assert value(PREEMPTIONS, after, over(before, after)) == 0.5


def test_sglang_capacity_may_be_in_labels():
    """0.5.9 and 0.5.10 print pages as labels."""
    page = 'sglang:cache_config_info{page_size="64",num_pages="10"} 1\n'
    assert value(KV_CAPACITY_TOKENS, page) == 640.0
    assert value(KV_CAPACITY_TOKENS, "sglang:cache_config_info 1\n") is None


def test_trtllm_json_gives_rates_over_two_reads():
    """Reused over reused plus missed blocks of the window."""
    page = '[{{"kvCacheStats":{{"reusedBlocks":{},"missedBlocks":{}}}}}]'
    before, after = page.format(10, 90), page.format(40, 160)
    assert value(PREFIX_HIT_RATE, after) is None
    assert value(PREFIX_HIT_RATE, after, over(before, after)) == 0.3


@pytest.mark.parametrize(
    ("active", "load"), [(32, 0.6171875), (60, 0.9375), (70, 1.09375)]
)
def test_trtllm_load_is_the_fuller_of_memory_and_slots(active, load):
    """The load of a pool is not clamped."""
    page = (
        '[{"kvCacheStats":{"usedNumBlocks":7900,"maxNumBlocks":12800},'
        f'"numActiveRequests":{active},"maxNumActiveRequests":64}}]'
    )
    assert value(POOL_LOAD, page) == load
    prometheus = (
        f"trtllm_num_requests_running {active}\n"
        "trtllm_max_num_active_requests 64\n"
        "trtllm_kv_cache_utilization 0.6171875\n"
    )
    assert value(POOL_LOAD, prometheus) == load


def test_trtllm_without_its_slots_has_no_load():
    """Half of a maximum is a lower bound, not a load."""
    page = '[{"kvCacheStats":{"usedNumBlocks":1,"maxNumBlocks":10}}]'
    assert value(POOL_LOAD, page) is None
    assert value(KV_PRESSURE, page) == 0.1


def test_no_memory_is_not_full_and_not_empty():
    """A capacity of 0 gives nothing to divide by."""
    page = '[{"kvCacheStats":{"usedNumBlocks":0,"maxNumBlocks":0}}]'
    assert value(KV_PRESSURE, page) is None


BLOCKS = 'nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="{}",model="{}"}} {}\n'


def triton(model, fraction, used, most):
    """A page of one model on Triton."""
    kinds = (("fraction", fraction), ("used", used), ("max", most))
    return "".join(BLOCKS.format(kind, model, number) for kind, number in kinds)


@pytest.mark.parametrize(
    ("fraction", "believed"), [(0.52, 0.52), (0.48, 0.48), (0.53, None), (0.0, None)]
)
def test_triton_is_believed_where_its_numbers_agree(fraction, believed):
    """The printed fraction may differ from used/max by 0.02."""
    assert value(KV_PRESSURE, triton("m", fraction, 50, 100)) == believed


def test_triton_says_what_it_did_not_believe():
    """A contradiction is in the notes; the model that agrees still counts."""
    page = triton("a", 0.9, 10, 100) + triton("b", 0.3, 30, 100)
    _, found, notes = find(KV_PRESSURE, page)
    assert found.value == 0.3
    assert "0.9" in notes[0]
    assert value(KV_PRESSURE, BLOCKS.format("fraction", "m", 0.5)) is None


def test_tgi_reservations_are_no_pressure():
    """Booked worst-case tokens are another quantity."""
    page = "tgi_batch_current_max_tokens 94\ntgi_batch_max_total_tokens 100\n"
    assert value(KV_PRESSURE, page) is None
    assert value(KV_CAPACITY_TOKENS, page) == 100.0


def test_llamacpp_hit_rate_counts_cached_tokens_in():
    """`prompt_tokens_total` leaves the cached ones out, so they are added."""
    page = "llamacpp:prompt_tokens_cached_total {}\nllamacpp:prompt_tokens_total {}\n"
    before, after = page.format(100, 300), page.format(130, 370)
    assert value(PREFIX_HIT_RATE, after, over(before, after)) == 0.3
    only_computed = "llamacpp:prompt_tokens_total 300\n"
    window = over(only_computed, only_computed)
    assert value(PREFIX_HIT_RATE, only_computed, window) is None


def test_lmdeploy_requests_in_front_of_the_engine_wait_too():
    """What waits before the engine is added where it is exported."""
    page = (
        'lmdeploy:num_requests_waiting{engine="0"} 7\n'
        'lmdeploy:num_api_requests_waiting{engine="0"} 5\n'
    )
    assert value(QUEUE_DEPTH, page) == 12.0
    assert value(QUEUE_DEPTH, "lmdeploy:num_api_requests_waiting 5\n") is None


def test_lmdeploy_gauge_gives_way_to_its_counters():
    """Counters first, the gauge while there is one page only."""
    page = (
        "lmdeploy:prefix_cache_hit_rate 0.9\n"
        "lmdeploy:cached_tokens_total {}\n"
        "lmdeploy:prompt_tokens_total {}\n"
    )
    before, after = page.format(0, 100), page.format(10, 200)
    assert value(PREFIX_HIT_RATE, after) == 0.9
    assert value(PREFIX_HIT_RATE, after, over(before, after)) == 0.1


def test_dynamo_percent_is_a_fraction_in_both_its_names():
    """`_percent` runs from 0 to 1, and the worst rank counts."""
    page = 'dynamo_component_{}gpu_cache_usage_percent{{dp_rank="{}"}} {}\n'
    new = page.format("", 0, 0.42) + page.format("", 1, 0.87)
    assert value(KV_PRESSURE, new) == 0.87
    assert value(KV_PRESSURE, page.format("kvstats_", 0, 0.42)) == 0.42


def test_dynamo_gauge_gives_way_to_the_counters_it_passes_through():
    """A window of the engine's own counters is the better answer, silence included."""
    page = (
        "dynamo_component_kv_cache_hit_rate 0.9\n"
        "vllm:prefix_cache_hits_total {}\nvllm:prefix_cache_queries_total {}\n"
    )
    before, after = page.format(0, 0), page.format(10, 100)
    assert value(PREFIX_HIT_RATE, after) == 0.9
    assert value(PREFIX_HIT_RATE, after, over(before, after)) == 0.1
    assert value(PREFIX_HIT_RATE, after, over(after, after)) is None


def test_dynamo_capacity_needs_both_of_its_pages():
    """Workers know blocks, the frontend their size."""
    blocks = "dynamo_component_total_blocks 100\n"
    size = 'dynamo_frontend_model_kv_cache_block_size{model="a"} 16\n'
    other = 'dynamo_frontend_model_kv_cache_block_size{model="b"} 32\n'
    assert value(KV_CAPACITY_TOKENS, blocks + size) == 1600.0
    assert value(KV_CAPACITY_TOKENS, blocks) is None
    assert value(KV_CAPACITY_TOKENS, blocks + size + other) is None


def test_dynamo_in_flight_stands_behind_the_engines_own_number():
    """A worker's in-flight count holds its engine's queue as well."""
    page = "dynamo_component_inflight_requests 9\n"
    assert value(RUNNING, page) == 9.0
    assert value(RUNNING, page + "vllm:num_requests_running 4\n") == 4.0


def test_epp_prints_everything_twice_and_counts_once():
    """The new names and the deprecated ones say the same."""
    old = (
        'inference_pool_average_queue_size{name="p"} 3.5\n'
        'inference_pool_ready_pods{name="p"} 4\n'
        'inference_extension_flow_control_pool_saturation{inference_pool="p"} 1.1\n'
    )
    new = (
        'llm_d_epp_average_queue_size{name="p"} 3.5\n'
        'llm_d_epp_ready_endpoints{name="p"} 4\n'
        'llm_d_epp_flow_control_pool_saturation{inference_pool="p"} 1.1\n'
    )
    for page in (old, new, old + new):
        assert value(QUEUE_DEPTH, page) == 14.0
        assert value(POOL_LOAD, page) == 1.1


def test_epp_means_are_multiplied_pool_by_pool():
    """Two pools of different size do not share a mean."""
    page = (
        'inference_pool_average_queue_size{name="a"} 3.5\n'
        'inference_pool_average_queue_size{name="b"} 10\n'
        'inference_pool_ready_pods{name="a"} 4\n'
        'inference_pool_ready_pods{name="b"} 1\n'
    )
    _, found, _ = find(QUEUE_DEPTH, page)
    assert found.value == 24.0
    assert found.parts == {"name=a": 14.0, "name=b": 10.0}


def test_epp_queues_of_each_pod_are_summed_where_the_mean_is_missing():
    """Either way it is the pool's whole queue."""
    line = 'inference_pool_per_pod_queue_size{{model_server_pod="{}"}} {}\n'
    assert value(QUEUE_DEPTH, line.format("a", 14) + line.format("b", 3)) == 17.0


@pytest.mark.parametrize(
    ("stages", "load"),
    [
        ({"prefill": 0.4, "decode": 1.3, "effective": 0.9}, 0.9),
        ({"prefill": 0.4, "decode": 1.3}, 1.3),
    ],
)
def test_epp_acts_on_the_effective_stage(stages, load):
    """Where the router tells stages apart, the one it acts on counts."""
    line = (
        'llm_d_epp_flow_control_pool_saturation{{inference_pool="p",stage="{}"}} {}\n'
    )
    page = "".join(line.format(*it) for it in stages.items())
    assert value(POOL_LOAD, page) == load


def test_epp_mean_is_no_pressure():
    """A mean cannot say that one replica is full."""
    page = 'inference_pool_average_kv_cache_utilization{name="p"} 0.46\n'
    assert value(KV_PRESSURE, page) is None


UTIL = 'DCGM_FI_DEV_GPU_UTIL{{gpu="{}"{}}} {}\n'
ACTIVE = 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="{}"{}}} {}\n'


@pytest.mark.parametrize(
    ("util", "active", "believed", "source"),
    [
        (99, 0.0, 0.99, "DCGM_FI_DEV_GPU_UTIL / 100"),
        (0, 0.9, 0.9, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
        (0, 0.4, 0.0, "DCGM_FI_DEV_GPU_UTIL / 100"),
        (80, 0.5, 0.8, "DCGM_FI_DEV_GPU_UTIL / 100"),
        (0, 0.0, 0.0, "DCGM_FI_DEV_GPU_UTIL / 100"),
    ],
)
def test_dcgm_fields_that_contradict_each_other(util, active, believed, source):
    """A field stuck at 0 beside a busy one is a fault; the larger counts."""
    page = UTIL.format(0, "", util) + ACTIVE.format(0, "", active)
    used, found, notes = find(GPU_UTIL, page)
    assert found.value == believed
    assert used.name == source
    assert bool(notes) == (max(util / 100, active) > 0.5 and min(util, active) == 0)


@pytest.mark.parametrize(
    "blank", [9223372036854775794, 9223372036854775792, 2147483632, 4294967295, -1]
)
def test_dcgm_blanks_are_no_utilisation(blank):
    """A "no value" number is skipped and noted, the other field answers."""
    page = UTIL.format(0, "", blank)
    assert value(GPU_UTIL, page) is None
    assert find(GPU_UTIL, page)[2]
    assert value(GPU_UTIL, page + ACTIVE.format(0, "", 0.25)) == 0.25


def test_dcgm_never_averages_over_several_engines():
    """A node's mean describes none of its engines: it is refused, and says so."""
    page = UTIL.format(0, ',pod="a"', 90) + UTIL.format(1, ',pod="b"', 10)
    assert value(GPU_UTIL, page) is None
    assert "several pods (a, b)" in find(GPU_UTIL, page)[2][0]


def test_dcgm_leaves_out_the_gpus_nobody_holds():
    """Idle GPUs of the node are not the engine's."""
    page = UTIL.format(0, ',pod="a"', 90) + UTIL.format(1, "", 0)
    page += UTIL.format(2, ',pod=""', 0)
    assert value(GPU_UTIL, page) == 0.9


def test_amd_partitions_but_the_first_are_invalid():
    """A GPU cut up prints one valid line."""
    line = '{}gpu_gfx_activity{{gpu_id="0",gpu_partition_id="{}"}} {}\n'
    for prefix in ("", "amd_"):
        page = line.format(prefix, 0, 80) + line.format(prefix, 1, 0)
        assert value(GPU_UTIL, page) == 0.8


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_rate_needs_time(seconds):
    """Two pages of one instant give no rate."""
    page = "vllm:num_preemptions_total {}\n"
    window = over(page.format(1), page.format(2), seconds)
    assert value(PREEMPTIONS, page.format(2), window) is None


def test_preemptions_are_not_known_from_one_page():
    """A total since the start is no rate."""
    assert value(PREEMPTIONS, "vllm:num_preemptions_total 268\n") is None


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "-1"])
def test_a_number_that_is_none_spoils_no_formula(number):
    """What is no count is left out before it is divided or multiplied."""
    page = (
        f"trtllm_kv_cache_used_blocks {number}\ntrtllm_kv_cache_max_blocks 100\n"
        f"lmdeploy:num_requests_waiting {number}\n"
        f"inference_pool_average_queue_size {number}\ninference_pool_ready_pods 2\n"
    )
    for signal in (KV_PRESSURE, QUEUE_DEPTH, RUNNING, POOL_LOAD, KV_CAPACITY_TOKENS):
        assert value(signal, page) is None


def test_a_hit_rate_above_one_is_no_hit_rate():
    """More hits than lookups is out of range: skipped, not clamped."""
    page = "vllm:prefix_cache_hits_total {}\nvllm:prefix_cache_queries_total {}\n"
    before, after = page.format(0, 0), page.format(20, 10)
    assert value(PREFIX_HIT_RATE, after, over(before, after)) is None
