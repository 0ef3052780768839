"""What may stand in a gateway's file, and what becomes of it."""

import pytest

from admitperf.core.errors import ConfigError
from admitperf.gateway.config.configured import Server
from admitperf.gateway.config.document import document
from admitperf.gateway.config.schema import parsed
from admitperf.gateway.setup import EdgeSetup, Holding, Limits, PoolSetup, Upstream
from admitperf.policies import available, load

SECRET = "0123456789abcdef"
INSTALLED = ", ".join(available())


def made(text):
    """A gateway from YAML."""
    return parsed(document(text, "file", {}), "file")


def wrong(text):
    """What is wrong with it."""
    with pytest.raises(ConfigError) as caught:
        made(text)
    return caught.value.faults


def test_an_address_is_enough():
    """All else has a default, which is the one of the plain setup."""
    found = made("pools: [{upstreams: ['gpu-1:8000']}]")
    upstream = Upstream(
        url="http://gpu-1:8000",
        metrics_url="http://gpu-1:8000/metrics",
        name="gpu-1:8000",
    )
    assert found.server == Server()
    assert found.edge == EdgeSetup(pools=(PoolSetup(upstreams=(upstream,)),))


def test_every_setting_arrives():
    """Under the name the rest of the gateway knows it by."""
    found = made(f"""
listen: "[::1]:0"
secret: {SECRET}
trusted: [10.0.0.0/8]
tenants: [{{name: blue, keys: [{"a" * 32}, {"b" * 32}], weight: 2, per_minute: 60}}]
limits: {{body_bytes: 1000, peek_ms: 0}}
server: {{keep_alive_s: 90, grace_s: 5, drain_s: 1}}
conventions: {{session: x-mine}}
pools:
  - name: small
    models: [a, b]
    upstreams: [{{url: "https://h/x/", name: one, metrics_token: t}}]
    policy: {{name: queue_depth, params: {{max_waiting: 3}}, enforce: 0.5}}
    log: {{path: d.jsonl, keep: 2}}
    slo: {{ttft_ms: 1500}}
    holding: {{defer: hold, never: [batch]}}
    scrape: {{view: replica}}
    timeouts: {{gap_s: null}}
    tokens_each: {{image: 1000}}
""")
    (pool,) = found.edge.pools
    assert (found.server.host, found.server.port) == ("::1", 0)
    assert (found.server.keep_alive_s, found.server.drain_s) == (90, 1)
    assert found.server.grace_s == 5
    assert found.edge.secret == SECRET.encode()
    assert set(found.edge.tenants) == {"a" * 32, "b" * 32}
    assert found.edge.tenants["a" * 32].per_minute == 60
    assert found.edge.limits == Limits(body_bytes=1000, peek_ms=0)
    assert found.edge.conventions == {"session": "x-mine"}
    assert pool.upstreams[0].url == "https://h/x"
    assert pool.upstreams[0].metrics_token == "t"
    assert pool.settings == {
        "enforce": 0.5, "slo": {"ttft_ms": 1500}, "log": "d.jsonl", "log_keep": 2,
    }  # fmt: skip
    assert pool.parameters == {"max_waiting": 3}
    assert pool.holding == Holding(defer="hold", never=frozenset({"batch"}))
    assert (pool.scrape.view, pool.timeouts.gap_s) == ("replica", None)
    assert pool.tokens_each == {"image": 1000}


def test_a_text_stands_for_a_mapping_with_one_key():
    """The short form of an upstream, a policy, a log, a way to defer."""
    (pool,) = made(
        "pools: [{upstreams: ['h:1'], policy: queue_depth, log: d, holding: hold}]"
    ).edge.pools
    assert (pool.policy, pool.holding.defer) == ("queue_depth", "hold")
    assert pool.settings["log"] == "d"


def test_none_is_the_word_of_the_command_line_for_null():
    """For a parameter that may be None; elsewhere a text stays one."""
    pool = "pools: [{upstreams: ['gpu-1:8000'], policy: {name: front_door, params: {"
    (found,) = made(pool + "high_water: none}}}]").edge.pools
    assert found.parameters == {"high_water": None}
    (fault,) = wrong(pool + "hard_kv: none}}}]")
    assert fault == "pools[0].policy.params.hard_kv = 'none' is not float"


@pytest.mark.parametrize(
    "parts",
    [
        "[{name: queue_depth, params: {max_waiting: 8}}, {name: kv_threshold}]",
        "[{queue_depth: {max_waiting: 8}}, kv_threshold]",
        "['queue_depth:max_waiting=8', kv_threshold]",
        "'queue_depth:max_waiting=8; kv_threshold'",
    ],
)
def test_parts_of_a_composition_may_look_like_a_pools_policy(parts):
    """Or be written shorter, as texts or as one."""
    pool = "pools: [{upstreams: ['gpu-1:8000'], policy: {name: first_of, params: {"
    (found,) = made(f"{pool}policies: {parts}}}}}}}]").edge.pools
    inner = load("first_of")(**found.parameters).parts
    assert [
        (one.name, one.parameters[k])
        for one, k in zip(inner, ("max_waiting", "threshold"), strict=True)
    ] == [("queue_depth", 8), ("kv_threshold", 0.9)]


def test_all_faults_are_said_at_once_each_with_its_path():
    """Also those that the policy finds, in pools that are wrong otherwise."""
    assert wrong("""
pools:
  - upstreams: [{url: "h:1", urll: 3}]
    policy: {name: queue_depth, params: {max_waiting: -1, max: 3}, enforce: 2}
    slo: {ttft: 5}
  - upstreams: []
    timeouts: {gap_s: "3", connect_s: 0}
    policy: {name: nothing, parameters: {}}
limits: {body_bytes: 1.5}
trusted: [10.0.0.1/8]
listen: 8080
prots: []
""") == [
        "listen = 8080 is not a string",
        "limits.body_bytes = 1.5 is not a whole number",
        "trusted[0] = '10.0.0.1/8' is no network such as 10.0.0.0/8",
        "prots is unknown; is it pools?",
        "pools[0].upstreams[0].urll is unknown; is it url?",
        "pools[0].policy.enforce = 2.0 is no number from 0 to 1",
        "pools[0].slo: ttft is not one of ttft_ms, stall_ms, e2e_ms",
        "pools[0].policy.params.max is no parameter (known: max_waiting, action)",
        "pools[0].policy.params.max_waiting = -1 is not at least 0",
        "pools[1].upstreams should have at least 1 item after validation, not 0",
        "pools[1].policy.parameters is unknown; is it params?",
        "pools[1].timeouts.connect_s = 0 is not greater than 0",
        "pools[1].timeouts.gap_s = '3' is not a number",
        "pools[1].policy.name: no policy 'nothing'; installed: " + INSTALLED,
        "pools: only one may be without models: it takes all other names",
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("name: nothing", "pools[0].policy.name: no policy 'nothing'; "),
        ("name: in_flight_cap, params: {max_in_flight: null}", "pools[0].policy: give"),
        ("name: queue_depth, params: {log: x}", "pools[0].policy.params.log is no pa"),
        ("name: rate_limit, params: {burst: '1'}", "pools[0].policy.params.burst = '1"),
        ("name: no_admission, params: {x: 1}", "pools[0].policy.params.x is no param"),
        ("name: no_admission, on_blind: z", "pools[0].policy.on_blind = 'z' is not o"),
    ],
)
def test_what_a_policy_finds_has_a_path(line, fault):
    """The one of the key in the file."""
    (found,) = wrong(f"pools: [{{upstreams: ['h:1'], policy: {{{line}}}}}]")
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "url", ["ftp://h:1", "h:1/v1", "http://h:1/v1/", "http://u:hunter2@h:1",
            "h:1?k=hunter2", "http://", "h:99999"],
)  # fmt: skip
def test_an_address_that_cannot_be_forwarded_to_is_refused_unshown(url):
    """It may hold a password."""
    (fault,) = wrong(f"pools: [{{upstreams: ['{url}']}}]")
    assert fault.startswith("pools[0].upstreams[0].url ")
    assert "hunter2" not in fault


def test_no_fault_shows_a_secret():
    """Not a token, not a key, not the secret itself."""
    faults = wrong("""
secret: hunter2
tenants: [{name: a, keys: [hunter2]}]
pools: [{upstreams: [{url: "http://hunter2@h", metrics_token: [hunter2]}]}]
""")
    assert len(faults) == 4
    assert "hunter2" not in "".join(faults)


def test_a_setup_shows_no_secret():
    """Neither the secret nor a token stands in its text."""
    found = made(f"""
secret: {SECRET}
pools: [{{upstreams: [{{url: "h:1", metrics_token: hunter2}}]}}]
""")
    assert SECRET not in repr(found)
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("pools", "fault"),
    [
        ("{upstreams: ['h:1']}, {upstreams: ['h:2']}",
         "only one may be without models"),
        ("{models: [a], upstreams: ['h:1']}, {models: [a], upstreams: ['h:2']}",
         "model a is that of more than one"),
        ("{models: [a], log: l, upstreams: ['h:1']}, {log: l, upstreams: ['h:2']}",
         "log l is that of more than one"),
        ("{name: p, models: [a], upstreams: ['h:1']}, {name: p, upstreams: ['h:2']}",
         "name p is that of more than one"),
    ],
)  # fmt: skip
def test_what_only_one_pool_can_have(pools, fault):
    """Two that share it could not be told apart."""
    assert wrong(f"pools: [{pools}]") == [
        f"pools: {fault}" + (": it takes all other names" if "without" in fault else "")
    ]


def test_a_replica_stands_in_a_pool_once():
    """Its queue would count twice."""
    assert wrong("pools: [{upstreams: ['h:1', 'http://h:1/']}]") == [
        "pools[0].upstreams: h:1 is the name of more than one",
        "pools[0].upstreams: http://h:1/metrics is the metrics page of more than one",
    ]


def test_keys_of_tenants_need_the_secret_they_were_made_with():
    """Under another one no digest fits."""
    assert wrong(f"""
tenants: [{{name: a, keys: [{"a" * 32}]}}, {{name: a, keys: [{"a" * 32}]}}]
pools: [{{upstreams: ["h:1"]}}]
""") == [
        "secret is missing: keys of tenants are digests under it",
        "tenants: a is the name of more than one",
        "tenants: one key is given more than once",
    ]


def test_a_wrong_convention_is_said_with_its_path():
    """By whoever knows the conventions."""
    (fault,) = wrong("pools: [{upstreams: ['h:1']}]\nconventions: {sessionz: x}")
    assert fault.startswith("conventions.sessionz is not one of ")


@pytest.mark.parametrize(
    "text", ["pools: {}", "pools: []", "pools: x", "{}", "pools: [1]"]
)
def test_there_is_at_least_one_pool(text):
    """A gateway without an engine forwards nothing."""
    assert wrong(text)[0].startswith(("pools", "the document"))


@pytest.mark.parametrize("listen", ["x", ":1", "h:", "h:70000", "h:-1", "h:1x"])
def test_where_to_listen_is_a_host_and_a_port(listen):
    """Nothing is made up for what is missing."""
    assert wrong(f"listen: '{listen}'\npools: [{{upstreams: ['h:1']}}]") == [
        f"listen = '{listen}' is not HOST:PORT"
    ]


def test_what_pools_share_is_said_although_they_are_wrong_otherwise():
    """Nobody mends a file twice."""
    assert wrong("""
pools:
  - {name: p, upstreams: ["h:1/v1"], log: l}
  - {name: p, upstreams: ["h:2"], timeouts: {gap_s: 0}, log: l}
""")[2:] == [
        "pools: name p is that of more than one",
        "pools: log l is that of more than one",
        "pools: only one may be without models: it takes all other names",
    ]


def test_models_that_are_wrong_are_not_taken_for_none():
    """Else a mended file would lose a fault that it never had."""
    assert wrong(
        "pools: [{models: [1], upstreams: ['h:1']}, {upstreams: ['h:2']}]"
    ) == ["pools[0].models[0] = 1 is not a string"]


def test_all_that_is_no_pool_is_checked_beside_what_is_wrong():
    """Conventions and tenants, as far as they are right."""
    told = wrong("""
listen: x
conventions: {sessionz: x}
tenants: [{name: a, keys: []}, {name: a, keys: []}, {name: b}]
pools: [{upstreams: ["h:1"]}]
""")
    assert told[:2] == ["listen = 'x' is not HOST:PORT", "tenants[2].keys is missing"]
    assert told[2].startswith("conventions.sessionz is not one of ")
    assert told[3:] == ["tenants: a is the name of more than one"]


def test_a_secret_that_is_wrong_is_not_said_to_be_missing():
    """One fault is one line."""
    (fault,) = wrong(f"""
secret: short
tenants: [{{name: a, keys: [{"a" * 32}]}}]
pools: [{{upstreams: ["h:1"]}}]
""")
    assert "missing" not in fault


def test_keys_that_are_no_texts_are_faults_too():
    """They end nothing else."""
    assert any("pools[0]" in one for one in wrong("pools: [{1: 2, upstreams: [h:1]}]"))
