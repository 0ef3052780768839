"""SIMULATED: the limits that find themselves find them again when capacity changes.

What `docs/results/adaptive.md` shows with ten seeds, here with two others and room.
"""

import pytest
from tests.scripts import script

PHASE_S = 40.0
SETTLED_S = 15.0
SWING = 0.40
"""The page's targets are 10 s and 0.20; one request is 0.11 of a limit of nine."""


@pytest.fixture(scope="module")
def adaptive(request):
    """The benchmark, as a module."""
    return script(request.config.rootpath, "adaptive")


@pytest.mark.parametrize("arm", ["aimd", "gradient"])
@pytest.mark.parametrize("seed", [201, 202])
def test_a_quarter_of_the_capacity_and_back(adaptive, arm, seed):
    """Each limit is soon near the slots of its phase; most are served well."""
    wide, narrow, again = adaptive.phases(adaptive.ran(arm, seed, PHASE_S), PHASE_S)
    assert 32 <= wide.limit <= 40
    assert 8 <= narrow.limit <= 11
    assert 32 <= again.limit <= 40
    for found in (narrow, again):
        assert found.settled_s <= SETTLED_S
        assert found.swing <= SWING
    for found, answers_per_s in ((wide, 9.9), (narrow, 2.6), (again, 9.4)):
        assert found.ends_per_s >= answers_per_s
        assert found.good_per_s >= 0.75 * found.ends_per_s


@pytest.mark.parametrize(
    ("arm", "phase", "most_per_s"), [("cap of 32", 1, 0.5), ("cap of 8", 2, 3.5)]
)
def test_a_fixed_cap_is_right_for_one_phase(adaptive, arm, phase, most_per_s):
    """The wide one lets everybody wait on the narrow engine, the narrow one idles."""
    found = adaptive.phases(adaptive.ran(arm, 201, PHASE_S), PHASE_S)[phase]
    assert found.good_per_s <= most_per_s


def test_the_limit_can_be_read_from_every_line(adaptive):
    """So that a report can show it over time."""
    log = adaptive.ran("aimd", 201, 15.0)
    judged = [line for line in log.decisions if not line.get("blind")]
    assert len(adaptive.limits(log)) == len(judged)
    assert len({bound for _, bound in adaptive.limits(log)}) > 5
