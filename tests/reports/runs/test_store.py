"""DuckDB, kept to itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reports.byhand import header, jsonl, kv, outcome

from admitperf.core.errors import ConfigError, LogError
from admitperf.reports.extra import HOW_TO_GET
from admitperf.reports.quantile import Spread, nearest_rank, spread_of
from admitperf.reports.report import report
from admitperf.reports.runs.store import Store, UnreadableError, checked_limit

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ONE = """
import sys
from admitperf.reports.report import report
print(report(sys.argv[1:]).runs[0].answers.offered)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An empty database."""
    with Store(tmp_path_factory.mktemp("store")) as made:
        yield made


@pytest.fixture
def log(write):
    """The path of a small log."""
    return write(header(), kv(1, 0.5), kv(2, 0.95), outcome(1))


@pytest.fixture
def alone(tmp_path):
    """Report on a log in a process with a home and a working folder of its own."""

    def _alone(path, **environment):
        home, work = tmp_path / "home", tmp_path / "work"
        home.mkdir(exist_ok=True)
        work.mkdir(exist_ok=True)
        ran = subprocess.run(
            [sys.executable, "-c", ONE, path],
            cwd=work,
            env={**os.environ, "HOME": str(home), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran, [*home.rglob("*"), *work.rglob("*")]

    return _alone


@pytest.mark.parametrize(
    ("text", "limit"),
    [("1GB", "1000MB"), ("2 gb", "2000MB"), ("700MB", "700MB"), ("1.5GiB", "1500MB")],
)
def test_a_memory_limit_has_a_unit(text, limit):
    """As people write it."""
    assert checked_limit(text) == limit


@pytest.mark.parametrize("text", ["", "lots", "1", "-1GB", "699MB", "0.5GB", "80%"])
def test_a_limit_that_makes_no_sense_or_is_too_small_is_refused(log, text):
    """Before anything is read."""
    with pytest.raises(ConfigError, match="memory limit"):
        report([log], memory_limit=text)


def test_a_report_fits_the_least_memory(log):
    """With the smallest limit that is taken."""
    (run,) = report([log], memory_limit="700MB").runs
    assert run.answers.offered == 2


def test_nothing_is_written_into_the_home_or_the_working_folder(alone, log):
    """Neither settings nor extensions nor spilled data."""
    ran, left = alone(log)
    assert (ran.stdout, ran.returncode) == ("2\n", 0)
    assert left == []


def test_the_settings_of_a_user_are_not_read(alone, log, tmp_path):
    """They may say anything."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".duckdbrc").write_text("nonsense;", encoding="utf-8")
    ran, _ = alone(log)
    assert (ran.stdout, ran.returncode) == ("2\n", 0)


def test_temporary_files_are_gone_afterwards(alone, log, tmp_path):
    """Also those of a packed file and of a dirty one."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with Path(log).open("a", encoding="utf-8") as file:
        file.write("torn")
    ran, _ = alone(log, TMPDIR=str(temporary))
    assert ran.stdout == "2\n"
    assert list(temporary.iterdir()) == []


def test_without_duckdb_the_extra_is_named(log, tmp_path):
    """One line, and no traceback of an import."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "duckdb.py").write_text("raise ImportError", encoding="utf-8")
    program = (
        f"import sys; sys.path.insert(0, {str(hidden)!r})\n"
        "from admitperf.cli import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "report", log],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    said = (
        f"this needs duckdb, of the extra admitperf[reports]: {HOW_TO_GET['reports']}"
    )
    assert ran.stderr == f"Error: {said}\n"


def test_a_query_that_fails_is_one_error_of_ours(store):
    """Nothing of DuckDB's gets out, and not the whole of its text."""
    with pytest.raises(UnreadableError) as caught:
        store.rows("SELECT from_json('{', '{\"a\":\"BIGINT\"}')")
    assert "\n" not in str(caught.value)


def test_a_name_that_is_a_variable_here_is_no_table(store):
    """A query sees tables alone."""
    some = [1]
    with pytest.raises(UnreadableError):
        store.rows("FROM some")
    assert some == [1]


@pytest.mark.parametrize("values", [[], ["it's", None, '"', "\x1f\u2713"]])
def test_a_small_table_holds_what_was_given(store, values):
    """Whatever the texts are; no rows too."""
    store.table("small", {"n INTEGER": list(range(len(values))), "t VARCHAR": values})
    assert store.rows("FROM small ORDER BY n") == list(enumerate(values))


@given(values=st.lists(st.none() | FINITE | st.sampled_from([0.5, 1.0]), max_size=130))
@settings(deadline=None)
def test_percentiles_are_by_nearest_rank_here_too(store, values):
    """DuckDB's discrete quantile is the definition that every page states."""
    store.table("spread", {"value DOUBLE": values})
    ((found,),) = store.rows(f"SELECT {spread_of('value')} FROM spread")
    assert Spread.read(found) == Spread.of(v for v in values if v is not None)


def test_every_size_has_the_rank_of_the_definition(store):
    """No product such as 0.95 * 20 is off by one for being a float."""
    for n in [*range(1, 400), 1000, 9999, 10_000, 123_457]:
        ((found,),) = store.rows(
            f"SELECT {spread_of('i::DOUBLE')} FROM range(1, {n + 1}) one(i)"
        )
        exact = tuple(-(-hundredths * n // 100) for hundredths in (50, 95, 99))
        assert tuple(found["ranks"]) == exact, n
        ordered = [float(one) for one in range(1, n + 1)] if n < 400 else None
        if ordered is not None:
            mine = tuple(nearest_rank(ordered, one) for one in (0.5, 0.95, 0.99))
            assert mine == exact


def test_a_file_that_changes_while_it_is_read_is_cleaned_and_read(write, monkeypatch):
    """A torn line that came after the first look costs that line alone."""
    from admitperf.reports.runs import first_look

    path = write(header(), kv(1, 0.5))
    look = first_look.look

    def late(store, texts, *, cleaned):
        found = look(store, texts, cleaned=cleaned)
        if not cleaned:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(jsonl(kv(2, 0.95)) + '{"k":"decision","seq":3')
        return found

    monkeypatch.setattr(first_look, "look", late)
    made = report([path])
    assert made.runs[0].answers.offered == 2
    assert made.files.lines == 4
    assert sum(made.files.unusable.values()) == 1


def test_too_little_memory_is_said(store, monkeypatch):
    """It is no fault of the log, and the option that helps is named."""

    class Full:
        def execute(self, sql, given):
            raise store._full("Out of Memory Error: failed to allocate")

    monkeypatch.setattr(store, "_connection", Full())
    with pytest.raises(ConfigError, match="memory limit: 1GB is not enough"):
        store.rows("SELECT 1")


def test_a_full_disk_is_said(log, monkeypatch):
    """Where temporary files go, and why they could not."""

    def full(source, folder):
        raise OSError(28, "No space left on device")

    with Path(log).open("a", encoding="utf-8") as file:
        file.write("torn")
    monkeypatch.setattr("admitperf.reports.files.vet.clean", full)
    with pytest.raises(LogError, match="No space left on device"):
        report([log])


def test_what_spills_goes_into_the_private_folder(store):
    """And nothing comes from outside."""
    settings = dict(store.rows("SELECT name, value FROM duckdb_settings()"))
    private = {"temp_directory", "home_directory"}
    assert {
        name for name in private if settings[name].startswith(str(store.folder))
    } == private
    assert settings["autoinstall_known_extensions"] == "false"
    assert settings["autoload_known_extensions"] == "false"


@pytest.mark.parametrize("limit", ["9" * 21 + "TB", "18446744073709551616M"])
def test_a_limit_that_no_machine_has_is_refused(limit):
    """DuckDB's own complaint about such a number is a traceback."""
    with pytest.raises(ConfigError, match="more than any machine has"):
        checked_limit(limit)


def test_a_query_that_is_interrupted_is_an_interrupt(store):
    """DuckDB hands a Ctrl-C on as a RuntimeError."""

    class Interrupted:
        def execute(self, *_):
            raise RuntimeError("Query interrupted")

        def close(self):
            pass

    store.close()
    store._connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        store.rows("SELECT 1")


def test_a_folder_that_takes_no_file_is_one_line(tmp_path):
    """As on a full disk."""
    with pytest.raises(LogError, match="Cannot open file"):
        Store(tmp_path / "gone")
