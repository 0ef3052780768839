"""Each workload offers the load it is asked for, and says what it is."""

import pickle
from collections import Counter
from itertools import groupby

import pytest

from admitperf.bench.workloads import TraceError, WorkloadError, available, workload
from admitperf.simulator.traffic.sessions import sessions_hash

OURS = {
    "agent-burst", "agent-sessions", "agents", "chat", "chat-prefix", "chat-steady",
    "code-burst", "fan-out", "tenants", "tool-tight",
}  # fmt: skip
REQUESTS = ["chat", "chat-prefix", "chat-steady", "code-burst", "tenants"]
SESSIONS = sorted(OURS - set(REQUESTS))
RECORDED = {
    "agent-sessions": "weka_cc_sessions.part2.jsonl",
    "chat-prefix": "mooncake_conversation_trace.jsonl.gz",
    "chat-steady": "AzureLLMInferenceTrace_conv.csv",
    "code-burst": "AzureLLMInferenceTrace_code.csv",
    "tenants": "servegen_language_mlarge_clients.jsonl",
    "tool-tight": "lmcache_miniswe_calls.jsonl",
}


@pytest.fixture(scope="module")
def made():
    """Workloads, each made once."""
    found = {}

    def of(name):
        if name not in found:
            found[name] = workload(name)
        return found[name]

    return of


def test_ours_come_along():
    """Each says in a line what it is."""
    assert set(available()) >= OURS
    assert all(told.endswith(".") for name, told in available().items() if name in OURS)


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_seed_is_a_block_and_the_same_one_is_the_same(made, name):
    """In order, with names of their own, in processes that are handed the workload."""
    one = made(name).fitting(8_192)
    blocks = [one.begun(0.5, 120.0, seed) for seed in (1, 1, 2)]
    again = pickle.loads(pickle.dumps(one)).begun(0.5, 120.0, 1)
    hashes = [sessions_hash(begun) for begun in (*blocks, again)]
    assert hashes[0] == hashes[1] == hashes[3] != hashes[2]
    at_s = [begin_s for begin_s, _ in blocks[0]]
    assert at_s == sorted(at_s)
    assert 0.0 <= at_s[0] <= at_s[-1] < 120.0
    assert set(Counter(session.name for _, session in blocks[0]).values()) == {1}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("rate_per_s", [0.3, 2.0, 9.0])
def test_requests_are_as_many_as_are_asked_for(made, name, rate_per_s):
    """Of one call each, below the rate of the source and above it."""
    begun = made(name).begun(rate_per_s, 200.0, 1)
    assert len(begun) == round(rate_per_s * 200.0)
    assert all(len(session.calls) == 1 for _, session in begun)
    assert not any(session.begun_before for _, session in begun)


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_are_under_way_at_the_start_and_keep_their_pauses(made, name):
    """Load moves beginnings and nothing within."""
    one = made(name)
    pauses = {s.name: [call.gap_s for call in s.calls] for s in one.pool()}
    for rate_per_s in (0.02, 0.4):
        begun = one.begun(rate_per_s, 400.0, 1)
        new = [session for _, session in begun if not session.begun_before]
        assert len(new) == pytest.approx(rate_per_s * 400.0, rel=0.25, abs=9)
        for session in new:
            gaps_s = [call.gap_s for call in session.calls]
            assert gaps_s == pauses[session.name.partition("~")[0]]
        assert all(at_s == 0.0 for at_s, s in begun if s.begun_before)
    assert len(new) < len(begun)  # at the higher rate


@pytest.mark.parametrize("name", sorted(OURS))
def test_what_is_offered_fits_the_engine_and_says_what_was_done(made, name):
    """The second time nothing is left of the first."""
    one = made(name)
    small = one.fitting(1_000)
    for sessions in (small.pool(), [s for _, s in small.begun(0.4, 90.0, 1)]):
        sizes = [c.input_tokens + c.output_tokens for s in sessions for c in s.calls]
        assert 0 < max(sizes) <= 1_000
    assert small.fitting(8_192).words() == one.fitting(8_192).words()
    assert one.fitting(10_000_000).words() == one.words()
    assert small.words() != one.words()
    assert small.notes() != one.notes()


@pytest.mark.parametrize("name", sorted(OURS))
def test_it_is_said_how_load_is_made_and_what_is_made_up(made, name):
    """And where the numbers come from, where they come from anywhere."""
    one = made(name)
    assert one.scaling().startswith("Load is made")
    assert one.scaling().endswith(".")
    assert one.synthetic == (name in {"fan-out", "chat", "agents"})
    assert one.notes().get("synthetic", False) is one.synthetic
    assert ("generated_from" in one.notes()) is not one.synthetic


@pytest.mark.parametrize(("name", "file"), sorted(RECORDED.items()))
def test_with_its_trace_a_workload_replays_it(shared, name, file):
    """And still offers what is asked for."""
    one = workload(name, trace=[shared / "traces" / file]).fitting(16_384)
    assert "recorded" in one.words()
    assert one.noun == workload(name).noun
    begun = one.begun(0.5, 300.0, 1)
    new = [session for _, session in begun if not session.begun_before]
    assert len(new) == pytest.approx(150, abs=1 if one.noun == "request" else 15)
    alone = workload(str(shared / "traces" / file))
    assert (alone.noun, len(alone.pool())) == (one.noun, len(alone.pool()))


def test_a_burst_of_agents_is_one_tenants(made):
    """Eight begin side by side; of those under way some may be through."""
    begun = made("agent-burst").begun(0.4, 600.0, 1)
    new = [(at_s, s) for at_s, s in begun if not s.begun_before]
    for _, several in groupby(new, key=lambda one: one[0]):
        together = list(several)
        assert len(together) == 8
        assert len({session.tenant for _, session in together}) == 1
    assert len({session.tenant for _, session in new}) == len(new) / 8
    three = workload("agent-burst", at_once=3).begun(0.4, 600.0, 1)
    most = Counter(s.tenant for _, s in three if not s.begun_before)
    assert set(most.values()) == {3}


def test_a_task_fans_out(made):
    """40 calls of three kinds, 30 within two seconds, some cut or sent twice."""
    pool = made("fan-out").pool()
    for task in pool:
        kinds = Counter(call.kind for call in task.calls)
        assert kinds == {"read": 24, "test": 10, "plan": 6}
        at_once = [call for call in task.calls if call.after is None]
        assert len(at_once) == 30
        assert max(call.gap_s for call in at_once) <= 2.0
        assert [call.after for call in task.calls[30:]] == list(range(29, 39))
    calls = [call for task in pool for call in task.calls]
    hung_up = [call for call in calls if call.hangs_up_after is not None]
    assert all(call.hangs_up_after < call.output_tokens for call in hung_up)
    assert len(hung_up) / len(calls) == pytest.approx(0.05, abs=0.01)
    resent = sum(call.resent_after_s is not None for call in calls)
    assert resent / len(calls) == pytest.approx(0.03, abs=0.01)
    assert made("fan-out").words().startswith("SYNTHETIC")
    assert available()["fan-out"].startswith("SYNTHETIC")


def test_thinning_keeps_conversations_whole(made):
    """What is left of one still finds what it said before."""
    whole = made("chat-prefix").begun(3.3, 900.0, 1)
    thin = made("chat-prefix").begun(0.33, 900.0, 1)
    turns = [Counter(s.name.partition(".")[0] for _, s in one) for one in (whole, thin)]
    names = turns[1].keys() & turns[0].keys()
    assert names
    parted = [name for name in names if turns[1][name] != turns[0][name]]
    assert len(parted) <= 1  # the last one is cut so that the number comes out


def test_copies_of_a_trace_share_nothing_with_it(made):
    """A chain that recurs under load would be a cache that nobody has."""
    rate_per_s = made("chat-prefix").notes()["source_rate_per_s"]
    begun = made("chat-prefix").begun(2.5 * rate_per_s, 60.0, 1)
    chains = {}
    for _, session in begun:
        copy = session.name.partition("~")[2]
        for chain, _ in session.calls[0].prefix:
            chains.setdefault(chain, set()).add(copy)
    assert len({copy for copies in chains.values() for copy in copies}) == 3
    assert all(len(copies) == 1 for copies in chains.values())


def test_a_given_divisor_stays(made):
    """With it more may have to be left out."""
    free, given = made("tool-tight").fitting(4_096), workload("tool-tight", divisor=2)
    assert free.notes()["token_divisor"] != 2
    assert given.notes()["token_divisor"] == 2
    fitted = given.fitting(4_096)
    assert fitted.notes()["token_divisor"] == 2
    assert fitted.notes()["calls_left_out"] > free.notes()["calls_left_out"]


def test_chat_may_say_how_much_it_matters(made):
    """Each request has one of the priorities, and nothing else of it changes."""
    plain, ranked = made("chat"), workload("chat", priorities=[0, 10])
    one, other = (kind.begun(5.0, 60.0, 3) for kind in (plain, ranked))
    assert {session.priority for _, session in one} == {0}
    shares = Counter(session.priority for _, session in other)
    assert set(shares) == {0, 10}
    assert 0.3 < shares[10] / len(other) < 0.7
    assert [at_s for at_s, _ in one] == [at_s for at_s, _ in other]
    assert "priorities [0, 10]" in ranked.words()
    assert ranked.notes()["priorities"] == "0,10"


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("agent-session", {}, "nearest: agent-sessions"),
        ("nope.jsonl", {}, "no workload 'nope.jsonl', and no file of that name"),
        ("chat", {"speed": 2}, "'chat' takes no speed; it takes: input_tokens"),
        ("chat", {"divisor": 2}, "'chat' takes no divisor"),
        ("chat", {"trace": ["x"]}, "'chat' takes no trace"),
        ("chat", {"priorities": ["high"]}, "['high'] are no whole priorities"),
        ("chat", {"priorities": [True]}, "[True] are no whole priorities"),
        ("tool-tight", {"divisor": 0}, "divisor = 0 is no whole number of at least 1"),
        ("tool-tight", {"sessions": "many"}, "sessions = 'many' is no number of at"),
        ("tool-tight", {"sessions": [3]}, "sessions = [3] is no number of at least 1"),
        (
            "tool-tight",
            {"longest_gap_s": float("inf")},
            "longest_gap_s = inf is no num",
        ),
        ("tool-tight", {"longest_gap_s": -1}, "longest_gap_s = -1 is no number of at"),
        ("agent-burst", {"at_once": 0}, "at_once = 0 is no number of at least 1"),
        ("fan-out", {"sessions": 0}, "sessions = 0 is no number of at least 1"),
        ("code-burst", {"trace": ["a", "b"]}, "its trace is one file, not 2"),
    ],
)
def test_what_cannot_be_had_is_one_line(name, given, words):
    """Naming what is known instead, where it helps."""
    with pytest.raises(WorkloadError) as caught:
        workload(name, **given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_fits_into_an_engine_that_is_too_small(made):
    """Said in one line."""
    with pytest.raises(WorkloadError, match="no call fits into 2 tokens"):
        workload("tool-tight", divisor=1).fitting(2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("hello", "is no JSON"),
        ('{"a": 1}', "is of no form that is read: weka, azure, miniswe"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1}', "at one instant"),
    ],
)
def test_a_file_of_no_form_is_one_line(tmp_path, text, words):
    """With its name."""
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((TraceError, WorkloadError)) as caught:
        workload(str(path))
    assert words in str(caught.value)


def test_a_trace_takes_its_own_parameters(tmp_path):
    """And no others; its form may be given."""
    path = tmp_path / "trace.jsonl"
    line = (
        '{{"timestamp": {}, "input_length": 64, "output_length": 3, "hash_ids": [{}]}}'
    )
    path.write_text("\n".join(line.format(9 * n, n % 2) for n in range(8)), "utf-8")
    assert workload(str(path)).name == "mooncake"
    seconds = workload(str(path), form="timed_trace")
    assert (seconds.name, seconds.noun) == ("timed_trace", "request")
    assert workload(str(path), form="timed_trace", sessions=True).noun == "session"
    with pytest.raises(
        WorkloadError, match="a trace takes no speed; it takes: divisor"
    ):
        workload(str(path), speed=2)
    with pytest.raises(WorkloadError, match="no form 'x': there are weka"):
        workload(str(path), form="x")


def lines_of(path, stamps, *, blocks=1, prompt=64):
    """A trace of requests at these instants."""
    path.write_text(
        "\n".join(
            f'{{"timestamp": {at}, "input_length": {prompt}, "output_length": 3,'
            f' "hash_ids": {list(range(blocks))}}}'
            for at in stamps
        ),
        encoding="utf-8",
    )
    return str(path)


@pytest.mark.parametrize(
    ("stamps", "sizes", "name", "doubt"),
    [
        (("0", "27.48"), {}, "timed_trace", False),
        (("0", *["1"] * 998, "27.48"), {}, "timed_trace", False),
        (("0.0", "27"), {}, "timed_trace", False),
        (("0", "27"), {"prompt": 64, "blocks": 4}, "timed_trace", False),
        (("0", "3000"), {"prompt": 1_000, "blocks": 2}, "mooncake", False),
        (("0", "3000"), {"prompt": 64, "blocks": 1}, "mooncake", True),
        (("0", "3000"), {"prompt": 64, "blocks": 0}, "mooncake", True),
        (("0", "3000"), {"prompt": 900, "blocks": 9}, "mooncake", True),
    ],
)
def test_seconds_are_not_taken_for_milliseconds(tmp_path, stamps, sizes, name, doubt):
    """Whatever the first line looks like; where nothing tells, that is said."""
    path = lines_of(tmp_path / "trace.jsonl", stamps, **sizes)
    found = workload(path)
    assert found.name == name
    assert ("form=timed_trace" in found.words()) is doubt
    assert ("form_assumed" in found.notes()) is doubt
    for form in ("mooncake", "timed_trace"):
        forced = workload(path, form=form)
        assert forced.name == form
        assert "form_assumed" not in forced.notes()


def test_a_trace_that_lasts_no_time_is_refused(tmp_path):
    """Its rate would be infinite, or nearly."""
    path = lines_of(tmp_path / "trace.jsonl", ("0.0", "1e-320"))
    with pytest.raises(WorkloadError, match="at one instant"):
        workload(path)


def told(sessions):
    """The bound of each call, and how long its answer is."""
    return [(one.bound(c), c.output_tokens) for one in sessions for c in one.calls]


@pytest.mark.parametrize("longest_tokens", [None, 2_000])
@pytest.mark.parametrize("name", sorted(OURS))
def test_a_bound_does_not_tell_an_answer(made, name, longest_tokens):
    """What no host can know reaches no policy, in a small engine either."""
    pairs = told(made(name).fitting(longest_tokens).pool())
    assert all(bound >= answer for bound, answer in pairs)
    assert len({bound for bound, _ in pairs}) < len({answer for _, answer in pairs})
    assert sum(bound == answer for bound, answer in pairs) < 0.1 * len(pairs)


@pytest.mark.parametrize("file", sorted(RECORDED.values()))
def test_a_bound_does_not_tell_a_recorded_answer(shared, file):
    """Nor does one that an importer chose."""
    pairs = told(workload(str(shared / "traces" / file)).pool())
    assert len({bound for bound, _ in pairs}) < 8
    assert sum(bound == answer for bound, answer in pairs) < 0.1 * len(pairs)
