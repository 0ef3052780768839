"""What `check` and `fit` say beside the numbers: a verdict, and warnings."""

from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.simulator.fit.made import run, written
from tests.simulator.fit.test_checking import EXACT, MODEL

from admitperf.cli import main
from admitperf.simulator.fit.checking import Line, Table, checked
from admitperf.simulator.profile import profile


def typed(*words):
    """What a command line does."""
    return CliRunner().invoke(main, ["sim", *map(str, words)])


def table(*lines):
    """A table of some metrics: each its name, what was, and what the model makes."""
    made = [
        Line(name, real, got, None, None, "", ok=real == got)
        for name, real, got in lines
    ]
    return Table(
        run="r", profile="p", load=None, capacity_per_s=None, capacity_from="",
        repeats=1, fitted=False, lines=tuple(made), refused=0, log_simulated=False,
        profile_simulated=False, differences=(),
    )  # fmt: skip


@pytest.fixture
def recorded(tmp_path):
    """A run of four clients, as a file."""
    return written(run(clients=4, requests=24, name="c4"), tmp_path / "c4.jsonl")


def test_a_verdict_says_what_misses_mean():
    """Each meaning once, with the metrics that say it."""
    said = table(
        ("req_per_s", 3.0, 4.0), ("mean_running", 1.0, 1.0),
        ("ttft_p50_ms", 9.0, 5.0), ("ttft_p95_ms", 20.0, 9.0),
    ).verdict  # fmt: skip
    assert said == (
        "1 of 4 rules hold; it is too fast (req_per_s); its waits are too short"
        " (ttft_p50_ms, ttft_p95_ms)"
    )


def test_the_other_direction_has_other_words():
    """Too slow, and too long."""
    said = table(("req_per_s", 3.0, 2.0), ("ttft_p95_ms", 9.0, 12.0)).verdict
    assert "too slow (req_per_s)" in said
    assert "waits are too long (ttft_p95_ms)" in said


def test_a_table_ends_with_its_verdict(recorded):
    """Before the empty line that ends it."""
    done = typed("check", "vllm-cpu", recorded, "--repeats", 1)
    assert "rules hold" in done.stdout.rstrip().split("MISS")[-1].split("ok")[-1]


def test_every_metric_of_a_table_has_words():
    """An engine twice as slow misses some, and none without a meaning."""
    slow = replace(EXACT, engine=replace(MODEL, step_ms=27.0))
    found = checked(slow, run(clients=4, requests=30), repeats=1)
    assert "it is too slow (req_per_s)" in found.verdict


def test_a_profile_of_another_size_is_warned_of(recorded):
    """Slots and memory; one of the run's own size is not."""
    found = checked(profile("a10-qwen2.5-0.5b"), run(4, 8), repeats=1)
    slots, memory = found.differences
    assert "256 slots, the run's engine 8" in slots
    assert "tokens of KV cache" in memory
    assert checked(EXACT, run(4, 8), repeats=1).differences == ()
    done = typed("check", "a10-qwen2.5-0.5b", recorded, "--repeats", 1)
    assert "WARNING: the profile has 256 slots" in done.stdout


def test_without_chance_there_is_no_middle_90_percent(recorded):
    """A calculated profile has neither noise nor runs that differ."""
    found = checked(EXACT, run(4, 8), repeats=2)
    assert {(one.low, one.high) for one in found.lines} == {(None, None)}
    assert not any("90 %" in one.rule for one in found.lines)
    done = typed("check", "a10-qwen2.5-0.5b", recorded, "--repeats", 2)
    (line,) = [x for x in done.stdout.splitlines() if "req_per_s " in x and "--" in x]
    assert " to " not in line
    noisy = replace(EXACT, engine=replace(MODEL, noise=0.1))
    assert all(one.low is not None for one in checked(noisy, run(4, 8)).lines)


def test_fit_warns_of_a_step_that_the_prior_filled_in(tmp_path):
    """Loud, on stderr and in the text, with the run that would help."""
    one = written(run(clients=1, requests=10, name="c1"), tmp_path / "c1.jsonl")
    out = tmp_path / "p.json"
    done = typed("fit", one, "-o", out)
    assert "step_ms" in profile(out).provenance.priors
    for text in (done.stdout, done.stderr):
        said = " ".join(text.split())
        assert "WARNING: step_ms does not come from the runs" in said
        assert "--max-concurrency 1" in said
        assert "--from" in said
        assert "vllm bench serve" in said
    quiet = typed("fit", one, "-o", out, "--json")
    assert "WARNING: step_ms" in quiet.stderr
    assert "WARNING" not in quiet.stdout


def test_fit_does_not_warn_of_what_the_runs_say(tmp_path):
    """One, two, four and eight clients say it all."""
    runs = [
        written(run(n, 12 * n, name=f"c{n}"), tmp_path / f"c{n}.jsonl")
        for n in (1, 2, 4, 8)
    ]
    done = typed("fit", *runs, "-o", tmp_path / "p.json")
    assert done.exit_code == 0, done.output
    assert "WARNING" not in done.output
