"""What was planned before the first run stays, and claims hang on it."""

import json
import shutil
from dataclasses import replace

import pytest
from tests.bench.harness.small import Heard, small

from admitperf.bench.design.design import Design
from admitperf.bench.harness.experiment import Experiment
from admitperf.bench.harness.first import First, FirstPlanError

DESIGN = Design(arms=("no_admission", "a", "b"), loads=(0.5, 0.8, 1.0, 1.2), blocks=6)
ASKED = {"workload": {"name": "chat"}, "client": {}, "slo": {}, "window": {"s": 9}}
STATED = "experiment.json"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One that was run to its end."""
    config = small(tmp_path_factory.mktemp("whole"))
    with Experiment(config, Heard()) as experiment:
        assert experiment.run(experiment.planned())
    return config


@pytest.fixture
def copy(whole, tmp_path):
    """Makes a copy of it, with some keys of its configuration changed."""

    def made(**changed):
        config = small(tmp_path, **changed)
        shutil.copytree(whole.folder, config.folder, dirs_exist_ok=True)
        return config

    return made


def stated(config):
    """Its experiment.json."""
    return json.loads((config.folder / STATED).read_text())


@pytest.mark.parametrize(
    "changed",
    [
        {"arms": ("no_admission", "a")},
        {"arms": ("no_admission", "a", "c")},
        {"loads": (0.5, 0.8, 1.2)},
        {"loads": (0.5, 0.8, 1.0, 1.5)},
        {"blocks": 8},
        {"margin": 0.02},
        {"baseline": "a"},
    ],
)
def test_claims_and_hash_hang_on_the_design(changed):
    """A plan's hash holds the claims."""
    first = First.of(DESIGN, "goodput", ASKED)
    other = First.of(replace(DESIGN, **changed), "goodput", ASKED)
    assert first.claims() != other.claims()
    assert first.hash != other.hash
    (said,) = first.departures(replace(DESIGN, **changed), "goodput")
    assert said.startswith(f"{next(iter(changed))} ")


def test_claims_and_hash_hang_on_the_metric():
    """Another one is another claim."""
    first = First.of(DESIGN, "goodput", ASKED)
    other = First.of(DESIGN, "wasted_share", ASKED)
    assert first.claims() != other.claims()
    assert first.hash != other.hash
    said = [*first.departures(DESIGN, "wasted_share")]
    assert said == ["metric goodput, now wasted_share"]
    assert [*first.departures(DESIGN, "goodput")] == []


@pytest.mark.parametrize("name", ASKED)
def test_the_hash_hangs_on_what_is_asked(name):
    """Workload, client, deadlines and window."""
    first = First.of(DESIGN, "goodput", ASKED)
    assert First.of(DESIGN, "goodput", ASKED | {name: {"x": 1}}).hash != first.hash
    assert len(first.hash) == 16
    assert int(first.hash, 16) >= 0


def test_claims_name_arms_and_pooled_loads():
    """As they are judged."""
    gain, harm, *rest = First.of(DESIGN, "goodput", ASKED).claims()
    assert gain == "gain of a, b against no_admission over 1.2x"
    assert harm == "no harm of a, b over 0.5x, 0.8x"
    assert rest[1:] == ["blocks 6", "metric goodput", "margin 0.01"]


def test_it_is_read_back_as_it_was():
    """And what is none is refused."""
    first = First.of(DESIGN, "goodput", ASKED)
    assert First.read(json.loads(json.dumps(first.document()))) == first
    for wrong in (None, 3, {}, first.document() | {"blocks": "many"}):
        with pytest.raises(FirstPlanError, match="its planned_first is none"):
            First.read(wrong)


def test_it_stands_there_before_the_first_run(tmp_path):
    """Whoever ends the experiment early has planned it all the same."""
    config = small(tmp_path)
    seen = []

    class Looking(Heard):
        """Reads the file when the first run is over."""

        def ran(self, done, n, of, left_s):
            seen.append(stated(config))
            raise KeyboardInterrupt

    with Experiment(config, Looking()) as experiment:
        planned = experiment.planned()
        assert not experiment.run(planned)
    assert seen[0]["planned_first"] == planned.first.document()
    assert seen[0]["planned_first"] == {
        "loads": [0.8, 1.5],
        "blocks": 6,
        "arms": ["no_admission", "queue_depth"],
        "baseline": "no_admission",
        "metric": "goodput",
        "margin": 0.01,
        "hash": planned.first.hash,
    }


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"blocks": 7}, "blocks 6, now 7"),
        ({"loads": [1.5]}, "loads 0.8x, 1.5x, now 1.5x"),
        ({"metric": "wasted_share"}, "metric goodput, now wasted_share"),
        ({"margin": 0.05}, "margin 0.01, now 0.05"),
        (
            {"arms": [{"policy": "kv_threshold"}]},
            "arms no_admission, queue_depth, now no_admission, kv_threshold",
        ),
    ],
)
def test_a_later_start_keeps_it_and_says_what_it_changes(copy, changed, said):
    """It goes on; runs that are there stay runs of the first plan."""
    config = copy(**changed)
    before = stated(config)["planned_first"]
    heard = Heard()
    with Experiment(config, heard) as experiment:
        planned = experiment.planned()
        assert said in planned.departed
        assert "\n" not in planned.departed
        assert planned.first.hash in planned.departed
        assert experiment.run(planned)
    after = stated(config)
    assert after["planned_first"] == before
    assert (after["design"]["blocks"], after["metric"]) == (
        config.blocks,
        config.metric,
    )
    again = {done.job.arm.name for done, *_ in heard.runs if done.again}
    assert "no_admission" in again


def test_the_same_start_changes_nothing(copy):
    """And says nothing."""
    with Experiment(copy(), Heard()) as experiment:
        assert experiment.planned().departed is None


def test_findings_of_all_runs_are_written_at_the_end(whole):
    """One word each, what was refused, and why."""
    told = stated(whole)["findings"]
    assert len(told) == 24
    live, base = told["queue_depth/x1.5-b1"], told["no_admission/x1.5-b1"]
    assert (live["word"], base["word"]) == ("LIVE", "BASELINE")
    assert live["refused"] > base["refused"] == 0
    assert all(one["says"] for one in told.values())


def test_the_logs_are_read_once(whole, monkeypatch):
    """What is found is handed on."""
    from admitperf.bench.design import results

    seen = []
    report = results.report
    monkeypatch.setattr(
        results, "report", lambda paths: seen.append(paths) or report(paths)
    )
    with Experiment(whole, Heard()) as experiment:
        assert experiment.run(experiment.planned())
        assert experiment.found.stated["findings"] == stated(whole)["findings"]
        assert len(experiment.found.runs) == 24
    assert len(seen) == 1
