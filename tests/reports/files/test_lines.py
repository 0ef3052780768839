"""Reading a log line by line, whatever the file holds."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from tests.reports.byhand import decision, header, jsonl, kv
from tests.reports.cases import log_of

from admitperf.core.errors import LogError
from admitperf.reports.files import lines
from admitperf.reports.files.lines import LogFile, parse

GOOD = jsonl(header(), *(kv(seq, 0.5) for seq in range(1, 4))).encode()


@pytest.fixture
def case(data, tmp_path):
    """A field case's file, as a log of ours."""

    def _case(name):
        raw = (data / "cases" / name).read_bytes()
        path = tmp_path / "case.jsonl"
        path.write_bytes(log_of(raw))
        return str(path)

    return _case


def decisions(path):
    """How many decisions of a log can be used, and its faults by line."""
    log = list(LogFile(path))
    used = [line.fields for line in log if line.fields]
    faults = {line.number: line.fault for line in log if line.fault}
    return sum(fields["k"] == "decision" for fields in used), faults


def fault(raw):
    """Why a line cannot be used."""
    return parse(1, raw).fault


def test_s_lg_01_a_torn_last_line_costs_one_record(case):
    """99 rows are used, and the fault has its line."""
    path = case("s-lg-01/torn.jsonl")
    # The run line that was put in front moves row 100 to line 101.
    assert decisions(path) == (99, {101: "torn: it has no end"})


def test_s_lg_02_valid_json_of_the_wrong_kind_is_counted(case):
    """100 rows are used, 7 odd ones counted, blank lines ignored."""
    n, faults = decisions(case("s-lg-02/odd_types.jsonl"))
    assert (n, len(faults)) == (100, 7)


def test_s_lg_03_odd_bytes_cost_at_most_their_own_line(case):
    """A byte-order mark, CRLF and one bad byte: only the damaged row is lost."""
    n, faults = decisions(case("s-lg-03/bytes.jsonl"))
    assert (n, list(faults.values())) == (99, ["not UTF-8"])


def test_s_lg_03_the_first_line_survives_a_byte_order_mark(tmp_path):
    """The run line stands behind the mark and is read."""
    path = tmp_path / "mark.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n"))
    first, *rest = LogFile(str(path))
    assert first.fields["policy"] == "kv_threshold"
    assert [line.fault for line in rest] == [None] * 3


def test_s_lg_03_the_result_does_not_depend_on_the_locale(case):
    """The same rows under an ASCII locale."""
    script = (
        "import sys; from admitperf.reports.files.lines import LogFile;"
        " used = [line for line in LogFile(sys.argv[1]) if line.fields];"
        " print(sum(line.fields['k'] == 'decision' for line in used))"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C"}
    ran = subprocess.run(
        [sys.executable, "-c", script, case("s-lg-03/bytes.jsonl")],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == "99\n"


def test_s_lg_04_a_hole_of_nul_bytes_is_passed_over(case):
    """100 rows, and the bytes are counted."""
    path = case("s-lg-04/nul_prefix.jsonl")
    assert decisions(path) == (100, {})
    log = LogFile(path)
    assert len(list(log)) == 101
    assert log.nul_bytes == 1_000_000


def test_s_met_05_a_bare_nan_is_no_record(write):
    """What a strict JSON reader refuses is counted, never read as a number."""
    torn = json.dumps(kv(2, float("nan")))
    assert "NaN" in torn
    n, faults = decisions(write(header(), kv(1, 0.5), torn))
    assert (n, faults) == (1, {3: "NaN or Infinity, which is not JSON"})


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"null\n", "not an object"),
        (b'{"k":\n', "not JSON"),
        (b'{"k":', "torn: it has no end"),
        (b'{"k":"run"}\n', "run line without run"),
        (b"{}\n", "no kind: not a line of an AdmitPerf log"),
        (b'{"k":["run"]}\n', "no kind: not a line of an AdmitPerf log"),
        (b'{"k":"dream"}\n', "a kind this reader does not know"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b"9" * 5_000 + b"\n", "not JSON"),
        (b"\xff\n", "not UTF-8"),
        (b'{"k":"run","k":"run"}\n', "a name that stands twice"),
        (b" \t{}\n", "no kind: not a line of an AdmitPerf log"),
        (b"{} {}\n", "not JSON"),
    ],
)
def test_every_fault_is_named(raw, why):
    """A line that cannot be used says why, and raises nothing."""
    assert fault(raw) == why


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seq": -1}, "seq"),
        ({"seq": 1.5}, "seq"),
        ({"seq": 2**63}, "seq"),
        ({"seq": True}, "seq"),
        ({"t_us": "now"}, "t_us"),
        ({"run": 7}, "run"),
        ({"verdict": "maybe"}, "verdict"),
        ({"admitted": 1}, "admitted"),
        ({"signals": {"kv_pressure": "0.4"}}, "signals"),
        ({"signals": {"kv_pressure": 10**400}}, "signals"),
        ({"signals": "none"}, "signals"),
        ({"gates": [["kv_pressure", 0.4, "=>", 0.9, False]]}, "gates"),
        ({"gates": [["kv_pressure", 0.4]]}, "gates"),
        ({"gates": {"kv_pressure": 0.4}}, "gates"),
        ({"facts": []}, "facts"),
        ({"facts": {"attempt": "1"}}, "facts"),
        ({"facts": {"late_ms": True}}, "facts"),
        ({"estimate_ms": "1"}, "estimate_ms"),
        ({"raw": [1]}, "raw"),
        ({"reason": {}}, "reason"),
    ],
)
def test_a_field_of_the_wrong_type_makes_the_line_unusable(changes, why):
    """Counted with the field's name, not read as something it is not."""
    raw = json.dumps({**decision(1), **changes}).encode() + b"\n"
    assert fault(raw) == f"decision line with an unusable {why}"


def test_an_infinity_in_disguise_is_no_number():
    """1e999 is valid JSON and no finite number."""
    raw = json.dumps(kv(1, 0.5)).replace("0.5", "1e999").encode() + b"\n"
    assert fault(raw) == "decision line with an unusable signals"


def test_unknown_fields_and_nulls_are_left_alone():
    """A newer writer may add fields; null is the same as absent."""
    line = decision(1, colour="blue", facts=None, signals={"kv_pressure": None})
    assert fault(json.dumps(line).encode() + b"\n") is None


def test_a_last_line_without_an_end_counts_when_it_is_whole(tmp_path):
    """Only what cannot be parsed is torn."""
    path = tmp_path / "noend.jsonl"
    path.write_bytes(GOOD.rstrip(b"\n"))
    assert decisions(str(path))[0] == 3


def test_a_compressed_log_reads_like_a_plain_one(tmp_path):
    """Gzip is told by its bytes, not by the file's name."""
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(GOOD))
    assert decisions(str(path))[0] == 3


def test_zstd_is_no_log_until_it_is_unpacked(tmp_path):
    """The standard library has no zstd; the one clear error says what to do."""
    path = tmp_path / "packed.jsonl"
    path.write_bytes(b"\x28\xb5\x2f\xfd and so on")
    with pytest.raises(LogError, match=r"unpack it with zstd -d") as caught:
        LogFile(str(path)).checked()
    assert str(caught.value).startswith(str(path))


def test_a_compressed_log_cut_short_gives_what_it_has(tmp_path):
    """The rows before the cut, and a notice that it ends early."""
    path = tmp_path / "cut.gz"
    many = jsonl(header(), *(kv(seq, seq / 5000) for seq in range(1, 4000)))
    path.write_bytes(gzip.compress(many.encode())[:-2000])
    log = LogFile(str(path))
    assert 0 < len(list(log)) < 3999
    assert "ended before" in log.cut


def test_a_line_too_long_to_hold_is_one_fault(tmp_path, monkeypatch):
    """The lines around it are read, and memory never holds it."""
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 5_000)
    path = tmp_path / "long.jsonl"
    path.write_bytes(GOOD + b"x" * 50_000 + b"\n" + GOOD.splitlines()[1] + b"\n")
    faults = [line.fault for line in LogFile(str(path))]
    assert faults == [None] * 4 + ["too long", None]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no records"),
        (b"\n\n  \n", "no records"),
        (b"\0" * 5_000, "no records"),
        (bytes(range(256)) * 40, "no records: line 1: not"),
        (b"\x1f\x8bnot gzip at all", "no records"),
    ],
)
def test_a_file_that_is_no_log_is_one_clear_error(tmp_path, content, why):
    """The path and what is wrong, in one line."""
    path = tmp_path / "no.log"
    path.write_bytes(content)
    with pytest.raises(LogError) as caught:
        LogFile(str(path)).checked()
    assert str(caught.value).startswith(f"{path}: {why}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["/nowhere/at/all.jsonl", "/", "nul\0byte"])
def test_a_file_that_cannot_be_opened_is_one_clear_error(path):
    """Missing, a folder, an impossible name: each is a LogError that names it."""
    with pytest.raises(LogError) as caught:
        LogFile(path).checked()
    assert str(caught.value).startswith(path)
