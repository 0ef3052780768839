"""The look at a log's bytes, and the copy of what can be used."""

import gzip
import json
import os
import shutil
import subprocess
import sys

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reports.byhand import decision, header, jsonl, kv, outcome
from tests.reports.cases import log_of
from tests.reports.files.test_any_bytes import ANY, bent

from admitperf.core.errors import LogError
from admitperf.reports.files import lines, vet
from admitperf.reports.files.discover import LogSource, discover
from admitperf.reports.files.lines import parse
from admitperf.reports.files.vet import clean, prescan

GOOD = jsonl(header(), *(kv(seq, 0.5) for seq in range(1, 4))).encode()
MARK = b"\xef\xbb\xbf"


@pytest.fixture
def source(tmp_path):
    """Write bytes to a file and get it as discover finds it."""

    def _source(content, name="log.jsonl"):
        path = tmp_path / name
        path.write_bytes(content)
        with discover([str(path)]) as found:
            (made,) = found.logs
        return made

    return _source


@pytest.fixture
def cleaned(tmp_path):
    """Clean a source; get what was found, and the lines of the copy."""

    def _cleaned(made):
        folder = tmp_path / "private"
        folder.mkdir(exist_ok=True)
        done = clean(made, folder)
        copy = done.path.read_bytes()
        assert not copy or copy.endswith(b"\n")
        return done, [json.loads(line) for line in copy.splitlines()]

    return _cleaned


@pytest.fixture
def packed(tmp_path):
    """Pack lines of text with zstd: DuckDB is the one packer that is always there."""

    def _packed(text):
        path = tmp_path / "packed.jsonl.zst"
        with duckdb.connect() as database:
            database.execute(
                "CREATE TABLE t AS SELECT unnest($1) AS line", [text.splitlines()]
            )
            database.execute(
                f"COPY t TO '{path}' (FORMAT csv, COMPRESSION zstd, HEADER false,"
                " DELIMITER '\x01', QUOTE '', ESCAPE '')"
            )
        return path.read_bytes()

    return _packed


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (GOOD, None),
        (GOOD.rstrip(b"\n"), None),  # whole, so that it can be read
        (b"", None),
        ("é\u2028\U0001f600\n".encode() * 9, None),
        (b"\0" + GOOD, "NUL bytes"),
        (GOOD + b"\0", "NUL bytes"),
        (MARK + GOOD, "a byte-order mark"),
        (GOOD + MARK + GOOD, None),  # no mark in the middle: no line of the grammar
        (GOOD.replace(b"\n", b"\r\n"), "carriage returns"),
        (GOOD + b'{"\r"}\n', "carriage returns"),
        (GOOD + b'{"a":"\xff"}\n', "not UTF-8"),
        (GOOD + "é".encode()[:1], "not UTF-8"),
        (b"\xed\xa0\x80\n", "not UTF-8"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_duckdb_would_pass_over_is_seen(source, content, why, pack):
    """In a plain file and in a packed one."""
    assert prescan(source(pack(content))) == why


def test_a_character_across_two_chunks_is_no_fault(source, monkeypatch):
    """The look goes over the bounds of what is read at once."""
    monkeypatch.setattr(vet, "_CHUNK_BYTES", 3)
    assert prescan(source("aé€\U0001f600\n".encode() * 7)) is None
    assert prescan(source(b"abc" + MARK)) is None  # a mark is one at the start only


def test_a_damaged_gzip_file_is_seen_though_it_unpacks(source):
    """DuckDB does not look at the checksum; a flipped bit may be another digit."""
    whole = gzip.compress(GOOD, 0)  # stored: the bytes stand in it as they are
    at = whole.index(b"0.5")
    assert "CRC" in prescan(source(whole[:at] + b"0.7" + whole[at + 3 :]))
    assert "ends early" in prescan(source(whole[:-9]))
    assert prescan(source(whole + whole)) is None


def test_a_zstd_file_cut_short_is_seen(source, packed):
    """DuckDB reads it up to there without a word."""
    whole = packed(GOOD.decode() * 2000)
    assert prescan(source(whole)) is None
    assert prescan(source(whole + whole)) is None
    for cut in (1, 3, 5, len(whole) // 2, len(whole) - 5):
        assert prescan(source(whole[:-cut])) == "cut short", cut


def test_a_clean_log_stays_as_it_is(source, cleaned):
    """Byte for byte."""
    done, _ = cleaned(source(GOOD))
    assert done.path.read_bytes() == GOOD
    assert (done.lines, done.used, done.faults, done.notices) == (4, 4, [], [])


def test_faults_are_named_by_line_and_counted_by_why(source, cleaned):
    """The first few by line, all of them by why."""
    bad = b'{"k":\n' * 30
    done, used = cleaned(source(GOOD + b"\n" + bad + b"null\n" + GOOD))
    assert done.unusable == {"not JSON": 30, "not an object": 1}
    assert done.faults == [(line, "not JSON") for line in range(6, 6 + vet.MOST_NAMED)]
    assert (done.lines, done.used, len(used)) == (39, 8, 8)


def test_a_torn_last_line_costs_one_record(source, cleaned):
    """Also when it is a character that is torn."""
    done, used = cleaned(source(GOOD + b'{"k":"decision","se'))
    assert (len(used), done.faults) == (4, [(5, "torn: it has no end")])
    done, used = cleaned(source(GOOD + b'{"k":"\xc3'))
    assert (len(used), done.faults) == (4, [(5, "not UTF-8")])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('"seq": 1, "seq": 1', "a name that stands twice"),
        ('"facts": {"a": 1, "a": 2}', "a name that stands twice"),
        ('"seq": 1, "x": ' + "[" * 101 + "]" * 101, "nested too deep"),
        ('"seq": 1.0', "decision line with an unusable seq"),
        ('"seq": 1, "facts": {"attempt": "1"}', "decision line with an unusable facts"),
        ('"seq": 1, "x": NaN', "NaN or Infinity, which is not JSON"),
    ],
)
def test_what_readers_differ_on_is_refused(source, cleaned, text, why):
    """One reader takes the first of two, another the last, a third raises."""
    line = json.dumps(decision(1)).replace('"seq": 1', text)
    done, _ = cleaned(source(GOOD + line.encode() + b"\n"))
    assert done.faults == [(5, why)]


def test_depth_is_counted_and_not_brackets(source, cleaned):
    """Many series with brackets in their names are not deep."""
    raw = {f'a{{b="{n}"}}': n for n in range(300)}
    done, _ = cleaned(source(jsonl(header(), decision(1, raw=raw)).encode()))
    assert done.faults == []


def test_half_of_a_surrogate_pair_is_written_as_the_writer_does(source, cleaned):
    """As the text of its escape: DuckDB refuses the line, and the record counts."""
    line = json.dumps(decision(1)).replace("req-1", r"\ud83d\ude00 \ud800")
    done, (_, read) = cleaned(source(jsonl(header(), line).encode()))
    assert read["id"] == "\U0001f600 \\ud800"
    assert done.used == 2


def test_white_space_that_ends_lines_elsewhere_is_gone(source, cleaned):
    """A carriage return between two fields is a space."""
    line = json.dumps(decision(1)).replace(", ", ",\r", 1)
    done, (_, read) = cleaned(source(jsonl(header(), line).encode()))
    assert b"\r" not in done.path.read_bytes()
    assert read == decision(1)


def test_the_field_cases_keep_their_counts(data, source, cleaned):
    """Torn, odd types, odd bytes, a hole of NULs: what each is worth."""
    for case, used, faults in (
        ("s-lg-01/torn.jsonl", 100, 1),
        ("s-lg-02/odd_types.jsonl", 101, 7),
        ("s-lg-03/bytes.jsonl", 100, 1),
        ("s-lg-04/nul_prefix.jsonl", 101, 0),
    ):
        done, _ = cleaned(source(log_of((data / "cases" / case).read_bytes())))
        assert (done.used, sum(done.unusable.values())) == (used, faults), case


def test_a_hole_is_one_notice(source, cleaned):
    """However many NUL bytes it has."""
    made = source(b"\0" * 3_000_000 + GOOD)
    done, used = cleaned(made)
    assert len(used) == 4
    assert done.notices == [f"{made.path}: 3000000 NUL bytes passed over"]


def test_a_sparse_gigabyte_needs_no_memory(tmp_path):
    """Memory stays under 200 MB over a 1 GB hole."""
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(GOOD)
    # VmHWM begins with this program; ru_maxrss would begin with its parent's.
    script = (
        "import sys, pathlib; from admitperf.reports.files.vet import LogSource, clean;"
        " path = pathlib.Path(sys.argv[1]);"
        " done = clean(LogSource('log', path), path.parent);"
        " print(done.used, *done.notices, sep='|', end='|');"
        " status = pathlib.Path('/proc/self/status').read_text();"
        " print(status.split('VmHWM:')[1].split()[0])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    used, notice, peak_kb = ran.stdout.strip().split("|")
    assert (used, notice) == ("4", f"log: {1 << 30} NUL bytes passed over")
    assert int(peak_kb) < 200_000


def test_a_line_too_long_to_hold_is_one_fault(source, cleaned, monkeypatch):
    """The lines around it are used."""
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 5_000)
    done, used = cleaned(source(GOOD + b"x" * 50_000 + b"\n" + GOOD))
    assert (len(used), done.faults) == (8, [(5, "too long")])


@pytest.mark.parametrize("pack", [gzip.compress, None], ids=["gzip", "zstd"])
def test_a_packed_file_is_cleaned_like_a_plain_one(source, cleaned, packed, pack):
    """Its lines, its faults by line, its NULs."""
    text = GOOD + b'{"k":"x"}\n' + b"\0" * 9 + GOOD
    content = pack(text) if pack else packed(text.decode())
    done, used = cleaned(source(content))
    assert (len(used), done.lines) == (8, 9)
    assert done.faults == [(5, "a kind this reader does not know")]
    assert [notice.partition(": ")[2] for notice in done.notices] == [
        "9 NUL bytes passed over"
    ]


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_a_packed_file_cut_short_gives_what_it_has(source, cleaned, packed, pack):
    """The lines before the cut, and a notice."""
    text = jsonl(header(), *(kv(seq, seq / 9_000) for seq in range(1, 8_000)))
    whole = gzip.compress(text.encode()) if pack == "gzip" else packed(text)
    done, used = cleaned(source(whole[: len(whole) * 2 // 3]))
    assert 0 < len(used) < 8_000
    assert done.cut
    assert done.notices[-1].endswith(f"ends early: {done.cut}")


def test_a_zstd_file_that_cannot_be_unpacked_says_what_to_do(source, tmp_path):
    """One line with the path and the way out."""
    made = source(b"\x28\xb5\x2f\xfd" + b"rubbish" * 9, "r.zst")
    with pytest.raises(LogError) as caught:
        clean(made, tmp_path)
    assert str(caught.value).startswith(made.path)
    assert "unpack it with zstd -d" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd program")
@pytest.mark.parametrize(
    "options", [["-1"], ["-19", "--no-check"], ["--no-content-size"]]
)
def test_frames_of_the_reference_packer_are_walked(source, options):
    """Checksums and sizes may stand in a frame or not."""
    for content in (GOOD, GOOD * 5000, b"", b"a" * 300_000, os.urandom(300_000)):
        whole = subprocess.run(
            ["zstd", "-c", *options], input=content, capture_output=True, check=True
        ).stdout
        assert prescan(source(whole)) is None
        assert prescan(source(whole + b"\x5a\x2a\x4d\x18\x03\0\0\0abc" + whole)) is None
        assert prescan(source(whole[:-1])) == "cut short"


def test_a_file_that_is_gone_is_one_clear_error(tmp_path):
    """The look passes it on, the copy says it."""
    gone = LogSource("gone", tmp_path / "gone")
    assert prescan(gone) is None
    with pytest.raises(LogError, match="gone: no such file"):
        clean(gone, tmp_path)


def test_two_copies_do_not_meet(source, cleaned):
    """Each has a file of its own in the folder."""
    first, _ = cleaned(source(GOOD, "a"))
    second, _ = cleaned(source(GOOD + GOOD, "b"))
    assert first.path != second.path
    assert first.path.read_bytes() == GOOD


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(bent() | ANY.map(json.dumps) | st.text(max_size=9), max_size=5),
    st.binary(max_size=20),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_copy_loads_and_means_the_same(source, cleaned, texts, noise, end):
    """Whatever is in a log, DuckDB reads the copy, and each value is the line's."""
    good = [json.dumps(header()), json.dumps(outcome(1, error="é"))]
    content = end.join([*good, *texts]).encode(errors="surrogatepass") + noise
    done, used = cleaned(source(content))
    assert done.lines == done.used + sum(done.unusable.values())
    numbered = enumerate(content.replace(b"\0", b"").split(b"\n"), 1)
    own = [parse(n, raw + b"\n").fields for n, raw in numbered if raw.strip()]
    columns = {"k": "VARCHAR", "t_us": "BIGINT", "run": "JSON", "facts": "JSON"}
    with duckdb.connect() as database:
        rows = database.execute(
            f"SELECT * FROM read_json('{done.path}', format = 'newline_delimited',"
            f" columns = {columns})"
        ).fetchall()
    kept = [one for one in own if one is not None]
    assert [row[:2] for row in rows] == [(one["k"], one["t_us"]) for one in kept]
    assert len(used) == len(rows)
