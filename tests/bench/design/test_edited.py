"""Numbers that somebody wrote into a benchmark's files: a sentence, no traceback."""

import json
import shutil

import pytest
from click.testing import CliRunner
from tests.bench.design import experiments

from admitperf.bench.design.guards import guards
from admitperf.bench.design.results import LARGEST, finite, read_experiment, whole
from admitperf.cli import main

HUGE = 10**400
OURS = ("plan", "client", "slo", "scored_s", "warmup_s", "load_reached", "simulated")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A small experiment; copied before it is edited."""
    root = tmp_path_factory.mktemp("small")
    return experiments.made(root, ("bounded",), loads=(0.8, 1.2), blocks=2)


@pytest.fixture
def folder(sound, tmp_path):
    """A copy of it."""
    return shutil.copytree(sound, tmp_path / "made")


def edited(path, keys, value):
    """Write one value into a JSON file, wherever its keys lead."""
    told = json.loads(path.read_text())
    inner = told
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    path.write_text(json.dumps(told))


def compared(folder, *options):
    """What `bench compare` says; it never lets an exception out."""
    found = CliRunner().invoke(main, ["bench", "compare", str(folder), *options])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    assert found.exit_code in (0, 2), found.output
    return " ".join(found.output.split())


@pytest.mark.parametrize(
    "given",
    [HUGE, -HUGE, 1e308, 2**53 + 2, float("inf"), float("nan"), True, "1", None, [1]],
)
def test_what_is_no_number_of_a_file(given):
    """Not finite, above what a float holds exactly, a boolean, a text."""
    assert finite(given) is None
    assert whole(given) is None


def test_what_is_a_number_of_a_file():
    """Up to the bound, and within a range of its own."""
    assert (finite(2**53), finite(-LARGEST), whole(2**53)) == (2**53, -LARGEST, 2**53)
    assert (finite(1.5, 0, 1), whole(-1), whole(1.0)) == (None, None, None)


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        *(
            ("summary.json", "goodput", value)
            for value in (HUGE, 1e308, -1e308, 1.01, -0.1, float("nan"), True, "1")
        ),
        ("summary.json", "extra.session_goodput", 2),
        ("summary.json", "wasted_share", -0.5),
        ("summary.json", "half.goodput", 1e308),
        ("summary.json", "cost_per_good", HUGE),
        ("summary.json", "short", {"n": "x", "of": None}),
        ("summary.json", "errors", 5),
        ("summary.json", "errors.n", 1e308),
        ("summary.json", "errors.of", HUGE),
        ("summary.json", "attempts", 1e308),
        ("summary.json", "offered", -1),
        ("summary.json", "late_ms.max", HUGE),
        ("manifest.json", "rate_per_s", -1),
        ("manifest.json", "lasts_s", HUGE),
        ("manifest.json", "load_reached", 1e308),
        ("manifest.json", "probe_ms", HUGE),
        ("manifest.json", "restarts", HUGE),
        ("manifest.json", "trend.p", 7),
        ("manifest.json", "load", HUGE),
        ("manifest.json", "load", 0),
        ("manifest.json", "block", 10**9),
    ],
)
def test_a_run_that_says_no_number_is_not_used(folder, file, key, value):
    """One sentence; and a run that is not there voids its arm."""
    edited(folder / "bounded" / "x1.2-b1" / file, key.split("."), value)
    found = read_experiment(folder)
    assert "bounded x1.2-b1" not in [run.name for run in found.runs]
    (said,) = [one for one in found.problems if "x1.2-b1" in one]
    assert "\n" not in said
    assert len(said) < len(str(folder)) + 120
    assert guards(found, ())[0].voids == ("bounded",)
    assert "void" in compared(folder, "--json")


@pytest.mark.parametrize("value", [HUGE, 1e308, -1, float("nan"), "many", True])
@pytest.mark.parametrize("key", ["high", "low", "per_s", "after.per_s", "after.high"])
def test_a_capacity_that_is_no_number_is_a_no(folder, key, value):
    """It is what every load is a multiple of."""
    edited(folder / "experiment.json", ["capacity", *key.split(".")], value)
    check = guards(read_experiment(folder), ())[5]
    assert (check.answer, check.voids) == ("no", ("bounded",))
    assert f"Of the capacity {key} is no number from 0." in check.says


def test_a_page_bears_a_capacity_that_is_no_number(folder):
    """Text and JSON."""
    edited(folder / "experiment.json", ["capacity", "high"], HUGE)
    assert "Of the capacity high is no number" in compared(folder)
    compared(folder, "--json")


@pytest.mark.parametrize("key", ["design", "planned_first"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", float("inf")),
        ("seed", HUGE),
        ("blocks", 10**9),
        ("blocks", float("inf")),
        ("blocks", 0),
        ("margin", HUGE),
        ("margin", float("nan")),
        ("loads", [HUGE]),
        ("loads", [-1.2]),
        ("loads", 3),
    ],
)
def test_a_design_that_is_no_number_makes_no_sense(folder, key, name, value):
    """The runs' design is taken; a first plan is not known."""
    edited(folder / "experiment.json", [key, name], value)
    found = read_experiment(folder)
    if key == "design":
        assert "the design makes no sense" in " ".join(found.problems)
        assert found.design.blocks == 2
    elif name != "seed":  # the first plan has none
        assert found.first is None
        assert guards(found, ())[15].answer == "no"
    compared(folder)


def test_what_is_nested_without_end_is_not_read(folder):
    """Before anything follows it down."""
    nested = {}
    for _ in range(400):
        nested = {"in": nested}
    edited(folder / "bounded" / "x1.2-b1" / "manifest.json", ["client"], nested)
    assert "nested too deep" in " ".join(read_experiment(folder).problems)
    compared(folder)


@pytest.mark.parametrize("key", OURS)
@pytest.mark.parametrize(
    ("arm", "own"), [("bounded", True), ("no_admission", True), ("no_admission", False)]
)
def test_a_key_that_our_runs_always_have_may_not_be_missing(folder, key, arm, own):
    """Whoever takes it out takes out what is asked; of other tools it is not asked."""
    for path in folder.glob("*/*/manifest.json"):
        told = json.loads(path.read_text())
        if own:
            told["config"] = "0123"
        if told["arm"] == arm:
            del told[key]
        path.write_text(json.dumps(told))
    said = f"{arm} x0.8-b1: its manifest lacks {key}."
    hit = [one for one in guards(read_experiment(folder), ()) if said in one.says]
    assert bool(hit) is own
    assert {one.answer for one in hit} <= {"no"}
    assert {one.voids for one in hit} <= {("bounded",)}


@pytest.mark.parametrize("arm", ["bounded", "no_admission"])
def test_an_arm_without_a_client_is_compared(folder, arm):
    """Whichever is read first: the check names the client of a run that says one."""
    for path in (folder / arm).glob("*/manifest.json"):
        told = json.loads(path.read_text())
        del told["client"]
        path.write_text(json.dumps(told))
    assert guards(read_experiment(folder), ())[11].says == ("none in every run.",)
    compared(folder)
