"""Files that were cut, mangled or made up: refused in one line, or read right."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.simulator.fit.made import run, written

from admitperf.cli import main
from admitperf.core.errors import ConfigError, LogError
from admitperf.simulator.fit.checking import checked
from admitperf.simulator.fit.fitting import fitted
from admitperf.simulator.fit.read import read
from admitperf.simulator.profile import parsed, profile

INF, NAN, HUGE = float("inf"), float("nan"), 10**400
DEEP = "[" * 100_000
REQ = {
    "type": "req", "id": 1, "sent": 1.0, "status": 200, "plen": 10, "max_tokens": 3,
    "chunks": [[0.1, 1], [0.2, 2]], "fin": 1.25,
}  # fmt: skip
META = {"type": "meta", "args": {}, "meta": {}}
SCRAPE = {"type": "scrape", "t": 1.0, "m": {}}
BENCH = {
    "input_lens": [10, 20], "output_lens": [5, 6], "ttfts": [0.1, 0.1],
    "itls": [[0.01] * 4, [0.01] * 5], "latencies": [0.2, 0.3], "start_times": [0, 1],
    "request_rate": 1, "date": "20261130-1", "model_id": "m",
}  # fmt: skip
DECISION = {
    "k": "decision", "run": "a", "seq": 1, "t_us": 5_000_000,
    "facts": {"input_tokens": 50, "max_output_tokens": 9}, "signals": {"running": 1},
}  # fmt: skip
OUTCOME = {
    "k": "outcome", "run": "a", "of": 1, "ok": True, "ttft_ms": 200.0, "e2e_ms": 900.0,
    "output_tokens": 8,
}  # fmt: skip


def put(path, *lines):
    """Lines as a file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def refused(path, said):
    """The one line that a file is refused with."""
    with pytest.raises(LogError) as caught:
        read(path)
    words = str(caught.value)
    assert words.startswith(str(path))
    assert said in words
    assert "\n" not in words
    assert len(words) < len(str(path)) + 200
    return words


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("plen", 0), ("plen", -5), ("plen", 10**15), ("plen", HUGE), ("plen", "5"),
        ("plen", None), ("plen", 1.5), ("plen", True), ("plen", {}), ("id", None),
        ("id", {"a": 1}), ("id", ""), ("id", "\ud800"), ("sent", -1), ("sent", 1e300),
        ("sent", NAN), ("sent", None), ("fin", INF), ("fin", 0.0), ("fin", "x"),
        ("priority", "high"), ("priority", [1]), ("priority", INF),
        ("session", {"a": 1}), ("prefix", 5), ("prefix", [["a", -5]]),
        ("prefix", [["a", 11]]), ("prefix", [["a", 6], ["b", 6]]),
        ("prefix", [["a", INF]]), ("prefix", [[{}, 1]]), ("prefix", ["ab"]),
        ("cached_tokens", 10**9), ("usage", [1]), ("max_tokens", 0),
        ("chunks", [[-0.1, 1]]), ("chunks", [[NAN, 1]]), ("chunks", [[INF, 1]]),
        ("chunks", [[0.1, INF]]), ("chunks", [[0.1, 0]]), ("chunks", [[0.1, -3]]),
        ("chunks", [[0.1, 10**9]]), ("chunks", [[0.2, 1], [0.1, 1]]),
        ("chunks", "ab"), ("chunks", {"ab": 1}), ("chunks", 5), ("chunks", ["ab"]),
        ("chunks", [[0.1, HUGE]]), ("chunks", [[None, 1]]),
    ],
)  # fmt: skip
def test_a_field_of_a_request_that_cannot_be_is_named(tmp_path, field, value):
    """File, line and field, whatever is wrong with it."""
    path = put(tmp_path / "a.jsonl", META, {**REQ, field: value})
    assert ", line 2: " in refused(path, f": {field}: ")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({**META, "meta": 5}, "meta"),
        ({**META, "args": [1]}, "args"),
        ({**META, "t0_wall": 1e300}, "t0_wall"),
        ({**META, "t0_wall": 1e12}, "t0_wall"),
        ({**META, "args": {"closed": "x"}}, "closed"),
        ({**META, "args": {"rate": 1e-300}}, "rate"),
        ({**META, "meta": {"num_blocks": 1}}, "num_blocks"),
        ({**META, "meta": {"max_num_seqs": 0}}, "max_num_seqs"),
        ({**META, "meta": {"max_num_seqs": "x"}}, "max_num_seqs"),
        ({**META, "meta": {"num_blocks": 10**18}}, "num_blocks"),
        ({**META, "meta": {"engine": ["a"]}}, "engine"),
        ({**META, "meta": {"slots": 4, "ctx_per_slot": 1}}, "ctx_per_slot"),
        ({**SCRAPE, "t": "x"}, "t"),
        ({**SCRAPE, "m": {"vllm:num_requests_waiting": -1}}, "num_requests_waiting"),
        ({**SCRAPE, "m": {"vllm:kv_cache_usage_perc": 5e300}}, "kv_cache_usage_perc"),
        ({**SCRAPE, "cpu": {"busy": "x"}}, "busy"),
        ({**SCRAPE, "cpu": {"busy": 1e300, "eng": 1, "me": 1}}, "busy"),
    ],
)
def test_a_note_or_a_scrape_that_cannot_be_is_named(tmp_path, line, field):
    """What an engine shows is held to bounds as well; its NaN is nothing shown."""
    path = put(tmp_path / "a.jsonl", line, REQ)
    assert ", line 1: " in refused(path, f"{field}: ")
    page = {**SCRAPE, "m": {"vllm:num_requests_waiting": NAN}}
    assert read(put(path, page, REQ)).sights[0].waiting is None


def test_one_id_for_two_requests_names_both_lines(tmp_path):
    """In a log it is an answer that ended twice, or a decision taken twice."""
    path = put(tmp_path / "a.jsonl", REQ, REQ)
    words = refused(path, "id: '1' is on another line too")
    assert "line 2" in words
    assert "line 1" in words
    refused(put(path, DECISION, OUTCOME, OUTCOME), "of: ")
    refused(put(path, DECISION, DECISION, OUTCOME), "seq: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ttfts", [None, 0.1]), ("ttfts", [{}, {}]), ("ttfts", [NAN, NAN]),
        ("ttfts", [-1, -1]), ("latencies", [INF, INF]), ("latencies", [0.01, 0.3]),
        ("itls", [5, 6]), ("itls", ["ab", "cd"]), ("itls", [[-0.1], [0.1]]),
        ("output_lens", [10**12, 5]), ("output_lens", [HUGE, 5]),
        ("output_lens", [-1, -2]), ("input_lens", [0, 0]), ("input_lens", ["x", "y"]),
        ("start_times", ["a", 1]), ("start_times", ["a", "b"]), ("errors", 5),
        ("errors", ["", "", ""]), ("request_rate", [1]), ("request_rate", "x"),
        ("max_concurrency", 0), ("date", "99999999"), ("model_id", [1]),
    ],
)  # fmt: skip
def test_a_field_of_a_bench_that_cannot_be_is_named(tmp_path, field, value):
    """With its place in the list; so many tokens at once are no hang."""
    path = tmp_path / "b.json"
    path.write_text(json.dumps({**BENCH, field: value}))
    refused(path, f"b.json: {field}")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({**DECISION, "t_us": 1e300}, "t_us"),
        ({**DECISION, "seq": 1e300}, "seq"),
        ({**DECISION, "facts": [1, 2]}, "facts"),
        ({**DECISION, "facts": "abc"}, "facts"),
        ({**DECISION, "facts": {"input_tokens": 10**10}}, "input_tokens"),
        ({**DECISION, "facts": {"input_tokens": 5, "session": [1]}}, "session"),
        ({**DECISION, "facts": {"input_tokens": 5, "priority": "x"}}, "priority"),
        ({**DECISION, "signals": {"running": "x"}}, "running"),
        ({**DECISION, "age_ms": 1e300}, "age_ms"),
        ({**DECISION, "raw": {"num_preemptions": "x"}}, "num_preemptions"),
        ({**OUTCOME, "output_tokens": 10**12}, "output_tokens"),
        ({**OUTCOME, "ttft_ms": 5000, "e2e_ms": 10}, "e2e_ms"),
        ({**OUTCOME, "e2e_ms": -1}, "e2e_ms"),
        ({"k": "run", "run": "a", "notes": [1]}, "notes"),
    ],
)
def test_a_field_of_a_log_that_cannot_be_is_named(tmp_path, line, field):
    """File and line too."""
    good = {one["k"]: one for one in (DECISION, OUTCOME)} | {line["k"]: line}
    path = put(tmp_path / "l.jsonl", *good.values())
    assert ", line " in refused(path, f": {field}")


@pytest.mark.parametrize("text", [DEEP, '{"type":"meta","x":' + DEEP, "9" * 5000])
def test_text_that_a_parser_gives_up_on_is_no_json(tmp_path, text):
    """Nesting without end, and numbers of thousands of digits."""
    path = tmp_path / "a"
    path.write_text(text + "\n")
    refused(path, "line 1: is no JSON")


def test_a_mark_of_the_order_of_bytes_is_passed_over(tmp_path):
    """Some editors put one before the text of a run, or of a profile."""
    plain = put(tmp_path / "a.jsonl", META, REQ)
    plain.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert len(read(plain).asked) == 1
    marked = tmp_path / "p.json"
    marked.write_bytes(b"\xef\xbb\xbf" + profile("vllm-cpu").text().encode())
    assert profile(marked) == profile("vllm-cpu")


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("engine", {"step_ms": HUGE}), ("engine", {"kv_blocks": HUGE}),
        ("engine", {"scheduling": ["fcfs"]}), ("engine", {"prefix_caching": 5}),
        ("residuals", {"median_abs_fraction": HUGE}),
        ("residuals", {"run_to_run": 1e308}),
        ("residuals", {"run_to_run": 800}), ("residuals", {"run_to_run": -1}),
        ("provenance", {"priors": {"step_ms": 5}}), ("provenance", {"source": {}}),
    ],
)  # fmt: skip
def test_a_profile_with_what_cannot_be_is_refused(part, told):
    """In one short line, which names the field."""
    document = profile("vllm-cpu").document()
    document[part] = {**document[part], **told}
    with pytest.raises(ConfigError, match=f"{part}.*{next(iter(told))[:6]}") as caught:
        parsed(json.dumps(document), "p")
    assert len(str(caught.value)) < 200
    with pytest.raises(ConfigError, match="nested too deeply"):
        parsed(DEEP, "p")


def typed(*words):
    """What a command line does."""
    return CliRunner().invoke(main, ["sim", *map(str, words)])


@pytest.fixture
def recorded(tmp_path):
    """A run, as a file."""
    return written(run(clients=2, requests=12), tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "prefix_caching=5"], "prefix_caching 5 is no true or false"),
        (["--engine", "block_size=none"], "block_size None is no whole number"),
        (["--engine", "kv_blocks=" + "9" * 5000], "kv_blocks '999"),
        (["--engine", "block_size=1", "--engine", "block_size=2"], "said twice"),
        (["--engine", "kv_blocks=2"], "takes 65"),
        (["SAME"], "r and r are the same run"),
    ],
)
def test_fit_refuses_what_would_make_a_profile_of_nonsense(
    recorded, tmp_path, words, said
):
    """No engine, no room for a request, or one run for two: and nothing is written."""
    out = tmp_path / "p.json"
    named = [recorded if word == "SAME" else word for word in words]
    done = typed("fit", recorded, *named, "-o", out)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("capacity", ["inf", "nan", "1e-300", "0", "1e300"])
def test_check_refuses_a_capacity_no_engine_has(recorded, capacity):
    """It would decide a rule."""
    done = typed("check", "vllm-cpu", recorded, "--capacity", capacity)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "not in the range" in done.stderr


def test_check_names_the_run_whose_engine_cannot_be(recorded):
    """Sizes of which each can be, though not together."""
    made = run(clients=2, requests=4)
    odd = replace(made, engine={**made.engine, "max_num_seqs": 10**6})
    with pytest.raises(ConfigError, match="run made: max_num_batched_tokens"):
        checked(profile("vllm-cpu"), odd, repeats=1)


def test_times_that_no_step_explains_are_refused_without_a_warning():
    """All tokens of a run at one moment."""
    made = run(clients=2, requests=12)
    asked = [
        replace(one, ttft_ms=0.0, chunks=tuple((one.sent_s, n) for _, n in one.chunks))
        for one in made.asked
    ]
    with pytest.raises(ConfigError, match="no costs of steps explain"):
        fitted([replace(made, asked=tuple(asked))], name="x")


def test_a_profile_that_cannot_be_written_leaves_the_old_one(recorded, tmp_path):
    """As on a full disk: the file is named, and no part of a new one stays."""
    out = tmp_path / "p.json"
    out.write_text("old")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        "from admitperf.cli import main; main(sys.argv[1:])"
    )
    words = ["sim", "fit", str(recorded), "-o", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{out}: cannot be written" in done.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json", "r.jsonl"]
    done = typed("fit", recorded, "-o", tmp_path / "none" / "p.json")
    assert (done.exit_code, "cannot be written" in done.stderr) == (2, True)


def test_a_profile_that_is_replaced_keeps_its_link_and_its_rights(recorded, tmp_path):
    """What the link leads to is what changes."""
    out, link = tmp_path / "p.json", tmp_path / "l.json"
    out.write_text("old")
    out.chmod(0o640)
    link.symlink_to(out)
    assert typed("fit", recorded, "-o", link).exit_code == 0
    assert link.is_symlink()
    assert profile(out).name == "l"
    assert out.stat().st_mode & 0o777 == 0o640
