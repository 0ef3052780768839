"""The keywords every policy takes."""

import math
from pathlib import Path

import pytest
from tests.core.rules import admits, rule, strict, wall

from admitperf import ConfigError, Source
from admitperf.core.signals import KV_PRESSURE


def faults(**given):
    """What construction complains about."""
    with pytest.raises(ConfigError) as caught:
        rule(admits, **given)
    return caught.value.faults


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("on_blind", "pray"),
        ("on_blind", None),
        ("on_blind", ["admit"]),
        ("raw", "sometimes"),
        ("preset", "azure"),
        ("enforce", -0.1),
        ("enforce", 1.1),
        ("enforce", math.nan),
        ("enforce", "0.5"),
        ("enforce", True),
        ("hold_last_s", -1),
        ("hold_last_s", math.inf),
        ("max_defer_s", 0),
        ("max_defer_s", math.inf),
        ("max_defer_s", math.nan),
        ("max_age_s", -1),
        ("max_age_s", math.inf),
        ("max_age_s", "2"),
        ("blind_cap", -1),
        ("blind_cap", 2.5),
        ("log_keep", -1),
        ("log_keep", 1.5),
        ("log_keep", None),
        ("log_max_mb", 0),
        ("log_max_mb", math.inf),
        ("log", 42),
        ("log", object()),
        ("experiment", ""),
        ("experiment", "a/b"),
        ("experiment", ".."),
        ("run", "../../etc/passwd"),
        ("run", 7),
        ("run", "a\0b"),
        ("notes", 7),
        ("notes", ["text"]),
        ("notes", {7: "text"}),
        ("notes", {"": "text"}),
        ("notes", {"model": ["a", "b"]}),
        ("notes", {"engine": {"name": "vllm"}}),
        ("notes", {"load": math.nan}),
        ("notes", {"load": -math.inf}),
        ("notes", {"seed": 10**400}),
        ("provenance", ["fitted"]),
        ("provenance", "fitted"),
        ("slo", {"ttft": 1500}),
        ("slo", {"ttft_ms": 0}),
        ("slo", {"ttft_ms": "fast"}),
        ("slo", {"ttft_ms": math.nan}),
        ("slo", {"chat": {"ttft_ms": 1}, "stall_ms": 5}),
        ("slo", {"chat": {"stall": 5}}),
        ("slo", 1500),
        ("slo", ["ttft_ms"]),
        ("sources", {"kv_pressure": ["x"]}),
        ("sources", {KV_PRESSURE: "x"}),
        ("sources", {KV_PRESSURE: [7]}),
        ("sources", {KV_PRESSURE: 7}),
        ("sources", ["x"]),
    ],
)
def test_a_setting_that_means_nothing_fails_at_construction(name, value):
    """It is named, so that a typing error does not surface under load."""
    told = faults(**{name: value})
    assert len(told) == 1
    assert name in told[0]


@pytest.mark.parametrize(
    "given",
    [
        {"enforce": 0}, {"enforce": 1}, {"enforce": 0.5},
        {"max_age_s": 0}, {"max_age_s": 1e6}, {"max_age_s": None},
        {"hold_last_s": 0}, {"max_defer_s": 1}, {"blind_cap": 0}, {"log_keep": 0},
        {"slo": None}, {"slo": {}}, {"slo": {"ttft_ms": 1500, "stall_ms": 500}},
        {"slo": {"chat": {"ttft_ms": 1}, "batch": {"e2e_ms": 1}}},
        {"sources": {KV_PRESSURE: ["a", lambda m: m["b"], Source("c", scale=0.01)]}},
        {"sources": {KV_PRESSURE: ()}},
        {"notes": "anything / at all\n"}, {"experiment": "e"}, {"run": "r"},
        {"notes": ""}, {"notes": {}}, {"notes": {"load": 1.5, "seed": 7, "plan": None}},
    ],
    ids=str,
)  # fmt: skip
def test_a_setting_at_the_edge_of_its_meaning_is_legal(given):
    """Bounds are included, and None is the computed default."""
    assert rule(admits, **given)({}).admitted


def test_faults_of_settings_are_told_together():
    """Three wrong settings, three faults, one error."""
    assert len(faults(enforce=2, on_blind="x", provenance=3)) == 3


def test_every_fault_of_the_notes_is_told():
    """Each name and each value that no reader could use is named."""
    told = faults(notes={"model": ["a"], 7: "x", "load": math.nan, "seed": 1})
    assert [fault.split(" ")[1] for fault in told] == ["7", "model", "load"]


def test_experiment_and_run_make_the_path_of_the_log(tmp_path, monkeypatch):
    """Without `log`, the file is experiments/<experiment>/<policy>/<run>.jsonl."""
    monkeypatch.chdir(tmp_path)
    with wall(experiment="e1", run="r1") as policy:
        policy({"kv_pressure": 0.1, "queue_depth": 0})
    path = Path("experiments/e1/kv_wall/r1.jsonl")
    assert strict(path.read_text().splitlines()[0])["k"] == "run"


@pytest.mark.parametrize("given", [{"experiment": "e"}, {"run": "r"}, {}])
def test_half_an_identity_makes_no_file(given, tmp_path, monkeypatch):
    """Grouping is declared: a path needs both names."""
    monkeypatch.chdir(tmp_path)
    with rule(admits, **given) as policy:
        policy({})
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_given_is_the_log(tmp_path, monkeypatch):
    """`log` wins over the path that experiment and run would make."""
    monkeypatch.chdir(tmp_path)
    with rule(admits, experiment="e", run="r", log="here.jsonl") as policy:
        policy({})
    assert [p.name for p in tmp_path.iterdir()] == ["here.jsonl"]


def test_the_header_carries_the_identity_that_was_declared(tmp_path):
    """Experiment, run, notes, SLO, share, posture and preset stand in the run line."""
    path = tmp_path / "log.jsonl"
    given = {
        "experiment": "e", "notes": "n", "slo": {"ttft_ms": 1500, "stall_ms": 500},
        "enforce": 0.25, "on_blind": "reject", "preset": "openai",
        "reports_outcomes": True,
    }  # fmt: skip
    with rule(admits, log=path, run="r", **given) as policy:
        policy({})
    header = strict(path.read_text().splitlines()[0])
    assert {name: header[name] for name in given} == given
    assert header["name"] == "r"
    assert header["schema"] == 1


def test_notes_by_name_stand_in_the_header_as_given(tmp_path):
    """What only the host knows of a run is a flat object a reader can ask."""
    notes = {"model": "m", "load": 1.5, "seed": 7, "ignore_eos": True, "plan": None}
    with rule(admits, log=tmp_path / "log.jsonl", notes=notes) as policy:
        policy({})
    header = strict((tmp_path / "log.jsonl").read_text().splitlines()[0])
    assert header["notes"] == notes


def test_without_an_identity_the_header_says_so(tmp_path):
    """Nothing is inferred from the folder a log lies in."""
    path = tmp_path / "experiments" / "x" / "y" / "z.jsonl"
    with rule(admits, log=path) as policy:
        policy({})
    header = strict(path.read_text().splitlines()[0])
    assert header["experiment"] is None
    assert header["name"] is None
    assert header["slo"] is None


@pytest.mark.parametrize(
    ("n", "mode", "inline"),
    [(32, "auto", True), (33, "auto", False), (33, "inline", True),
     (3, "reference", False)],
)  # fmt: skip
def test_raw_metrics_stand_on_the_line_up_to_32_entries(n, mode, inline, log):
    """A small mapping stands on the line, a larger one by reference, as forced."""
    raw = {f"m{i}": float(i) for i in range(n)}
    rule(admits, log=log, raw=mode)(raw)
    (line,) = log.decisions
    assert ("raw" in line) is inline
    assert ("reading" in line) is not inline
    assert line.get("raw", log.readings.get(line.get("reading"))) == raw


def test_a_taxonomy_is_carried_from_the_class_to_the_header(tmp_path):
    """What a policy says it is, a report can say without importing it."""
    from admitperf import Policy

    class Chronos(Policy):
        name = "chronos_inspired"
        unit = "agent-session"
        setting = "offline"
        slo_awareness = "deadline"
        signal_quantity = "deadline_slack"
        signal_structure = "formal-bound"
        metadata_assumed = ("deadline_s", "input_tokens")
        baseline = True
        requires = (KV_PRESSURE, "deadline_s")
        decide = admits

    path = tmp_path / "log.jsonl"
    with Chronos(log=path) as policy:
        policy({"kv_pressure": 0.1})
    header = strict(path.read_text().splitlines()[0])
    assert header["taxonomy"] == {
        "unit": "agent-session", "setting": "offline", "slo_awareness": "deadline",
        "signal_quantity": "deadline_slack", "signal_structure": "formal-bound",
        "metadata_assumed": ["deadline_s", "input_tokens"], "baseline": True,
    }  # fmt: skip
    assert header["requires"] == ["kv_pressure", "deadline_s"]


def test_a_policy_that_says_nothing_has_a_taxonomy_all_the_same(tmp_path):
    """The defaults are an online rule per request that knows no SLO and no baseline."""
    path = tmp_path / "log.jsonl"
    with wall(log=path) as policy:
        policy({"kv_pressure": 0.1, "queue_depth": 0})
    taxonomy = strict(path.read_text().splitlines()[0])["taxonomy"]
    assert (taxonomy["unit"], taxonomy["setting"]) == ("request", "online")
    assert (taxonomy["slo_awareness"], taxonomy["baseline"]) == ("none", False)


def test_the_configuration_hash_follows_what_makes_runs_alike(tmp_path):
    """Another parameter is another configuration; another process or note is not."""

    def config(name, **given):
        path = tmp_path / name
        with wall(log=path, **given) as policy:
            policy({"kv_pressure": 0.1, "queue_depth": 0})
        return strict(path.read_text().splitlines()[0])["config"]

    base = config("a")
    assert config("b", notes="again") == base
    assert config("c", threshold=0.8) != base
    assert config("d", enforce=0.5) != base
    assert config("e", slo={"ttft_ms": 1}) != base
