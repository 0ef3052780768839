"""A case that has lost its damage on the way tests nothing."""

import json

import pytest
from jsonschema import Draft202012Validator
from tests.cases.mapping import (
    CUT_BYTES,
    log_of,
    packed_log_of,
    requests,
    rows_of,
)


@pytest.fixture
def mapped(data):
    """The bytes of a case's file, and those of the log made from it."""

    def _mapped(name, **changes):
        raw = (data / "cases" / name).read_bytes()
        make = packed_log_of if name.endswith(".gz") else log_of
        return raw, make(raw, **changes)

    return _mapped


def test_a_torn_end_is_cut_by_as_many_bytes(mapped):
    """What is left ends where the case's row ends."""
    raw, log = mapped("s-lg-01/torn.jsonl")
    cut = b's_waiting": 19}}\n'
    assert len(cut) == CUT_BYTES
    assert raw.endswith(b'{"vllm:num_request')
    assert log.endswith(b'{"vllm:num_request')
    assert json.loads(log.splitlines()[-1] + cut)["id"] == "r99"


def test_odd_lines_stay_odd(mapped):
    """Seven lines that are no records and two blank ones, in their order."""
    _, log = mapped("s-lg-02/odd_types.jsonl")
    lines = log.splitlines()
    at = lines.index(b"null")
    assert lines[at : at + 5] == [b"null", b"[]", b"42", b'"x"', b"{}"]
    wrong = json.loads(lines[at + 5])
    assert (wrong["t_us"], wrong["id"], wrong["signals"]) == ("yesterday", 5, "none")
    assert b'"t_us": 1e999' in lines[at + 6]
    assert [line.strip() for line in lines[at + 7 : at + 9]] == [b"", b""]


@pytest.mark.parametrize("run_line_first", [True, False])
def test_a_mark_line_ends_and_a_bad_byte_stay(mapped, run_line_first):
    """The mark is before whatever stands first, and the byte is in its row's id."""
    raw, log = mapped("s-lg-03/bytes.jsonl", run_line_first=run_line_first)
    for bytes_ in (raw, log):
        assert bytes_.startswith(b"\xef\xbb\xbf{")
        assert bytes_.count(b"\r\n") == bytes_.count(b"\n")
        assert bytes_.count(b'"\xf750"') == 1
    first = json.loads(log.splitlines()[0][3:])
    assert first["k"] == ("run" if run_line_first else "decision")


def test_nuls_stay_in_front(mapped):
    """As many as in the case, and the first record on their line."""
    raw, log = mapped("s-lg-04/nul_prefix.jsonl")
    assert log.count(b"\0") == raw.count(b"\0") == 1_000_000
    assert log[1_000_000:1_000_001] == b"{"


def test_the_wall_clock_steps_back_and_log_time_does_not(mapped):
    """As our own writer writes it: `wall_us` says so, `t_us` goes on."""
    _, log = mapped("s-lg-06/clock_back.jsonl")
    lines = [json.loads(line) for line in log.splitlines()]
    times = [line["t_us"] for line in lines]
    assert times == sorted(times)
    offsets = [(r["wall_us"] - r["t_us"]) / 1e6 for r in lines if r["k"] == "run"]
    assert offsets == [0, -3600]


def test_a_packed_file_stays_packed(mapped):
    """It is gzip before and after."""
    for one in mapped("s-lg-05/decisions.jsonl.2.gz"):
        assert one.startswith(b"\x1f\x8b")


ROWS = [
    "s-bm-01/requests.jsonl", "s-bm-02/requests.jsonl", "s-bm-03/requests.jsonl",
    "s-bm-07/closed_loop.jsonl", "s-bm-10/requests.jsonl",
]  # fmt: skip


def test_what_is_mapped_is_our_format(mapped, data, root):
    """Every line that is no damage keeps to the published schemas."""
    folder = root / "docs" / "reference" / "log"
    kinds = {
        kind: Draft202012Validator(
            json.loads((folder / f"{kind}.schema.json").read_text("utf-8"))
        )
        for kind in ("run", "decision", "outcome")
    }
    lines = [
        json.loads(line)
        for name in ("s-lg-05/decisions.jsonl", "s-lg-06/clock_back.jsonl")
        for line in mapped(name)[1].splitlines()
    ]
    for name in ROWS:
        rows = rows_of(data / "cases" / name)
        lines += requests(rows[:20] + rows[-20:])
    for line in lines:
        kinds[line["k"]].validate(line)
