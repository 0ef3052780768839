"""`admitperf reach` as a person meets it."""

import json

import pytest
from tests.cli.conftest import is_plain
from tests.scrape.server import http

from admitperf.policies import load

SURVEY = ("--kv-tokens", "384000", "--max-num-seqs", "64")
FULL = (*SURVEY, "--tokens-per-request", "2168")


@pytest.fixture
def vllm(data):
    """A saved page of a real vLLM engine under load."""
    return data / "fixtures" / "real-vllm-0.32.0-load.prom"


def test_the_survey_case(run):
    """0.361 at most, 5,400 tokens to reach 0.9, slots first, and that it cannot be."""
    shown = run("reach", *FULL)
    assert shown.exit_code == 0
    assert is_plain(shown.stdout)
    flat = " ".join(shown.stdout.split())
    assert "largest reachable 0.361 (138752 of 384000 tokens)" in flat
    assert "to reach 0.9 requests of 5400 tokens, in all slots" in flat
    assert "binds first slots: 177 such requests would fit, 64 may run" in flat
    assert "cannot be reached by such requests, at any arrival rate" in flat


def test_a_threshold_that_can_be_reached(run):
    """Longer requests, or a lower bound."""
    for more in (("--threshold", "0.3"), ("--tokens-per-request", "5400")):
        shown = run("reach", *FULL, *more)
        assert "can be reached: when that many run at once" in shown.stdout


def test_large_requests_are_told_apart(run):
    """What is reached only when nearly all are large is not reached."""
    shown = run("reach", *FULL, "--tokens-p95", "9000")
    flat = " ".join(shown.stdout.split())
    assert "1.000, were every request a large one" in flat
    # 30 large and 34 usual ones hold 343,712 tokens of 345,600; 31 and 33 350,544.
    assert "only when at least 31 of the 64 slots hold a large request" in flat
    told = json.loads(run("reach", *FULL, "--tokens-p95", "9000", "--json").stdout)
    assert (told["large"]["slots"], told["describes_log"]) == (31, None)


@pytest.fixture
def log(tmp_path):
    """A log of 30 requests, 12 at once and 1,200 tokens in the mean, at a pressure."""

    def made(kv_pressure):
        raw = {
            "vllm:num_requests_running": 12.0,
            "vllm:kv_cache_usage_perc": kv_pressure,
        }
        with load("kv_threshold")(log=tmp_path / "log.jsonl") as policy:
            for n in range(30):
                policy(raw, input_tokens=1000, max_output_tokens=0 if n % 3 else 600)
        return str(tmp_path / "log.jsonl")

    return made


def test_json_has_the_numbers_and_where_they_are_from(run):
    """Strict, and nothing rounded."""
    told = json.loads(run("reach", *FULL, "--json").stdout)
    assert told["reachable_fraction"] == 138752 / 384000
    assert (told["smallest_tokens"], told["binds"]) == (5400, "slots")
    assert told["inputs"]["kv_tokens"] == {"value": 384000, "origin": "option"}
    assert (told["source"], told["large"]) == (None, None)


def test_an_engine_says_its_memory_and_its_usual_request(run, serve, vllm):
    """From its own page; how many it runs at once it does not say."""
    server = serve(http(vllm.read_bytes()))
    shown = run("reach", server.url, "--max-num-seqs", "8")
    flat = " ".join(shown.stdout.split())
    assert "KV memory 1536 tokens (the page) block 32 tokens (the page)" in flat
    assert "request 242.4 tokens (mean of 119 requests on the page)" in flat
    assert "binds first KV memory: 6 such requests would fit, 8 may run" in flat


def test_a_saved_page_says_the_same(run, serve, vllm):
    """A file as good as a URL, and an option over both."""
    saved = run("reach", str(vllm), "--max-num-seqs", "4", "--kv-tokens", "99999")
    assert "KV memory             99999 tokens\n" in saved.stdout
    assert "slots: 390 such requests would fit, 4 may run" in saved.stdout


def test_a_log_gives_sizes_and_the_most_that_ran(run, log):
    """A recorded run needs only the memory, when its engine did not say."""
    shown = run("reach", log(0.25), "--kv-tokens", "48000")
    flat = " ".join(shown.stdout.split())
    assert "slots 12 requests (the most that ran)" in flat
    assert "request 1200 tokens (mean of 30 requests in the log)" in flat
    assert "large request 1600 tokens (p95 of 30 requests in the log)" in flat
    assert "largest reachable 0.300 (14400 of 48000 tokens)" in flat
    assert "KV pressure seen 0.25 (the largest seen)" in flat


STAMP = "SIMULATED: the numbers come from a simulated engine, not from hardware.\n\n"


def test_a_simulated_engine_is_said_first(run, serve, vllm, tmp_path):
    """Of a URL, a saved page, and in JSON; also when options say every number."""
    body = vllm.read_bytes() + b'admitperf_simulated_info{profile="x"} 1\n'
    (tmp_path / "page.prom").write_bytes(body)
    for source in (serve(http(body)).url, "page.prom"):
        for options in (("--max-num-seqs", "8"), FULL):
            shown = run("reach", source, *options)
            assert shown.exit_code == 0, shown.stderr
            assert shown.stdout.startswith(STAMP)
            assert is_plain(shown.stdout)
            told = json.loads(run("reach", source, *options, "--json").stdout)
            assert told["simulated"] is True
            assert "simulated" not in told["inputs"]


def test_an_engine_that_does_not_say_so_is_not_stamped(run, vllm):
    """Nor what nobody measured."""
    for words in ((str(vllm), "--max-num-seqs", "8"), FULL):
        assert "SIMULATED" not in run("reach", *words).stdout
        assert json.loads(run("reach", *words, "--json").stdout)["simulated"] is False


@pytest.mark.parametrize("how", ["notes", "reference", "inline"])
def test_a_log_of_a_simulated_engine_is_stamped(run, how):
    """By the notes of its run, or by what its engine said."""
    raw = {"vllm:num_requests_running": 12.0, "vllm:kv_cache_usage_perc": 0.1}
    notes = {"simulated": True} if how == "notes" else {}
    if how != "notes":
        raw['admitperf_simulated_info{profile="x"}'] = 1.0
    kept = "inline" if how == "inline" else "reference"
    with load("kv_threshold")(log="log.jsonl", notes=notes, raw=kept) as policy:
        policy(raw, input_tokens=1000, max_output_tokens=0)
    shown = run("reach", "log.jsonl", "--kv-tokens", "48000")
    assert shown.stdout.startswith(STAMP), shown.output


def test_slots_that_were_only_observed_bear_no_claim_about_any_rate(run, log):
    """The most that ran is a lower bound; a number that was given is not."""
    path = log(0.25)
    shown = " ".join(run("reach", path, "--kv-tokens", "48000").stdout.split())
    assert "unless the engine may run more than 12 at once: more of them" in shown
    assert "at any arrival rate" not in shown
    given = ("--kv-tokens", "48000", "--max-num-seqs", "12")
    shown = " ".join(run("reach", path, *given).stdout.split())
    assert "cannot be reached by such requests, at any arrival rate" in shown
    large = ("--kv-tokens", "48000", "--tokens-p95", "4000")
    shown = " ".join(run("reach", path, *large).stdout.split())
    assert "at least 11 of the 12 slots hold a large request at once, unless" in shown


@pytest.mark.parametrize("kv_pressure", [0.3, 0.9779])
def test_a_log_that_was_above_the_ceiling_is_not_contradicted(run, log, kv_pressure):
    """What was seen counts: the arithmetic does not describe it, and claims nothing."""
    arguments = ("reach", log(kv_pressure), "--kv-tokens", "48000")
    shown = run(*arguments)
    assert shown.exit_code == 0
    assert is_plain(shown.stdout)
    flat = " ".join(shown.stdout.split())
    assert "sizes add up to 0.300 (14400 of 48000 tokens)" in flat
    assert f"KV pressure seen {kv_pressure} (the largest seen)" in flat
    assert "the arithmetic does not describe this log" in flat
    for claim in ("can be reached", "cannot be", "reached only", "largest reachable"):
        assert claim not in flat
    told = json.loads(run(*arguments, "--json").stdout)
    assert (told["describes_log"], told["reaches"]) == (False, None)
    assert told["large"]["reaches"] is None
    told = json.loads(run(*arguments, "--tokens-per-request", "4000", "--json").stdout)
    assert (told["describes_log"], told["reaches"]) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give --kv-tokens and --max-num-seqs and --tokens-per-request"),
        (SURVEY, "give --tokens-per-request: not known, and no URL, PAGE or LOG"),
        ((*FULL, "--threshold", "90"), "threshold = 90 is not above 0, at most 1"),
        ((*FULL, "--kv-tokens", "-1"), "kv_tokens = -1"),
        ((*FULL, "--tokens-per-request", "nan"), "tokens_per_request = nan"),
        ((*FULL, "--tokens-per-request", "1e9"), "does not fit into 384000 tokens"),
        ((*FULL, "--tokens-p95", "1e9"), "does not fit into 384000 tokens"),
        (("nowhere.prom", *FULL), "nowhere.prom: no such file"),
        ((".", *FULL), "is a directory"),
        (("", *FULL), "'': "),
        (("http://[x", *FULL), "not usable"),
    ],
)
def test_wrong_use_is_one_line(run, arguments, said):
    """On standard error, with exit code 2."""
    shown = run("reach", *arguments)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert said in line


def test_an_engine_that_is_away_is_one_line(run, serve):
    """The address and the way to pass a token, as everywhere."""
    server = serve(http(status="401 No"))
    shown = run("reach", server.url, *FULL)
    assert shown.exit_code == 2
    assert "ADMITPERF_TOKEN" in shown.stderr


def test_a_word_that_is_no_number_shows_the_usage(run):
    """The fault of an option is click's to tell."""
    shown = run("reach", "--kv-tokens", "many")
    assert shown.exit_code == 2
    assert "Usage:" in shown.stderr


def test_a_page_on_standard_input(shell, vllm):
    """`-` reads a page from a pipe."""
    ran = shell(f"cat {vllm} | admitperf reach - --max-num-seqs 8 --json")
    assert json.loads(ran.stdout)["inputs"]["kv_tokens"]["value"] == 1536
