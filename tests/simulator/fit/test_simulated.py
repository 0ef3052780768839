"""What a simulated engine gave is never called measured, nor real."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.simulator.fit.made import run, written

from admitperf.bench.simulation import provenance
from admitperf.cli import main
from admitperf.core.errors import ConfigError
from admitperf.simulator.fit.fitting import fitted
from admitperf.simulator.fit.marks import INFO, simulated
from admitperf.simulator.fit.read import read
from admitperf.simulator.profile import parsed, profile
from admitperf.simulator.server.exposition import SIMULATED


def typed(*words):
    """What a command line does."""
    return CliRunner().invoke(main, ["sim", *map(str, words)])


@pytest.fixture
def real(tmp_path):
    """A run of four clients that says nothing of simulation."""
    return written(run(clients=4, requests=24, name="r"), tmp_path / "r.jsonl")


@pytest.fixture
def made_up(tmp_path):
    """The same, which says that it is simulated."""
    made = run(clients=4, requests=24, seed=2, name="s")
    return written(made, tmp_path / "s.jsonl", simulated=True)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """What `sim run` writes."""
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    words = ["--policy", "no_admission", "--requests", "40", "-o", path]
    done = typed("run", "--profile", "vllm-cpu", *words)
    assert done.exit_code == 0, done.output
    return path


@pytest.mark.parametrize(
    "fields",
    [
        {"k": "run", "notes": {"simulated": True}},
        {"k": "run", "notes": {"engine": "admitperf simulator"}},
        {"type": "meta", "meta": {"simulated": True}},
        {"type": "scrape", "m": {SIMULATED: 1.0}},
        {"k": "decision", "raw": {SIMULATED + '{profile="x"}': 1.0}},
        {"input_lens": [], "simulated": "true"},
        {"input_lens": [], "model_id": "simulated"},
    ],
)
def test_each_way_to_say_simulated_is_heard(fields):
    """One line that says so is enough."""
    assert simulated([{"k": "decision"}, fields])


def test_who_says_nothing_or_no_is_not_simulated(data):
    """A real bench file, and notes that say false or are none."""
    assert not read(data / "fixtures" / "real-vllm-bench-serve-0.32.0.json").simulated
    quiet = [{"notes": {"simulated": False}}, {"notes": 3, "raw": None, "meta": []}]
    assert not simulated(quiet)


def test_the_series_is_the_one_that_the_server_shows():
    """Two names of one thing."""
    assert INFO == SIMULATED


def test_the_log_of_a_simulation_makes_no_measured_profile(log, tmp_path):
    """In the text, in the file, in JSON, and in every later use."""
    out = tmp_path / "p.json"
    done = typed("fit", log, "--from", "vllm-cpu", "-o", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("p: SIMULATED\n")
    assert "measured" not in done.stdout
    made = profile(out)
    assert (made.measured, made.simulated) == (False, True)
    assert made.provenance.source == "simulated"
    assert provenance(made).startswith("SIMULATED, ")
    plain = json.loads(typed("fit", log, "--from", out, "-o", out, "--json").stdout)
    assert (plain["simulated"], plain["provenance"]["source"]) == (True, "simulated")
    assert plain["provenance"]["notes"][0].startswith("SIMULATED")


def test_a_later_run_of_such_a_profile_says_so(log, tmp_path):
    """The line on the profile in what `sim run` prints."""
    out = tmp_path / "p.json"
    typed("fit", log, "--from", "vllm-cpu", "-o", out)
    words = ["--policy", "no_admission", "--requests", "5", "-o", tmp_path / "l.jsonl"]
    done = typed("run", "--profile", out, *words)
    assert "Profile p: SIMULATED, " in done.stdout


def test_one_simulated_run_among_real_ones_is_enough(real, made_up):
    """The note names it, and not the real one."""
    made = fitted([read(real), read(made_up)], name="x")
    assert made.simulated
    assert made.provenance.notes[0].endswith(": s")
    assert fitted([read(real)], name="x").measured


def test_real_runs_drawn_to_a_simulated_profile_say_so(real, made_up):
    """The runs were measured; what stands in for the rest was not."""
    base = fitted([read(made_up)], name="b")
    made = fitted(
        [replace(read(real), asked=read(real).asked[:10])], name="x", base=base
    )
    assert made.measured
    assert made.provenance.priors
    assert all("b (SIMULATED)" in words for words in made.provenance.priors.values())


def test_check_does_not_call_a_simulated_log_real(made_up):
    """Its column has another name, and a line shouts."""
    done = typed("check", "vllm-cpu", made_up, "--repeats", 2)
    (head,) = [line for line in done.stdout.splitlines() if "metric" in line]
    assert "simulated log" in head
    assert "real" not in head
    assert "SIMULATED: s is of a simulated engine" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_check_always_says_which_column_is_simulated(real):
    """Also when the run is real, in text and in JSON."""
    done = typed("check", "vllm-cpu", real, "--repeats", 1)
    assert done.stdout.startswith("SIMULATED: the column 'simulated' is")
    assert "simulated log" not in done.stdout
    plain = json.loads(
        typed("check", "vllm-cpu", real, "--repeats", 1, "--json").stdout
    )
    assert plain["simulated"] is True
    (table,) = plain["tables"]
    assert (table["log_simulated"], table["profile_simulated"]) == (False, False)


def test_check_says_when_the_profile_is_simulated(real, made_up, tmp_path):
    """However real the run is."""
    out = tmp_path / "p.json"
    typed("fit", made_up, "-o", out)
    done = typed("check", out, real, "--repeats", 1)
    assert "SIMULATED: p was fitted to simulated runs" in done.stdout


def test_a_file_cannot_call_itself_both(real):
    """`simulated` may be left out; it may not contradict the source."""
    document = fitted([read(real)], name="x").document()
    with pytest.raises(ConfigError, match="simulated is not what"):
        parsed(json.dumps({**document, "simulated": True}), "x")
    del document["simulated"]
    assert parsed(json.dumps(document), "x").measured
