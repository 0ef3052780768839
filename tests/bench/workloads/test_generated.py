"""What is generated is like what was recorded, within tolerances that are written here.

The numbers on the right are those of the traces; a generator is held to the mean over a
few seeds, as a bursty hour differs much from another one.
"""

import json
import subprocess
import sys
from random import Random
from statistics import fmean

import pytest

from admitperf.bench.workloads import workload
from admitperf.bench.workloads.clients import Window, weibull_shape
from admitperf.bench.workloads.grown import common_tokens
from admitperf.bench.workloads.measured import measured
from admitperf.bench.workloads.measuring import (
    dispersion,
    following,
    gap_cv,
    hit_share,
    peak,
)
from admitperf.bench.workloads.tables import GRID, drawn, table

SEEDS = range(1, 7)


def arrivals(name, rate_per_s, lasts_s, seeds=SEEDS):
    """CV of gaps, the fullest two seconds, dispersion at 1, 10 and 60 s: means."""
    told = []
    for seed in seeds:
        begun = workload(name).begun(rate_per_s, lasts_s, seed)
        at_s = [one for one, _ in begun]
        idc = [dispersion(at_s, window_s) for window_s in (1.0, 10.0, 60.0)]
        told.append([gap_cv(at_s), peak(at_s, 2.0), *idc])
    return [fmean(column) for column in zip(*told, strict=True)]


def quantiles(values, *shares):
    """Of values, at these shares."""
    ordered = sorted(values)
    return [ordered[int(share * (len(ordered) - 1))] for share in shares]


def test_code_comes_in_bursts_as_it_was_recorded():
    """A quarter off at most; Poisson would be 1, 18, 1, 1, 1."""
    found = arrivals("code-burst", 2.57, 3_436.0)
    assert found == pytest.approx([13.2, 132, 13.2, 71.6, 164], rel=0.25)


def test_steady_chat_is_steady_within_a_minute_and_not_beyond():
    """As recorded: nearly Poisson in its gaps, and swelling from minute to minute."""
    found = arrivals("chat-steady", 5.53, 3_502.0)
    assert found == pytest.approx([1.09, 29, 1.4, 3.9, 16.1], rel=0.2)


def test_conversations_come_almost_like_poisson_and_share_what_they_did():
    """Over a third of their prompt tokens were seen before."""
    cv, most, *_, minute = arrivals("chat-prefix", 3.40, 3_540.0, (1, 2))
    assert cv == pytest.approx(1.01, abs=0.05)
    assert most == pytest.approx(22, abs=4)
    assert 1.0 < minute < 4.0  # 2.9
    begun = workload("chat-prefix").begun(3.4, 3_540.0, 1)
    assert hit_share(begun) == pytest.approx(0.374, abs=0.03)


def test_clients_are_bursty_and_one_sends_half():
    """At the rate at which they were drawn before: CV 1.84, peak 76, 15.5 and 21.7."""
    cv, most, _, ten, minute = arrivals("tenants", 5.0, 1_200.0)
    assert cv == pytest.approx(1.84, rel=0.25)
    assert most == pytest.approx(76, rel=0.35)
    assert 5 < ten < 25
    assert 5 < minute < 35
    begun = workload("tenants").begun(5.0, 1_200.0, 1)
    most_of = max({one.tenant for _, one in begun}, key=lambda name: sum(
        one.tenant == name for _, one in begun))  # fmt: skip
    share = sum(one.tenant == most_of for _, one in begun) / len(begun)
    assert share == pytest.approx(0.52, abs=0.12)


@pytest.mark.parametrize(
    ("name", "prompts", "answers"),
    [
        ("code-burst", (1_500, 7_300, 7_400), (13, 90, 251)),
        ("chat-steady", (1_000, 4_100, 4_100), (129, 451, 601)),
        ("chat-prefix", (6_900, 39_600, 85_000), (350, 698, 1_119)),
        ("agent-sessions", (105_000, 337_000, None), (229, 1_588, 3_751)),
        ("tool-tight", (3_900, 25_200, None), (95, 224, 291)),
    ],
)
def test_lengths_are_those_of_the_trace(name, prompts, answers):
    """Half, 95 and 99 of 100: answers and single prompts to 15 %, grown ones to 30 %.

    The tail of grown prompts is that of a few sessions, of 20 even of one: what is held
    there is the order of size.
    """
    calls = [call for one in workload(name).pool() for call in one.calls]
    got = quantiles([call.output_tokens for call in calls], 0.5, 0.95, 0.99)
    assert got == pytest.approx(answers, rel=0.15)
    half, most, last = quantiles([call.input_tokens for call in calls], 0.5, 0.95, 0.99)
    if prompts[2] is not None:
        assert [half, most, last] == pytest.approx(prompts, rel=0.15)
        return
    assert half == pytest.approx(prompts[0], rel=0.3)
    assert prompts[1] / 2 < most < prompts[1] * 2


def test_coding_agents_commit_for_long_and_reuse_nearly_all():
    """44 calls in the median session, 97 % of a prompt known, a few resets."""
    pool = workload("agent-sessions").pool()
    calls = quantiles([len(one.calls) for one in pool], 0.25, 0.5, 0.75, 0.95)
    assert calls == pytest.approx([15, 37, 79, 207], rel=0.35)
    steps = [step for one in pool for step in following(one)]
    kept = [common_tokens(before.prefix, call.prefix) for before, call in steps]
    asked = [call.input_tokens for _, call in steps]
    assert sum(kept) / sum(asked) == pytest.approx(0.974, abs=0.01)
    fresh = [whole - common for whole, common in zip(asked, kept, strict=True)]
    assert quantiles(fresh, 0.5, 0.95) == pytest.approx([713, 8_200], rel=0.25)
    lost = sum(
        common < before.input_tokens / 2
        for (before, _), common in zip(steps, kept, strict=True)
    )
    assert lost / len(steps) == pytest.approx(0.02, abs=0.008)
    gaps = quantiles([call.gap_s for _, call in steps], 0.25, 0.5)
    assert gaps == pytest.approx([6, 11], rel=0.25)
    assert max(call.gap_s for _, call in steps) == 60.0


def test_tools_that_are_tight_take_under_a_second():
    """In prompts small enough for any engine, nearly all of which are known."""
    pool = workload("tool-tight").pool()
    gaps = [call.gap_s for one in pool for call in one.calls if call.after is not None]
    half, most = quantiles(gaps, 0.5, 0.75)
    assert half < most < 1.0
    assert hit_share((0.0, one) for one in pool) == pytest.approx(0.93, abs=0.03)
    assert quantiles([len(one.calls) for one in pool], 0.5)[0] in range(11, 31)


def test_bursts_of_agents_swell_by_the_minute():
    """Sessions that begin alone add up to nearly Poisson, as 64 recorded ones did."""
    found = {}
    for name in ("agent-sessions", "agent-burst"):
        made, told = workload(name), []
        for seed in SEEDS:
            begun = made.begun(0.04, 2_400.0, seed)
            at_s = sorted(due for one in begun for due in calls_of(*one, 2_400.0))
            told.append((gap_cv(at_s), dispersion(at_s, 60.0)))
        found[name] = [fmean(column) for column in zip(*told, strict=True)]
    for cv, _ in found.values():
        assert cv == pytest.approx(1.05, abs=0.1)  # 0.98 to 1.13: no burst of calls
    alone, together = (idc for _, idc in found.values())
    assert 0.8 < alone < 3
    assert together > 1.5 * alone


def calls_of(at_s, session, until_s):
    """When its calls come if each answer takes 6 s, as half of those recorded did."""
    due = []
    for call in session.calls:
        after_s = at_s if call.after is None else due[call.after] + 6.0
        due.append(after_s + call.gap_s)
    return [one for one in due if one < until_s]


# ---------------------------------------------------------------------------- parts


def test_a_table_gives_back_what_it_was_made_of():
    """Half of what is drawn lies below the median, and nothing beyond the ends."""
    values = [float(n * n) for n in range(1_000)]
    chance = Random(1)
    made = table(values)
    assert len(made) == len(GRID)
    got = [drawn(made, chance) for _ in range(20_000)]
    assert min(got) >= values[0]
    assert max(got) <= values[-1]
    assert quantiles(got, 0.05, 0.5, 0.95) == pytest.approx(
        quantiles(values, 0.05, 0.5, 0.95), rel=0.06
    )


@pytest.mark.parametrize("family", ["G", "W"])
@pytest.mark.parametrize("cv", [0.4, 1.0, 3.0])
def test_gaps_of_a_client_have_its_variation_and_a_mean_of_one(family, cv):
    """Whatever family they are of."""
    chance, window = Random(1), Window(1.0, cv, family)
    gaps = [window.gap(chance) for _ in range(60_000)]
    mean = fmean(gaps)
    assert mean == pytest.approx(1.0, rel=0.06)
    spread = fmean((gap - mean) ** 2 for gap in gaps) ** 0.5
    assert spread == pytest.approx(cv, rel=0.12)


def test_an_exponential_is_a_weibull():
    """Of shape one."""
    assert weibull_shape(1.0) == pytest.approx(1.0, rel=1e-6)


def test_every_parameter_names_its_source_and_its_licence():
    """So that what is generated can be attributed."""
    for told in measured().values():
        assert "Apache-2.0" in told["source"] or "CC-BY 4.0" in told["source"]


def test_the_parameters_are_those_that_the_traces_give(shared, root):
    """The script finds again what is kept."""
    ran = subprocess.run(
        [sys.executable, root / "benchmarks" / "measure_traces.py", "--json"],
        env={"ADMITPERF_SHARED": str(shared), "PYTHONPATH": str(root / "src")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == measured()
