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
        written(run(clients=n, requests=10 * n, name=f"c{n}"), tmp_path / f"c{n}.jsonl")
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


def test_too_few_requests_are_refused_in_one_line(tmp_path):
    """Of all runs together; one more is enough."""
    few = [
        written(run(clients=1, requests=n, name=f"c{n}"), tmp_path / f"c{n}.jsonl")
        for n in (4, 5)
    ]
    out = tmp_path / "p.json"
    done = typed("fit", *few, "-o", out)
    assert done.exit_code == 2
    (said,) = done.stderr.splitlines()
    assert "9 usable requests are in the runs, and 10 are the least" in said
    assert not out.exists()
    more = written(run(clients=1, requests=6, name="c6"), tmp_path / "c6.jsonl")
    assert typed("fit", few[0], more, "-o", out).exit_code == 0


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_log_of_several_engines_is_fitted_with_a_word_about_it(tmp_path, replicas):
    """In the profile's notes, and so on the page; of one engine there is none."""
    log = tmp_path / "log.jsonl"
    asked = run(clients=4, requests=40).asked
    head = {"k": "run", "run": "a", "seq": 0, "t_us": 0, "notes": {
        "max_num_seqs": 8, "num_blocks": 512, "block_size": 32, "replicas": replicas,
    }}  # fmt: skip
    told = [head]
    for seq, one in enumerate(asked, 1):
        facts = {"input_tokens": one.input_tokens}
        at_us = round(one.sent_s * 1e6)
        told += [
            {"k": "decision", "run": "a", "seq": seq, "t_us": at_us, "facts": facts},
            {"k": "outcome", "run": "a", "seq": seq, "of": seq, "ok": True,
             "ttft_ms": one.ttft_ms, "e2e_ms": one.e2e_ms,
             "output_tokens": one.output_tokens},
        ]  # fmt: skip
    log.write_text("".join(json.dumps(line) + "\n" for line in told))
    done = typed("fit", log, "-o", tmp_path / "p.json")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert ("log is of 3 engines, and does not say which" in said) is (replicas == 3)
