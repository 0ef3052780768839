"""Traces of requests become sessions at the instants they were recorded at."""

import json

import pytest

from admitperf.bench.workloads import (
    TraceError,
    azure,
    decisions,
    miniswe,
    mooncake,
    servegen,
    timed,
    weka,
)
from admitperf.bench.workloads.measuring import (
    dispersion,
    gap_cv,
    hit_share,
    peak,
)


@pytest.fixture
def file(tmp_path):
    """Writes a file; what is no text is a line of JSON."""

    def written(*lines):
        path = tmp_path / "trace.txt"
        told = (one if isinstance(one, str) else json.dumps(one) for one in lines)
        path.write_text("\n".join(told), encoding="utf-8")
        return path

    return written


def times(found):
    """When its requests come."""
    return [at_s for at_s, _ in found.begun]


def only(session):
    """The one call of a session."""
    (call,) = session.calls
    return call


# ----------------------------------------------------------------------------- azure

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"


def test_azure_says_when_a_request_came_and_its_lengths(file):
    """To 100 ns, from the first; an empty answer counts as one token."""
    path = file(
        AZURE, "2023-11-16 18:17:03.9799600,4808,10", "2023-11-16 18:17:04.0000001,5,0"
    )
    found = azure.read(path)
    assert times(found) == [0.0, pytest.approx(0.0200401, abs=1e-6)]
    assert [only(one).input_tokens for one in found.pool] == [4808, 5]
    assert [only(one).output_tokens for one in found.pool] == [10, 1]
    assert (found.synthetic, found.notes["trace_requests"]) == (False, 2)


@pytest.mark.parametrize(
    ("name", "count", "cv", "most", "idc"),
    [
        ("code", 8_819, 13.2, 132, (13.2, 71.6, 164.0)),
        ("conv", 19_366, 1.09, 29, (1.4, 3.9, 16.1)),
    ],
)
def test_azure_is_as_bursty_as_was_measured_before(shared, name, count, cv, most, idc):
    """Gaps, the fullest two seconds, and the dispersion at 1, 10 and 60 s."""
    path = shared / "traces" / f"AzureLLMInferenceTrace_{name}.csv"
    at_s = times(azure.read(path))
    assert (len(at_s), peak(at_s, 2.0)) == (count, most)
    assert gap_cv(at_s) == pytest.approx(cv, rel=0.01)
    found = [dispersion(at_s, window_s) for window_s in (1.0, 10.0, 60.0)]
    assert found == pytest.approx(idc, rel=0.04)


# -------------------------------------------------------------------------- mooncake


def asked(at, blocks, *, prompt=None, answer=9):
    """A request as Mooncake and vLLM have it."""
    return {"timestamp": at, "input_length": prompt or 512 * len(blocks),
            "output_length": answer, "hash_ids": blocks}  # fmt: skip


def test_mooncake_is_moved_off_its_grid_and_says_so(file):
    """By a seed, by no more than the grid; without it the grid is back."""
    lines = [asked(3000 * (n // 50), [0, n + 1]) for n in range(500)]
    found, again = mooncake.read(file(*lines)), mooncake.read(file(*lines))
    assert found == again != mooncake.read(file(*lines), seed=2)
    assert "0 to 3 s added to each instant" in found.said
    grid = times(mooncake.read(file(*lines), jitter_s=0.0))
    assert set(grid) == {3.0 * n for n in range(10)}
    moved = [at_s - times(found)[0] for at_s in times(found)]
    assert len(set(moved)) == 500
    assert max(moved) < grid[-1] + 3.0


def test_a_session_is_recovered_from_what_its_prompts_begin_with(file):
    """Block 0 is everyone's; the third goes on from the first, the fourth from none."""
    common = [asked(0, [0, 1000 + n]) for n in range(60)]  # nobody's own block
    path = file(
        asked(0, [0, 1, 2]), asked(3000, [0, 7, 8]), asked(60_000, [0, 1, 3, 4]),
        asked(90_000, [0, 9, 4]), *common,
    )  # fmt: skip
    found = mooncake.read(path, jitter_s=0.0, sessions=True)
    told = {one.name: one for one in found.pool if len(one.calls) > 1}
    (one,) = told.values()
    first, second = one.calls
    assert (second.after, second.gap_s) == (0, 60.0)
    shared, own = first.prefix, second.prefix
    assert shared[0] == own[0] == ("mooncake/0", 512)
    assert found.notes["sessions_recovered"] == len(found.pool) == 63
    assert "recovered" in found.notes["session_source"]


def test_what_one_request_holds_is_no_session_of_another(file):
    """One that came at the same instant, or lacks a block of it, begins anew."""
    path = file(
        asked(0, [1, 2, 3]), asked(0, [1, 2, 3, 4]), asked(3000, [1, 9, 3]),
        asked(6000, [1, 9, 8]),
    )  # fmt: skip
    found = mooncake.read(path, jitter_s=0.0, sessions=True)
    assert sorted(len(one.calls) for one in found.pool) == [1, 1, 2]


def test_mooncake_is_what_was_measured_before(shared):
    """Its gaps with and without the grid, its reuse, and the sessions in it."""
    path = shared / "traces" / "mooncake_conversation_trace.jsonl.gz"
    found, grid = mooncake.read(path), mooncake.read(path, jitter_s=0.0)
    assert len(found.pool) == 12_031
    assert gap_cv(times(grid)) == pytest.approx(3.03, abs=0.01)
    assert (peak(times(grid), 2.0), round(dispersion(times(grid), 1.0), 1)) == (28, 7.9)
    assert gap_cv(times(found)) == pytest.approx(1.01, abs=0.04)
    assert peak(times(found), 2.0) == pytest.approx(22, abs=2)
    assert hit_share(found.begun) == pytest.approx(0.374, abs=0.001)
    sessions = mooncake.read(path, sessions=True).pool
    several = [one for one in sessions if len(one.calls) > 1]
    assert (len(sessions), len(several)) == (8_073, 2_040)
    assert sum(len(one.calls) for one in several) == 5_998
    forks = [  # a call that another one follows as well
        one for one in several if len({c.after for c in one.calls}) < len(one.calls)
    ]
    assert len(forks) == 4
    gaps = sorted(c.gap_s for one in several for c in one.calls if c.after is not None)
    assert gaps[len(gaps) // 2] == pytest.approx(123, abs=1)
    assert gaps[len(gaps) * 9 // 10] == pytest.approx(474, abs=2)


def test_timed_trace_has_seconds_and_blocks_of_its_own_size(file):
    """As vLLM reads it: 16 tokens a block unless told otherwise."""
    found = timed.read(
        file(asked(0.5, [5, 6], prompt=30), asked(2.25, [5, 9], prompt=20))
    )
    assert times(found) == [0.0, 1.75]
    one, other = (dict(only(session).prefix) for session in found.pool)
    both = one.keys() & other.keys()
    assert sum(min(one[chain], other[chain]) for chain in both) == 16


# --------------------------------------------------------------------------- miniswe


def test_calls_a_line_are_sessions_with_the_tools_time(file):
    """Told, it is the pause; else what is left of the time when the answer has come."""
    told = [
        {
            "session": "a",
            "in": 100,
            "out": 10,
            "blocks": [[0, 1]],
            "tool_ms_after": 120,
        },
        {"session": "a", "in": 200, "out": 10, "blocks": [[0, 3]]},
    ]
    first, second = miniswe.read(file(*told)).pool[0].calls
    assert (second.after, second.gap_s) == (0, 0.12)
    assert (first.prefix, second.prefix) == (((0, 64),), ((0, 192),))
    timed_ = [{**one, "t": 5.0 * n} for n, one in enumerate(told)]
    del timed_[0]["tool_ms_after"]
    (_, later) = miniswe.read(file(*timed_), answer_ms_per_token=100.0).pool[0].calls
    assert later.gap_s == pytest.approx(4.0)


def test_only_what_sessions_share_has_a_name(file):
    """A session drawn twice must not find its own beginning in the cache."""
    found = miniswe.read(
        file(
            {"session": "a", "t": 0, "in": 192, "out": 1, "blocks": [[0, 3]]},
            {"session": "b", "t": 1, "in": 128, "out": 1, "blocks": [[0, 1], [50, 1]]},
        )
    )
    one, other = (only(session).prefix for session in found.pool)
    assert one[0] == other[0] == ("miniswe/0", 64)
    assert all(isinstance(chain, int) for chain, _ in (*one[1:], *other[1:]))
    assert sum(tokens for _, tokens in one) == 192


def test_miniswe_is_what_was_measured_before(shared):
    """Sessions, calls and reuse over all of them."""
    found = miniswe.read(shared / "traces" / "lmcache_miniswe_calls.jsonl")
    calls = [call for one in found.pool for call in one.calls]
    assert (len(found.pool), len(calls)) == (20, 402)
    assert hit_share(found.begun) == pytest.approx(0.931, abs=0.001)
    gaps = sorted(call.gap_s for call in calls if call.after is not None)
    assert gaps[len(gaps) // 2] < 1.0  # tools take under a second


# -------------------------------------------------------------------------- servegen

LENGTHS = [10, 20, 30, 40, 50, 60, 70]


def test_a_client_has_windows_a_tenant_and_lengths(file):
    """One without lengths has the mean of the others', one without a window pauses."""
    path = file(
        {"client": 3, "windows": [[0, 2.0, 1, "G", 1, 1], [1200, 4.0, 3, "W", 1, 1]],
         "input_tokens_q": LENGTHS, "output_tokens_q": LENGTHS},
        {"client": 4, "windows": [[600, 1.0, 1.0, "G", 1, 1]]},
    )  # fmt: skip
    one, other = servegen.clients(path)
    assert [window.rate_per_s for window in one.windows] == [2.0, 0.0, 4.0]
    assert [window.rate_per_s for window in other.windows] == [0.0, 1.0, 0.0]
    assert one.sizes.input_tokens == other.sizes.input_tokens
    assert one.sizes.input_tokens[0] == 10
    assert one.sizes.input_tokens[-1] == 70
    found = servegen.read(path)
    assert {session.tenant for session in found.pool} == {"client-3", "client-4"}


def test_servegen_is_what_was_measured_before(shared):
    """74 clients, of whom one sends over half."""
    path = shared / "traces" / "servegen_language_mlarge_clients.jsonl"
    rates = sorted(client.rate_per_s for client in servegen.clients(path))
    assert len(rates) == 74
    assert rates[-1] / sum(rates) == pytest.approx(0.52, abs=0.005)
    assert sum(rates[-5:]) / sum(rates) == pytest.approx(0.73, abs=0.005)


# ------------------------------------------------------------------------- decisions


def decision(seq, at_s, **facts):
    """A decision of a log, with facts."""
    return {"k": "decision", "run": "r", "seq": seq, "t_us": round(at_s * 1e6),
            "id": f"r{seq}", **({"facts": facts} if facts else {})}  # fmt: skip


def outcome(of, at_s, **more):
    """Its outcome."""
    return {"k": "outcome", "run": "r", "seq": 99 + of, "of": of, "ok": True,
            "t_us": round(at_s * 1e6), **more}  # fmt: skip


def test_a_log_becomes_traffic_again(file):
    """At its due instants; answers as long as they were, or as they might have been."""
    found = decisions.read(
        file(
            {"k": "run", "run": "r", "t_us": 0},
            decision(1, 10.0, input_tokens=50, late_ms=500.0, tenant="t"),
            decision(2, 12.0, input_tokens=60, max_output_tokens=40),
            decision(3, 13.0),
            outcome(1, 11.0, output_tokens=7),
        )
    )
    assert times(found) == [0.0, 2.5]
    assert [only(one).output_tokens for one in found.pool] == [7, 40]
    assert [one.tenant for one in found.pool] == ["t", None]
    assert (
        found.notes["answers_unknown"] == found.notes["decisions_without_length"] == 1
    )


def test_tries_are_one_request_and_sessions_keep_their_pauses(file):
    """A pause runs from the answer; a prompt that grew goes on from the one before."""
    found = decisions.read(
        file(
            decision(1, 0.0, input_tokens=50, session="s", logical_id="a"),
            decision(2, 4.0, input_tokens=50, session="s", logical_id="a", attempt=1),
            outcome(2, 6.0, output_tokens=5),
            decision(3, 9.0, input_tokens=80, session="s"),
            decision(4, 20.0, input_tokens=30, session="s"),
        )
    )
    (one,) = found.pool
    assert [call.gap_s for call in one.calls] == [0.0, 3.0, 11.0]
    assert [call.prefix for call in one.calls] == [((0, 50),), ((0, 80),), ((1, 30),)]
    assert found.notes["tries_merged"] == 1


# ----------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("read", "lines", "words"),
    [
        (azure.read, ["a,b,c"], "line 1: is not TIMESTAMP,ContextTokens,GeneratedTok"),
        (azure.read, [], "line 1: is not TIMESTAMP"),
        (azure.read, [AZURE], "holds no request"),
        (azure.read, [AZURE, "2023-11-16 18:17:03,1"], "line 2: is no time and two"),
        (azure.read, [AZURE, "yesterday,1,2"], "line 2: TIMESTAMP = 'yesterday' is"),
        (mooncake.read, [{"timestamp": 0}], "line 1: the field 'input_length' is miss"),
        (mooncake.read, [asked("0", [1])], "line 1: timestamp = '0' is no number"),
        (mooncake.read, [asked(0, ["x"])], "line 1: hash_ids are no whole numbers"),
        (mooncake.read, [asked(-1, [1])], "line 1: timestamp = -1 is not at least 0"),
        (mooncake.read, [asked(0, [1], answer=1.5)], "output_length = 1.5 is no whole"),
        (timed.read, ["[1]"], "line 1: is no JSON object"),
        (timed.read, ["{"], "line 1: is no JSON"),
        (timed.read, [], "holds no request"),
        (miniswe.read, [{"session": "a", "in": 1}], "line 1: the field 'out' is miss"),
        (miniswe.read, [{"session": "a", "in": 1, "out": 1, "blocks": [3]}],
         "line 1: blocks are no pairs"),
        (miniswe.read, [], "holds no call"),
        (servegen.read, [{"client": 1}], "line 1: the field 'windows' is missing"),
        (servegen.read, [{"client": 1, "windows": [[1, 2]]}], "line 1: window 1 is"),
        (servegen.read, [{"client": 1, "windows": []}], "line 1: a client without a"),
        (servegen.read, [{"client": 1, "windows": [[0, 1, 1, "G"]]}], "no client te"),
        (servegen.read, [], "holds no client"),
        (decisions.read, [decision(1, 0.0)], "no decision says how long its prompt"),
        (decisions.read, [{"k": "decision"}], "line 1: the field 'run' is missing"),
        (decisions.read, [], "nothing to replay"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_one_line_with_its_name(file, read, lines, words):
    """And the line's number where one line is at fault."""
    with pytest.raises(TraceError, match=r"trace\.txt") as caught:
        read(file(*lines))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


HUGE = int("9" * 400)
CALL = {"session": "a", "t": 0, "in": 9, "out": 1, "blocks": [[0, 1]]}
EVENT = {"t": 0, "in": 9, "out": 1, "think": 0, "api": 0, "blocks": [[0, 1]]}
CLIENT = {"client": 1, "windows": [[0, 1, 1, "G"]], "input_tokens_q": LENGTHS,
          "output_tokens_q": LENGTHS}  # fmt: skip
DECISION = decision(1, 0.0, input_tokens=9)
ANSWER = outcome(1, 1.0, output_tokens=3)


def sessions_of(*events):
    """A session of the WEKA trace."""
    return {"session": "s", "events": list(events)}


def logged(line, **facts):
    """A decision with other facts."""
    return {**line, "facts": {**line["facts"], **facts}}


def places(bad):
    """Every number of requests with something else in its place, and its name."""
    for field in ("timestamp", "input_length", "output_length"):
        for read in (mooncake.read, timed.read):
            yield read, [{**asked(0, [1]), field: bad}], field
    for place, field in enumerate(("start", "rate", "cv")):
        window = [0, 1, 1, "G"]
        window[place] = bad
        yield servegen.read, [{**CLIENT, "windows": [window]}], field
    for field in ("input_tokens_q", "output_tokens_q"):
        yield servegen.read, [{**CLIENT, field: [bad, *LENGTHS[1:]]}], field


def places_in_sessions(bad):
    """The same where calls belong together."""
    for field in ("t", "in", "out", "tool_ms_after"):
        yield miniswe.read, [{**CALL, field: bad}], field
    yield miniswe.read, [{**CALL, "blocks": [[0, bad]]}], "blocks"
    for field in ("t", "in", "out", "think", "api"):
        one = {**EVENT, field: bad}
        yield weka.read, [sessions_of(one, {**EVENT, "think": None}, EVENT)], field
    yield weka.read, [sessions_of({**EVENT, "blocks": [[0, bad]]})], "blocks"
    beside = {"t": bad, "subagent": "x", "calls": [EVENT]}
    yield weka.read, [sessions_of(EVENT, beside)], "t"
    for field in ("t_us", "seq"):
        yield decisions.read, [{**DECISION, field: bad}], field
    for field in ("input_tokens", "late_ms", "max_output_tokens"):
        yield decisions.read, [logged(DECISION, **{field: bad})], field
    for field in ("t_us", "of", "output_tokens"):
        line = {**ANSWER, field: bad}
        yield decisions.read, [DECISION, line], field


@pytest.mark.parametrize(
    ("bad", "read", "lines", "field"),
    [
        pytest.param(bad, *rest, id=f"{name}-{rest[0].__module__[26:]}-{rest[2]}")
        for name, bad in (
            ("400-digits", HUGE), ("infinite", float("inf")), ("nan", float("nan")),
            ("1e308", 1e308), ("negative", -1), ("list", [1]), ("true", True),
            ("over", 2**53 + 2),
        )
        for rest in (*places(bad), *places_in_sessions(bad))
    ],
)  # fmt: skip
def test_every_number_is_bounded_and_named_when_it_is_none(
    file, bad, read, lines, field
):
    """With file and line, in one line that is short whatever stands there."""
    path = file(*lines)
    with pytest.raises(TraceError) as caught:
        read(path)
    where, _, what = str(caught.value).partition(": ")
    assert where == f"{path}, line {len(lines)}"
    assert field in what
    assert "\n" not in what
    assert len(what) < 120


@pytest.mark.parametrize("column", [1, 2])
@pytest.mark.parametrize("bad", ["9" * 400, "9" * 5000, "-1", "inf", "1e3", ""])
def test_a_count_of_azures_is_bounded_too(file, column, bad):
    """Its field is the one of the header."""
    row = ["2023-11-16 18:17:03", "1", "2"]
    row[column] = bad
    with pytest.raises(TraceError, match=r"trace\.txt, line 2: ") as caught:
        azure.read(file(AZURE, ",".join(row)))
    assert azure.HEADER[column] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_time_of_azures_has_digits_for_its_fraction(file):
    """Or it would be infinite."""
    with pytest.raises(TraceError, match=r"line 2: TIMESTAMP = .* is no time"):
        azure.read(file(AZURE, "2023-11-16 18:17:03.1e99999,1,2"))


def test_an_integer_that_python_does_not_read_is_named_by_its_field(file):
    """It has more digits than `int` takes."""
    text = json.dumps(asked(1, [1])).replace("9", "9" * 5000)
    with pytest.raises(TraceError, match="line 1: output_length = inf is over"):
        timed.read(file(text))


@pytest.mark.parametrize(
    ("read", "lines", "field"),
    [
        (decisions.read, [logged(DECISION, session=["s"])], "session"),
        (decisions.read, [logged(DECISION, tenant={})], "tenant"),
        (decisions.read, [logged(DECISION, logical_id=["s"])], "logical_id"),
        (decisions.read, [{**DECISION, "run": []}], "run"),
        (decisions.read, [{**DECISION, "facts": 5}], "facts"),
        (decisions.read, [DECISION, {**ANSWER, "ok": "no"}], "ok"),
        (miniswe.read, [{**CALL, "session": ["s"]}], "session"),
        (weka.read, [{**sessions_of(EVENT), "session": ["s"]}], "session"),
        (servegen.read, [{**CLIENT, "client": ["s"]}], "client"),
        (servegen.read, [{**CLIENT, "windows": 5}], "windows"),
        (servegen.read, [{**CLIENT, "windows": [[0, 1, 1, ["G"]]]}], "family"),
        (timed.read, [{**asked(0, [1]), "hash_ids": [[1]]}], "hash_ids"),
    ],
)
def test_a_name_that_is_none_is_named(file, read, lines, field):
    """A list cannot be looked up, and an object is nobody's name."""
    path = file(*lines)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, line {len(lines)}: ")
    assert field in str(caught.value).partition(": ")[2]


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ([[0, 1, 1, "G"], [2**53, 1, 1, "G"]], "windows lie"),
        ([[0, 0, 1, "G"]], "no client asks anything"),
    ],
)
def test_clients_who_never_ask_are_none(file, windows, words):
    """Nor those whose windows no memory holds."""
    with pytest.raises(TraceError, match=words):
        servegen.read(file({**CLIENT, "windows": windows}))


@pytest.mark.parametrize("bound", [None, 700])
def test_the_bound_of_a_logged_call_does_not_tell_its_answer(file, bound):
    """Beyond it, or where the log has none, many answers have one bound."""
    facts = {} if bound is None else {"max_output_tokens": bound}
    answers = range(260, 2_000, 13)
    found = decisions.read(
        file(
            *(decision(n, n, input_tokens=9, session=f"s{n % 7}", **facts)
              for n in answers),
            *(outcome(n, n + 1, output_tokens=n) for n in answers),
        )
    )  # fmt: skip
    told = [(one.bound(c), c.output_tokens) for one in found.pool for c in one.calls]
    assert len(told) == len(answers)
    assert all(bound >= answer for bound, answer in told)
    assert len({bound for bound, _ in told}) <= 3
    assert sum(bound == answer for bound, answer in told) <= 1
