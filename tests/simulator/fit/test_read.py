"""Readers of recorded runs: three formats, and clear words for everything else."""

import gzip
import json

import pytest
from tests.simulator.fit.made import run, written

from admitperf.core.errors import LogError
from admitperf.simulator.fit.read import read

META = {"type": "meta", "args": {"api": "vllm", "rate": 2.0}, "meta": {}}
REQ = {
    "type": "req", "id": 1, "sent": 1.0, "status": 200, "plen": 10, "max_tokens": 3,
    "chunks": [[0.1, 1], [0.2, 2]], "fin": 1.25,
}  # fmt: skip


def put(path, *lines):
    """Lines as a file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_load_run_says_when_each_token_came(tmp_path):
    """Times are from the start of the run, sizes as given."""
    (one,) = read(put(tmp_path / "a.jsonl", META, REQ)).asked
    assert one.chunks == ((1.1, 1), (1.2, 2))
    assert (one.output_tokens, one.ttft_ms) == (3, pytest.approx(100))
    assert one.e2e_ms == pytest.approx(250)


def test_the_note_of_a_load_run_becomes_the_engines_sizes(tmp_path):
    """vLLM keeps one block for itself; llama.cpp's cells are counted in sixteens."""
    vllm = {"max_num_seqs": 8, "block_size": 32, "num_blocks": 48, "engine": "v"}
    made = read(put(tmp_path / "v.jsonl", {**META, "meta": vllm}, REQ))
    assert made.engine == {"max_num_seqs": 8, "block_size": 32, "kv_blocks": 47}
    llama = {"slots": 4, "ctx_per_slot": 1024, "cache_prompt": False}
    made = read(put(tmp_path / "l.jsonl", {**META, "meta": llama}, REQ))
    assert made.engine["max_num_seqs"] == 4
    assert made.engine["kv_blocks"] * made.engine["block_size"] == 4096
    assert made.engine["prefix_caching"] is False
    whole = {"slots": 4, "ctx": 4096}
    made = read(put(tmp_path / "w.jsonl", {**META, "meta": whole}, REQ))
    assert made.engine["max_model_len"] == 1024


def test_scrapes_are_read_in_both_engines_names(tmp_path):
    """What an engine does not show is None, not 0."""
    page = {"llamacpp:requests_processing": 4, "llamacpp:requests_deferred": 9}
    scrape = {"type": "scrape", "t": 2.0, "m": page}
    (sight,) = read(put(tmp_path / "a.jsonl", META, scrape, REQ)).sights
    assert (sight.running, sight.waiting, sight.kv_fraction) == (4, 9, None)


def test_what_was_not_answered_is_left_out_and_counted(tmp_path):
    """A 503, an error inside a stream and an empty answer are no observations."""
    failed = [{**REQ, "status": 503}, {**REQ, "err": "x"}, {**REQ, "chunks": []}]
    made = read(put(tmp_path / "a.jsonl", META, REQ, *failed))
    assert len(made.asked) == 1
    assert sum(made.left_out.values()) == 3


def test_a_session_turn_is_set_off_by_the_end_of_the_one_before(tmp_path):
    """Its pause is kept, since it belongs to the caller and not to the engine."""
    turns = [
        {**REQ, "id": 1, "session": "s", "prefix": [["s", 5]]},
        {**REQ, "id": 2, "session": "s", "sent": 2.0, "fin": 2.5},
        {**REQ, "id": 3, "session": None, "sent": 2.1, "fin": 2.5},
    ]
    first, second, alone = read(put(tmp_path / "a.jsonl", META, *turns)).asked
    assert (first.after, first.prefix) == (None, (("s", 5),))
    assert (second.after, second.think_s) == ("1", pytest.approx(0.75))
    assert alone.after is None


def test_a_packed_file_is_read_and_a_torn_last_line_passed_over(tmp_path):
    """As a run that was stopped leaves it."""
    path = tmp_path / "a.jsonl.gz"
    text = json.dumps(META) + "\n" + json.dumps(REQ) + '\n{"type":"req","id'
    path.write_bytes(gzip.compress(text.encode()))
    assert [one.id for one in read(path).asked] == ["1"]
    assert read(path).name == "a"


def test_a_bench_file_is_read_with_its_tokens(data):
    """What `vllm bench serve --save-detailed` wrote: every answer token has a time."""
    made = read(data / "fixtures" / "real-vllm-bench-serve-0.32.0.json")
    assert (made.kind, made.rate_per_s, made.date) == ("bench", 3.0, "2026-11-29")
    assert len(made.asked) == 60
    for one in made.asked:
        assert sum(n for _, n in one.chunks) == one.output_tokens
        assert one.first_s <= one.chunks[-1][0] <= one.end_s + 0.01


LOG = [
    {"k": "run", "run": "a", "t_us": 1, "notes": {"engine": "vLLM", "max_num_seqs": 4}},
    {
        "k": "decision", "run": "a", "seq": 1, "t_us": 5_000_000, "admitted": True,
        "age_ms": 100, "facts": {"input_tokens": 50, "max_output_tokens": 9},
        "signals": {"running": 2, "queue_depth": 3, "kv_pressure": 0.5},
        "raw": {"vllm:num_preemptions_total": 7},
    },
    {
        "k": "outcome", "run": "a", "seq": 2, "of": 1, "t_us": 6_000_000, "ok": True,
        "ttft_ms": 200.0, "e2e_ms": 900.0, "output_tokens": 8, "admitted": True,
    },
]  # fmt: skip


def test_a_decision_log_is_a_run_of_what_was_let_in(tmp_path):
    """Sizes from the facts, times from the outcome, readings as scrapes."""
    made = read(put(tmp_path / "log.jsonl", *LOG))
    (one,) = made.asked
    assert (one.input_tokens, one.output_tokens) == (50, 8)
    assert (one.sent_s, one.ttft_ms, one.e2e_ms) == (0.0, 200.0, 900.0)
    (sight,) = made.sights
    assert (sight.at_s, sight.running, sight.waiting) == (pytest.approx(-0.1), 2, 3)
    assert (sight.kv_fraction, sight.preemptions) == (0.5, 7)
    assert made.engine == {"max_num_seqs": 4}
    assert not made.timed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("no json\nat all\n", "a, line 1: is no JSON"),
        ("[1]\n", "a, line 1: is no JSON object"),
        ('{"some": "json"}\n', "neither a load run"),
        ('{"some": 1}\n{"thing": 2}\n', "neither a load run"),
        ('{"type":"meta"}\n', "no request that was answered"),
        ('{"input_lens": [1]}', "lacks output_lens"),
        ('{"request_throughput": 1.0}', "--save-detailed"),
        ('{"k":"run","run":"a","basis":"samples"}\n', "made from samples"),
        ('{"k":"run","run":"a"}\n', "no outcome has"),
        (json.dumps({**REQ, "plen": "ten"}) + "\n", "plen: 'ten' is no number"),
        (json.dumps({**REQ, "chunks": [3]}) + "\n", "no pairs of seconds"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, text, said):
    """The file, the line where there is one, and what is wrong with it."""
    path = tmp_path / "a"
    path.write_text(text)
    with pytest.raises(LogError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_said_in_one_line(tmp_path):
    """Likewise one that is no text, or a broken package."""
    with pytest.raises(LogError, match="No such file"):
        read(tmp_path / "none")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LogError, match="UTF-8"):
        read(tmp_path / "b")
    (tmp_path / "c").write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(LogError, match=r"c: "):
        read(tmp_path / "c")


def test_a_made_run_reads_back(tmp_path):
    """The writer the other tests use writes what the reader reads."""
    made = run(clients=2, requests=6)
    back = read(written(made, tmp_path / "m.jsonl"))
    assert [one.output_tokens for one in back.asked] == [
        one.output_tokens for one in made.asked
    ]
    assert back.clients == 2
