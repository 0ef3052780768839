"""Field cases about retries: what real clients are told, and what they then do."""

import json

import anthropic
import openai
import pytest
from tests.gateway.conformance.door import before, configured, gateway
from tests.gateway.conformance.door import scripted_engine as scripted
from tests.gateway.conformance.wire import CHAT, post, wish
from tests.real.process import until

from admitperf.core.clock import SYSTEM

IDS = [f"request-{n}" for n in range(30)]


@pytest.fixture(scope="module")
def saying(tmp_path_factory):
    """A gateway whose policy does what the model is called."""
    folder = tmp_path_factory.mktemp("saying")
    with scripted() as engine, gateway(folder, *before(engine, "says")) as door:
        yield door


@pytest.mark.parametrize(
    ("hint", "whole_s", "exact_ms"),
    [
        ("200", "1", ["200"]),
        ("999", "1", ["999"]),
        ("1000", "1", ["1000"]),
        ("1001", "2", ["1001"]),
        ("0", "1", []),
    ],
)
def test_s_rt_02_a_hint_goes_out_in_both_headers(saying, hint, whole_s, exact_ms):
    """Whole seconds rounded up, milliseconds beside them, exactly one of each."""
    body = wish(CHAT, f"defer:queue_depth:hint={hint}", text=f"hint {hint}")
    reply, _ = post(saying.url, CHAT, body)
    assert reply.status == 503
    assert reply.one("retry-after") == whole_s
    assert reply.all("retry-after-ms") == exact_ms
    assert reply.one("retry-after").isdecimal()


def test_s_rt_02_without_a_hint_a_503_still_carries_one(saying):
    """A wait is computed where the policy names none; a misfit gets none."""
    reply, _ = post(saying.url, CHAT, wish(CHAT, "defer:queue_depth"))
    assert reply.one("retry-after") in ("1", "2")
    assert 1000 <= int(reply.one("retry-after-ms")) <= 1250
    misfit, _ = post(saying.url, CHAT, wish(CHAT, "reject:too_large"))
    assert misfit.all("retry-after") == misfit.all("retry-after-ms") == []


def told(door, model):
    """Thirty different callers, refused alike: what each was told."""
    ends = []
    for one in IDS:
        headers = {"x-request-id": f"{one}-{model}"}
        reply, body = post(door.url, CHAT, wish(CHAT, model, text=one), headers)
        assert reply.status == 503
        ends.append((int(reply.one("retry-after")), json.loads(body)["error"], reply))
    return ends


@pytest.mark.parametrize(
    ("estimate_s", "low_s", "high_s"),
    [(57_600, 48, 60), (61, 48, 60), (60, 48, 60), (5, 5, 7)],
)
def test_s_rt_03_waits_are_spread_and_never_past_the_cap(
    saying, estimate_s, low_s, high_s
):
    """Thirty ids do not come back at once, and the body has the true estimate."""
    ends = told(saying, f"defer:kv_pressure:estimate={estimate_s * 1000}")
    waits = [wait for wait, _, _ in ends]
    assert low_s <= min(waits) <= max(waits) <= high_s
    assert len({reply.one("retry-after-ms") for _, _, reply in ends}) > 25
    errors = {(e["estimate_ms"], e["capped"]) for _, e, _ in ends}
    assert errors == {(estimate_s * 1000, estimate_s > 60)}
    ids = {reply.one("x-request-id") for _, _, reply in ends}

    def verdicts():
        lines = saying.lines("decision")
        return [line["verdict"] for line in lines if line["id"] in ids]

    assert until(lambda: len(verdicts()) == len(IDS), 5)
    assert set(verdicts()) == {"reject" if estimate_s > 60 else "defer"}


def test_s_rt_03_the_cap_can_be_changed(tmp_path):
    """An operator whose callers wait two minutes says so once."""
    with scripted() as engine:
        patient = {"name": "says", "max_defer_s": 120.0}
        capped = {"upstreams": [engine], "policy": patient}
        with gateway(tmp_path / "d", *configured(tmp_path, pools=[capped])) as door:
            waits = [one[0] for one in told(door, "defer:kv_pressure:estimate=61000")]
    assert 61 <= min(waits) <= max(waits) <= 77
    assert max(waits) > 62


MODEL = "defer:queue_depth:hint=1000:until=2"
TALK = [{"role": "user", "content": "one call"}]


def asked_openai(url):
    """One call of the official OpenAI client, with the retries it has by default."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        return client.chat.completions.create(model=MODEL, messages=TALK)


def asked_anthropic(url):
    """One call of the official Anthropic client, with the retries it has by default."""
    with anthropic.Anthropic(base_url=url, api_key="k") as client:
        return client.messages.create(model=MODEL, messages=TALK, max_tokens=64)


@pytest.mark.parametrize("ask", [asked_openai, asked_anthropic])
def test_s_rt_08_three_attempts_of_a_real_client_are_one_call(
    tmp_path, run_of, admitperf, ask
):
    """Refused twice and served: the log has attempts 0, 1, 2 of one call."""
    began_ns = SYSTEM.monotonic_ns()
    with scripted() as engine:
        words = [*before(engine, "says"), "--slo", "ttft_ms=1000"]
        with gateway(tmp_path / "door", *words) as door:
            assert ask(door.url)
            lines = door.waits_for("decision", 3)
            door.waits_for("outcome")
    assert (SYSTEM.monotonic_ns() - began_ns) / 1e9 > 2
    facts = [line["facts"] for line in lines]
    assert [line["admitted"] for line in lines] == [False, False, True]
    assert [one.get("attempt", 0) for one in facts] == [0, 1, 2]
    assert len({one["logical_id"] for one in facts}) == 1
    run = run_of(door.log)
    calls = run["cost"]["requests"]
    assert (calls["offered"], calls["attempts"]) == (1, 3)
    assert (calls["refused_attempts"]["n"], calls["refused_attempts"]["of"]) == (2, 3)
    assert (run["load"]["calls"], run["load"]["attempts"]) == (1, 3)
    shown = " ".join(admitperf("report", door.log).output.split())
    assert "3 attempts of 1 call" in shown


def test_s_rt_08_both_times_to_first_token_are_told(tmp_path, run_of):
    """A streamed call waited two seconds more by the user's clock than by the last."""
    with scripted() as engine, gateway(tmp_path, *before(engine, "says")) as door:
        with openai.OpenAI(base_url=f"{door.url}/v1", api_key="k") as client:
            stream = client.chat.completions.create(
                model=MODEL, messages=TALK, stream=True
            )
            assert list(stream)
        door.waits_for("outcome")
    calls = run_of(door.log)["cost"]["requests"]
    user, last = calls["ttft_user_ms"], calls["ttft_last_ms"]
    assert (user["n"], last["n"]) == (1, 1)
    assert user["high"] - last["high"] >= 2000
