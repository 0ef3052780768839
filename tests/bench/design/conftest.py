"""One experiment with an arm of each kind, read once."""

from dataclasses import replace

import pytest
from tests.bench.design import experiments


@pytest.fixture(scope="session")
def every(tmp_path_factory):
    """The experiment with every kind of arm."""
    return experiments.every(tmp_path_factory.getbasetemp() / "every")


@pytest.fixture(scope="session")
def only(every):
    """The same experiment, as if only these arms had been run beside the baseline."""

    def chosen(*arms):
        named = ("no_admission", *arms)
        first = experiments.planned_first(named)
        return replace(
            every,
            stated={**every.stated, "planned_first": first},
            design=replace(every.design, arms=named),
            runs=tuple(run for run in every.runs if run.arm in named),
        )

    return chosen


@pytest.fixture(scope="session")
def changed():
    """An experiment with some runs' manifests or summaries changed."""

    def change(experiment, where, manifest=None, summary=None):
        return replace(
            experiment,
            runs=tuple(
                replace(
                    run,
                    manifest={**run.manifest, **(manifest or {})},
                    summary={**run.summary, **(summary or {})},
                )
                if where(run)
                else run
                for run in experiment.runs
            ),
        )

    return change
