"""`admitperf sim fit`, `check` and `profiles` as a person types them."""

import json

import pytest
from click.testing import CliRunner
from tests.simulator.fit.made import run, written

from admitperf.cli import main
from admitperf.simulator.profile import profile, shipped


def typed(*words):
    """What a command line does."""
    return CliRunner().invoke(main, ["sim", *map(str, words)])


@pytest.fixture
def recorded(tmp_path):
    """A run of one client and one of four, as files."""
    return [
        written(run(clients=n, requests=8 * n, name=f"c{n}"), tmp_path / f"c{n}.jsonl")
        for n in (1, 4)
    ]


def test_fit_writes_a_profile_and_says_what_it_does_not_know(recorded, tmp_path):
    """The coefficient that one client cannot show is named with its prior."""
    out = tmp_path / "mine.json"
    done = typed("fit", recorded[0], "-o", out, "--machine", "a bench")
    assert done.exit_code == 0, done.output
    made = profile(out)
    assert (made.name, made.provenance.machine) == ("mine", "a bench")
    assert made.engine.max_num_seqs == 8
    assert "ms_per_sequence" in made.provenance.priors
    assert "drawn to 2.1 x ms_per_prefill_token" in done.output
    assert all(len(line) <= 80 for line in done.output.splitlines()[:-1])


def test_fit_takes_sizes_by_hand_and_prints_json(recorded, tmp_path):
    """What is said by hand comes before what the run says."""
    words = ["--engine", "max_num_seqs=3", "--engine", "prefix_caching=false"]
    out = tmp_path / "p.json"
    done = typed("fit", *recorded, "-o", out, "--name", "n", "--json", *words)
    assert done.exit_code == 0, done.output
    plain = json.loads(done.stdout)
    assert (plain["name"], plain["engine"]["max_num_seqs"]) == ("n", 3)
    assert plain["engine"]["prefix_caching"] is False


def test_check_prints_a_table_and_ends_well_even_when_rules_miss(recorded):
    """Unless it is asked to be strict."""
    done = typed("check", "vllm-cpu", recorded[1], "--repeats", 3)
    assert done.exit_code == 0, done.output
    assert "req_per_s" in done.output
    assert "ok" in done.output
    strict = typed("check", "a10-qwen2.5-0.5b", recorded[1], "--repeats", 3, "--strict")
    assert strict.exit_code == 1
    assert "MISS" in strict.output
    assert all(len(line) <= 80 for line in strict.output.splitlines())


def test_check_says_when_a_profile_was_fitted_to_the_run(recorded, tmp_path):
    """Such a table proves little."""
    out = tmp_path / "p.json"
    typed("fit", *recorded, "-o", out)
    done = typed("check", out, recorded[1], "--repeats", 1)
    assert "was fitted to this run" in done.output


def test_check_as_json_holds_every_line(recorded):
    """Real, simulated, the middle 90 %, the rule and whether it holds."""
    done = typed("check", "vllm-cpu", *recorded, "--repeats", 2, "--json")
    tables = json.loads(done.stdout)["tables"]
    assert [table["run"] for table in tables] == ["c1", "c4"]
    for one in tables[0]["lines"]:
        assert set(one) == {
            "metric", "real", "simulated", "low", "high", "rule", "ok",
        }  # fmt: skip


def test_profiles_lists_what_is_shipped_and_marks_the_arithmetic():
    """Names, sizes, and which were measured."""
    done = typed("profiles")
    assert done.exit_code == 0, done.output
    assert done.output.count("published arithmetic") == 4
    assert done.output.count("measured: ") == 2
    plain = json.loads(typed("profiles", "--json").stdout)
    assert [one["name"] for one in plain["profiles"]] == shipped()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "none.jsonl"], "none.jsonl: No such file"),
        (["fit", "EMPTY"], "is empty"),
        (["check", "vlm", "RUN"], "is none of those shipped"),
        (["check", "vllm-cpu", "EMPTY"], "is empty"),
        (["fit", "RUN", "--from", "EMPTY"], "is no JSON"),
        (["fit", "RUN", "--engine", "kv_blocks=0", "-o", "OUT"], "kv_blocks"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(recorded, tmp_path, words, said):
    """No traceback, nothing on standard output."""
    empty = tmp_path / "empty.json"
    empty.write_text("")
    places = {"RUN": recorded[1], "EMPTY": empty, "OUT": tmp_path / "out.json"}
    done = typed(*(places.get(word, word) for word in words))
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_size_no_engine_has_is_wrong_use(recorded):
    """The error lists those there are."""
    done = typed("fit", recorded[0], "--engine", "slots=3")
    assert done.exit_code == 2
    assert "max_num_seqs" in done.stderr
