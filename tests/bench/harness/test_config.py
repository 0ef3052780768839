"""A configuration says all that is wrong with it at once, and where."""

import re
from dataclasses import fields

import pytest
from tests.bench.harness.small import SMALL, small

from admitperf.bench.design.design import Design
from admitperf.bench.harness.config import (
    Config,
    TargetConfig,
    WorkloadConfig,
    document,
    parsed,
    preset,
    presets,
    read,
)
from admitperf.cli.bench_run import command
from admitperf.core.errors import ConfigError


def test_every_fault_is_told_at_once_with_its_path():
    """Whoever wrote the file fixes it in one go."""
    told = {
        "target": {"profile": 3, "engin": {}},
        "workload": {"divisor": 0.5},
        "client": {"name": "patient", "trys": 3},
        "arms": [{"name": "a"}, {"policy": "queue_depth", "parameters": []}],
        "loads": [0.8, 0.8],
        "blocks": "eight",
        "calls": -1,
        "colour": "red",
    }
    with pytest.raises(ConfigError) as caught:
        parsed(told, "my.yaml")
    said = str(caught.value)
    for path in (
        "colour is unknown",
        "target.engin is unknown",
        "target.profile = 3 is not",
        "workload.divisor = 0.5 is not",
        "client.trys is unknown",
        "arms[0].policy is missing",
        "arms[1].parameters is no mapping",
        "loads = [0.8, 0.8] is not",
        "blocks = 'eight' is not",
        "calls = -1 is not",
    ):
        assert path in said
    assert said.startswith("my.yaml: ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"loads": [1.2, 1.2000001]}, "two of 1.2, 1.2 cannot be told apart"),
        ({"metric": "nosuch"}, "metric: 'nosuch' is none of goodput, "),
        (
            {"target": {"url": "http://h:1", "engine": {"max_num_seqs": 4}}},
            "engine and profile are of a simulated one",
        ),
        ({"client": {"name": ["a"]}}, "names none of none, "),
        ({"client": {"name": "patient", "first_wait_s": 10**400}}, "client"),
        (
            {"arms": [{"policy": "queue_depth", "name": "experiment.json"}]},
            "is no name for a folder of runs",
        ),
        (
            {"arms": [{"policy": "queue_depth", "name": "a\x1bb"}]},
            "arms[0].name",
        ),
        (
            {"arms": [{"policy": "queue_depth", "name": "a" * 300}]},
            "is no name for a folder of runs",
        ),
        ({"target": {}}, "target.profile is missing"),
        ({"target": {"kind": "http"}}, "target.url is missing"),
        ({"client": "nobody"}, "client 'nobody' names none of none, patient"),
        ({"client": {"name": "none", "tries": 0}}, "tries = 0"),
        ({"arms": []}, "there is only the baseline"),
        ({"arms": [{"policy": "queue_depth"}] * 2}, "is the name of two"),
        ({"arms": [{"policy": "x", "name": "a/b"}]}, "arms[0].name"),
        ({"experiment": "../up"}, "experiment"),
        ({"slo": {"ttft": 5}}, "slo.ttft is no mapping"),
        ({"slo": {"ttft_ms": 0}}, "slo.ttft_ms = 0 is not"),
        ({"loads": [float("nan")]}, "loads = [nan] is not"),
        ({"blocks": 1000, "loads": [n / 100 for n in range(1, 99)]}, "runs are plan"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, changed, said):
    """In one line, before anything is run."""
    with pytest.raises(ConfigError) as caught:
        small(tmp_path, **changed)
    assert said in str(caught.value)


def test_the_baseline_is_always_there_and_stands_once(tmp_path):
    """Whether it was named or not."""
    assert [arm.name for arm in small(tmp_path).arms] == ["no_admission", "queue_depth"]
    named = [{"policy": "queue_depth"}, {"policy": "no_admission"}]
    assert [arm.name for arm in small(tmp_path, arms=named).arms] == [
        "queue_depth",
        "no_admission",
    ]


def test_what_was_measured_is_kept_unless_what_it_follows_from_changes(tmp_path):
    """More blocks, arms and processes measure nothing anew; another seed does."""
    basis = small(tmp_path).basis()
    more = {"blocks": 9, "jobs": 2, "loads": [1.2], "arms": [{"policy": "dual_gate"}]}
    assert small(tmp_path / "other", **more).basis() == basis
    for changed in ({"seed": 2}, {"client": "patient"}, {"calls": 31}):
        assert small(tmp_path, **changed).basis() != basis


def test_limits_of_an_slo_are_for_all_or_for_each_class(tmp_path):
    """The class of everyone has no name."""
    assert small(tmp_path, slo={"ttft_ms": 9}).slo == {"": {"ttft_ms": 9.0}}
    each = {"new<=512": {"ttft_ms": 9, "stall_ms": 8}}
    assert small(tmp_path, slo=each).slo == {"new<=512": {"ttft_ms": 9, "stall_ms": 8}}


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_configuration(name):
    """With a baseline and something to hold against it."""
    assert len(parsed(preset(name), name).arms) > 1


@pytest.mark.parametrize("text", ["- a", "a: [", "1", "", "!!python/object:x {}"])
def test_what_is_no_mapping_is_told_in_one_line(text):
    """Nothing in a file is run, either."""
    with pytest.raises(ConfigError) as caught:
        document(text, "my.yaml")
    assert "\n" not in str(caught.value)


def rows(root):
    """Names and defaults of the table of keys in the reference."""
    text = (root / "docs" / "reference" / "bench.md").read_text("utf-8")
    table = text.partition("| key | what it is | default |")[2].partition("\n\n")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return {
        tuple(re.findall(r"`([^`]+)`", names)): default.strip()
        for names, _, default in cells
    }


def keys():
    """Every key a document may have, as the reference names it."""
    for one in fields(Config):
        inner = {"target": TargetConfig, "workload": WorkloadConfig}.get(one.name)
        if inner:
            yield from (f"{one.name}.{field.name}" for field in fields(inner))
        else:
            yield one.name


def test_the_reference_names_every_key_and_no_other(root):
    """Each once."""
    named = [name for names in rows(root) for name in names]
    assert sorted(named) == sorted(keys())


def test_the_reference_says_the_defaults(root):
    """In the words of its table."""
    one = parsed({"target": {"profile": "a"}, "aa": True}, "test")
    assert (one.deadlines, parsed(SMALL, "test").aa) == (False, False)
    assert (one.slo, one.warmup_s, one.jobs, one.lasts_s) == (None,) * 4
    place = f"{one.target.replicas}, `{one.target.routing}`"
    expected = {
        ("root",): f"`{one.root}`",
        ("target.over",): f"`{one.target.over}`",
        ("target.replicas", "target.routing"): place,
        ("target.scrape_interval_s",): f"{one.target.scrape_interval_s:g}",
        ("workload.name", "workload.parameters"): f"`{one.workload.name}`",
        ("client",): f"`{one.client.name}`",
        ("arms",): f"`{one.arms[0].policy}` is added",
        ("loads", "rates_per_s"): ", ".join(f"{load:g}" for load in one.loads),
        ("blocks",): f"{one.blocks}",
        ("metric", "margin"): f"`{one.metric}`, {one.margin:g}",
        ("slo",): "calibrated",
        ("deadlines",): "false",
        ("warmup_s",): "measured",
        ("seed",): f"{one.seed}",
        ("jobs", "executor"): f"one a core, `{one.executor}`",
        ("aa",): "false",
    }
    said = rows(root)
    assert {names: said[names] for names in expected} == expected
    assert said["calls", "lasts_s"].startswith(f"{one.calls} calls")


def test_flags_say_the_same_defaults():
    """In the help of the command."""
    one = parsed({"target": {"profile": "a"}, "aa": True}, "test")
    helps = {option.name: option.help for option in command.params[1:]}
    expected = {
        "loads": ",".join(f"{load:g}" for load in one.loads),
        "blocks": one.blocks,
        "calls": one.calls,
        "client": one.client.name,
        "seed": one.seed,
    }
    for name, default in expected.items():
        assert helps[name].endswith(f"[default: {default}]"), name
    assert f"[default: {one.workload.name}]" in helps["workload"]


def test_a_design_and_a_configuration_have_the_same_defaults():
    """Loads, blocks and margin have one home."""
    plain = Design(arms=("no_admission",))
    one = parsed({"target": {"profile": "a"}, "aa": True}, "test")
    told = plain.loads, plain.blocks, plain.margin
    assert (one.loads, one.blocks, one.margin) == told
    assert told == ((0.5, 0.8, 1.0, 1.2, 1.5, 2.0), 8, 0.01)  # the method's note


def test_a_file_is_read_like_a_document(tmp_path):
    """And one that is not there is told."""
    path = tmp_path / "my.yaml"
    path.write_text("experiment: small\nblocks: 7\n")
    assert read(path) == {"experiment": "small", "blocks": 7}
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: no such file"):
        read(tmp_path / "none.yaml")


def test_a_configuration_is_plain_data(tmp_path):
    """So that an experiment can say what it was told."""
    told = small(tmp_path).document()
    assert told["target"]["engine"] == SMALL["target"]["engine"]
    assert told["root"] == str(tmp_path)
