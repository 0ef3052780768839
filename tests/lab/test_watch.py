"""Samples into a trace, then policies over the samples."""

import json
from typing import ClassVar

import jsonschema
import pytest
from tests.scrape.server import http

from admitperf.core.errors import MissingSignal
from admitperf.core.policy import Policy
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH
from admitperf.lab.recorded import samples
from admitperf.lab.watch import Plan, Watch
from admitperf.policies import load
from admitperf.scrape.address import Address
from admitperf.scrape.target import Endpoint

EXTRA = b"".join(b'acme_thing{n="%d"} %d\n' % (n, n) for n in range(40))


def page(waiting, kv):
    """A page of one engine, with enough series not to stand on a decision's line."""
    told = f"vllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc {kv}\n"
    return told.encode() + b"vllm:num_requests_running 2\n" + EXTRA


class Ramp:
    """Pages one after the other, then the last again; the first is seen twice."""

    def __init__(self, pages):
        self.pages = pages
        self.restart()

    def restart(self):
        """From the first page on."""
        self.left = [self.pages[0], *self.pages]

    def __call__(self, _):
        """The next page."""
        return http(self.left.pop(0) if len(self.left) > 1 else self.left[0])


class Kv(Policy):
    """Refuses on memory or queue, with both recorded."""

    name = "kv_or_queue"

    def decide(self, metrics):
        """Ask both."""
        full = KV_PRESSURE.read(metrics) >= 0.8
        queued = QUEUE_DEPTH.read(metrics) > 10
        return self.defer("kv_pressure") if full or queued else self.admit()


class Raw(Policy):
    """Goes by a name on the page."""

    name = "by_raw_name"

    def decide(self, metrics):
        """Refuse on a number no signal is."""
        seen = metrics.gate("acme", metrics.raw['acme_thing{n="7"}'], 7.0)
        return self.reject("slots") if seen else self.admit()


class Greedy(Policy):
    """Has a parameter without a default."""

    name = "greedy"
    bound: float

    def decide(self, metrics):
        """Admit."""
        return self.admit()


class Broken(Policy):
    """Cannot be set up."""

    name = "broken"
    reasons: ClassVar = {}

    def __init__(self, **given):
        super().__init__(**given)
        raise RuntimeError("no licence")


@pytest.fixture
def watched(serve, tmp_path):
    """Watch answers with policies: the watch, what it judged, and its trace."""

    def _watched(*answers, classes=(Kv,), count=4):
        servers = [serve(answer) for answer in answers]
        endpoints = [Endpoint(Address.of(one.url)) for one in servers]
        path = tmp_path / "trace.jsonl"
        for interval_s in (0.05, 0.5, 2.0):  # a machine that stalls misses rounds
            for answer in answers:
                if isinstance(answer, Ramp):
                    answer.restart()
            plan = Plan(
                endpoints, interval_s, count, str(path), replace=True, classes=classes
            )
            with Watch(plan) as watch:
                watch.first()
                for _ in watch.run():
                    pass
                judged = watch.judge()
            counts = watch.counts
            if counts.rounds == count and not (counts.missed or counts.skipped):
                break
        return watch, judged, path

    return _watched


def lines(path, kind=None):
    """The lines of a trace."""
    read = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    return [line for line in read if kind in (None, line["k"])]


RAMP = [page(0, 0.1), page(5, 0.5), page(12, 0.79), page(3, 0.9)]


def test_gates_are_judged_on_every_sample(watched):
    """In what share each held, how far each went and how near it came."""
    watch, (judged,), _ = watched(Ramp(RAMP))
    assert watch.counts.samples == 4
    assert (judged.n, judged.fired, judged.blind) == (4, 2, 0)
    kv, queue = judged.gates.values()
    assert (kv.name, kv.n, kv.held, kv.low, kv.high) == ("kv_pressure", 4, 1, 0.1, 0.9)
    assert (queue.name, queue.op, queue.bound) == ("queue_depth", ">", 10.0)
    assert (queue.held, queue.distance) == (1, None)


def test_a_gate_that_never_held_says_how_near_it_came(watched):
    """0.5 of 0.8, and 5 of more than 10."""
    _, (judged,), _ = watched(Ramp(RAMP[:2]))
    kv, queue = judged.gates.values()
    assert kv.distance == pytest.approx(0.3)
    assert queue.distance == 5.0


def test_the_trace_is_a_log_that_report_reads(watched):
    """A run for the samples and one for each policy, none of it unusable."""
    from admitperf.reports.report import report

    _, _, path = watched(Ramp(RAMP), classes=(Kv, load("queue_depth")))
    made = report([str(path)])
    found = {run.header["policy"]: run for run in made.runs}
    assert set(found) == {"no_admission", "kv_or_queue", "queue_depth"}
    assert all(run.header["basis"] == "samples" for run in made.runs)
    assert all(run.answers.offered == 4 for run in made.runs)
    assert found["kv_or_queue"].answers.refused == 2
    assert found["no_admission"].finding.word == "BASELINE"


def test_every_line_keeps_to_the_published_schema(watched, root):
    """Headers, readings, decisions and notices."""
    _, _, path = watched(Ramp(RAMP), http(status="503 No"), classes=(Kv, Greedy))
    folder = root / "docs" / "reference" / "log"
    for line in lines(path):
        schema = json.loads((folder / f"{line['k']}.schema.json").read_text("utf-8"))
        jsonschema.validate(line, schema)
    assert {line["k"] for line in lines(path)} == {
        "run", "reading", "decision", "control"
    }  # fmt: skip


def test_readings_are_written_once_and_not_per_policy(watched):
    """Policies' decisions carry signals and gates; the samples' run has the rest."""
    _, _, path = watched(Ramp(RAMP), classes=(Kv, load("queue_depth")))
    run = lines(path, "run")[0]["run"]
    assert {line["run"] for line in lines(path, "reading")} == {run}
    decisions = [line for line in lines(path, "decision") if line["run"] != run]
    assert len(decisions) == 8
    assert all("reading" not in line and "raw" not in line for line in decisions)
    assert all(line["signals"] and line["gates"] for line in decisions)
    assert all(not line["enforced"] and line["admitted"] for line in decisions)


def test_only_what_changed_is_written(watched):
    """Forty series that stand still stand in the trace once."""
    _, _, path = watched(Ramp(RAMP))
    first, *others = lines(path, "reading")
    assert first["whole"]
    assert len(first["raw"]) == 43
    assert others
    assert all(len(line["raw"]) <= 2 and not line["whole"] for line in others)


def test_policies_decide_at_the_time_of_the_samples(watched):
    """The same t_us, the same age: nothing grew old while it lay in the file."""
    _, _, path = watched(Ramp(RAMP))
    first, second = dict.fromkeys(line["run"] for line in lines(path, "run"))
    times = {run: [] for run in (first, second)}
    for line in lines(path, "decision"):
        times[line["run"]].append((line["t_us"], line["age_ms"], line["signals"]))
    assert times[first] == times[second]


def test_times_never_go_back_within_a_run(watched):
    """Also when the first thing that happened was a failure."""
    _, _, path = watched(Ramp(RAMP), http(status="503 No"))
    last = {}
    for line in lines(path):
        assert line["t_us"] >= last.get(line["run"], 0)
        last[line["run"]] = line["t_us"]


def test_a_failed_scrape_is_written_down_and_is_no_zero(watched):
    """Which endpoint, what kind, in words; the sample holds the other alone."""
    watch, _, path = watched(http(page(6, 0.2)), http(status="503 No"))
    failed = [one for one in lines(path, "control") if one["event"] == "scrape_failed"]
    assert len(failed) == 4
    assert failed[0]["kind"] == "status"
    assert failed[0]["what"].startswith("503")
    assert failed[0]["target"].endswith("/metrics")
    assert sum(watch.counts.failed.values()) == 4
    assert {one["signals"]["queue_depth"] for one in lines(path, "decision")} == {6}


def test_replicas_are_one_pool_for_every_policy(watched):
    """Queues add up and memory takes the fullest, at the end as at the start."""
    _, (judged,), path = watched(http(page(6, 0.2)), http(page(7, 0.7)))
    kv, queue = judged.gates.values()
    assert (kv.high, queue.high) == (0.7, 13)
    assert judged.fired == judged.n == 4
    values = lines(path, "reading")[0]["signals"]["queue_depth"]
    assert sorted(values["parts"].values()) == [6, 7]


def test_samples_are_read_back_as_they_were_taken(watched):
    """From changes alone: the page of each moment."""
    _, _, path = watched(Ramp(RAMP))
    run = lines(path, "run")[0]["run"]
    taken = list(samples(str(path), run, 0.05))
    waiting = [one.reading.raw["vllm:num_requests_waiting"] for one in taken]
    assert waiting == [0, 5, 12, 3]
    assert all(len(one.reading.raw) == 43 for one in taken)


def test_a_policy_that_reads_raw_names_is_judged_too(watched):
    """The page itself is there, not only its signals."""
    _, (judged,), _ = watched(Ramp(RAMP), classes=(Raw,))
    assert (judged.fired, judged.n) == (4, 4)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (load("in_flight_cap"), "counts in_flight"),
        (load("rate_limit"), "goes by tenant"),
        (Greedy, "its defaults alone do not set it up: bound"),
        (Broken, "it cannot be set up: RuntimeError: no licence"),
    ],
)
def test_what_samples_cannot_judge_says_why(watched, policy, why):
    """No decision is made up for it, and the trace says the same."""
    _, (judged, other), path = watched(Ramp(RAMP), classes=(policy, Kv))
    assert why in judged.why_not
    assert (judged.n, judged.gates) == (0, {})
    assert other.n == 4
    (told,) = [one for one in lines(path, "control") if one["event"] == "not_judged"]
    assert (told["policy"], told["why"]) == (policy.name, judged.why_not)
    assert {one["policy"] for one in lines(path, "run")} == {
        "no_admission", "kv_or_queue"
    }  # fmt: skip


def test_a_policy_whose_signal_is_missing_is_blind_not_idle(watched):
    """llama.cpp has no KV pressure: that is said, and nothing counts as not fired."""
    body = b"llamacpp:requests_deferred 3\nllamacpp:requests_processing 4\n"
    _, (judged,), _ = watched(http(body), classes=(load("kv_threshold"),))
    assert (judged.n, judged.blind, judged.fired) == (4, 4, 0)
    assert "kv_pressure is not supplied" in judged.why_blind
    with pytest.raises(MissingSignal):
        load("kv_threshold")().check({"llamacpp:requests_deferred": 3.0})


def test_a_watch_that_sees_nothing_leaves_nothing(watched):
    """Every scrape failed: no sample, no judgement, no file."""
    watch, judged, path = watched(http(status="503 No"))
    assert (watch.counts.samples, judged) == (0, [])
    assert not path.exists()


def test_the_engine_stands_in_every_header(watched):
    """What the pages say about who serves needs no one to type it."""
    _, _, path = watched(Ramp(RAMP))
    assert {one["notes"]["engine"] for one in lines(path, "run")} == {"vLLM"}


def test_a_simulated_engine_is_stamped_on_every_header(watched):
    """And a real one is not."""
    marked = page(3, 0.5) + b'admitperf_simulated_info{profile="x"} 1\n'
    watch, _, path = watched(http(marked))
    assert [one["notes"]["simulated"] for one in lines(path, "run")] == [True] * 2
    assert watch.simulated
    watch, _, path = watched(Ramp(RAMP))
    assert all("simulated" not in one["notes"] for one in lines(path, "run"))
    assert watch.to_dict([])["simulated"] is False


def test_an_engine_that_turns_out_simulated_later_stamps_what_is_judged(watched):
    """It may not have answered at first."""
    marked = page(3, 0.5) + b"admitperf_simulated_info 1\n"
    watch, _, path = watched(Ramp([page(3, 0.5), marked]))
    assert lines(path, "run")[-1]["notes"]["simulated"] is True
    assert watch.simulated


def test_an_engine_that_turns_out_simulated_later_stamps_the_samples_too(watched):
    """A second header of the run says so, before the first sample that it holds for."""
    marked = page(3, 0.5) + b"admitperf_simulated_info 1\n"
    _, _, path = watched(Ramp([page(3, 0.5), page(3, 0.5), marked]), classes=())
    first, second = lines(path, "run")
    assert first["run"] == second["run"]
    assert "simulated" not in first["notes"]
    assert second["notes"]["simulated"] is True
    before = [one for one in lines(path, "decision") if one["t_us"] < second["t_us"]]
    assert 0 < len(before) < len(lines(path, "decision"))


def test_a_trace_that_was_deleted_meanwhile_is_one_fault(serve, tmp_path):
    """It cannot be read back, and nobody is shown a traceback."""
    from admitperf.lab.fault import LabError

    endpoint = Endpoint(Address.of(serve(http(page(0, 0.1))).url))
    path = tmp_path / "t"
    plan = Plan([endpoint], 0.05, 2, str(path), replace=False, classes=[Kv])
    with Watch(plan) as watch:
        watch.first()
        list(watch.run())
        path.unlink()
        with pytest.raises(LabError, match="cannot be read back"):
            watch.judge()
