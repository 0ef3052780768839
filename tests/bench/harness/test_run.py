"""One run: what its plan hangs on, and what its folder holds."""

import json
from dataclasses import fields, replace

import pytest
from tests.bench.harness.small import SMALL, Heard, small

from admitperf.bench.harness.experiment import Experiment
from admitperf.bench.harness.run import plan, run_one
from admitperf.bench.harness.virtual import VirtualTarget

COST = 3.6
PROBE_MS = 12.5


class Probed(VirtualTarget):
    """One that is probed before each run, as a server is."""

    def probe(self):
        """As if it had been asked."""
        return PROBE_MS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A plan, whose engine can be probed and costs something."""
    config = small(tmp_path_factory.mktemp("run"), gpu_cost_per_hour=COST)
    with Experiment(config, Heard()) as experiment:
        planned = experiment.planned()
    engine = planned.setup.target
    told = {field.name: getattr(engine, field.name) for field in fields(engine)}
    return planned, replace(planned.setup, target=Probed(**told))


@pytest.fixture(scope="module")
def left(made):
    """Manifest and summary of one of its runs, and the run."""
    planned, setup = made
    job = next(job for job in planned.jobs() if job.arm.policy == "queue_depth")
    run_one(setup, job)
    folder = setup.folder / job.arm.name / job.place
    manifest, summary = (
        json.loads((folder / f"{name}.json").read_text())
        for name in ("manifest", "summary")
    )
    return job, manifest, summary


def test_a_plans_hash_hangs_on_the_claims(made):
    """They are made before anything is run, so that a plan for others is another."""
    _, setup = made
    assert setup.claims
    first = plan(setup, 5.0, 1)
    for claims in ((), (*setup.claims[:-1], "margin 0.02")):
        other = plan(replace(setup, claims=claims), 5.0, 1)
        assert other.begun == first.begun
        assert other.hash != first.hash


def test_the_probe_before_a_run_is_kept(left):
    """By it a drift of the engine is seen."""
    _, manifest, _ = left
    assert manifest["probe_ms"] == PROBE_MS


def test_what_decisions_took_is_kept(left):
    """One for each attempt at least."""
    _, _, summary = left
    assert summary["decide_us"]["n"] >= summary["offered"]
    assert summary["decide_us"]["p50"] > 0


def test_the_price_of_the_engine_is_shared_among_good_calls(left):
    """For as long as the run was."""
    _, manifest, summary = left
    assert summary["good"] > 0
    paid = COST * manifest["ran_s"] / 3600
    assert 0 < summary["cost_per_good"] <= paid / summary["good"] * 1.01


def test_the_twin_of_the_baseline_has_an_engine_with_chance_of_its_own(tmp_path):
    """The same plan, and yet not the same run: else an A/A pair shows no noise."""
    engine = {**SMALL["target"]["engine"], "noise": 0.1}
    target = {**SMALL["target"], "engine": engine}
    config = small(tmp_path, target=target, arms=[], aa=True, loads=[1.2])
    with Experiment(config, Heard()) as experiment:
        planned = experiment.planned()
    jobs = [job for job in planned.jobs() if job.block == 1]
    assert [job.twin for job in jobs] == [
        job.arm.name == "no_admission_again" for job in jobs
    ]
    found = {}
    for job in jobs:
        done = run_one(planned.setup, job)
        folder = planned.setup.folder / job.arm.name / job.place
        summary = json.loads((folder / "summary.json").read_text())
        found[job.twin] = done.plan, summary["offered"], summary["ttft_served_ms"]
    assert found[True][:2] == found[False][:2]
    assert found[True][2] != found[False][2]
