"""The fit finds costs that are known, and says which ones it could not find."""

import math
from dataclasses import replace

import pytest
from tests.simulator.fit.made import Costs, run, without_tokens

from admitperf.core.errors import ConfigError
from admitperf.simulator.fit.fitting import fitted
from admitperf.simulator.fit.observations import disturbances, observed
from admitperf.simulator.fit.priors import RATIOS, Prior
from admitperf.simulator.fit.recorded import Foreign
from admitperf.simulator.fit.regression import regressed
from admitperf.simulator.profile import profile

COSTS = {
    "step_ms": 9.0,
    "ms_per_resident_token": 0.002,
    "ms_per_prefill_token": 0.3,
    "ms_per_sequence": 0.8,
}


def costs_of(made):
    """A profile's coefficients."""
    return {name: getattr(made.engine, name) for name in COSTS}


@pytest.fixture(scope="module")
def varied():
    """Runs of 1, 2, 4 and 8 clients, without noise."""
    return [run(clients=n, requests=12 * n, name=f"c{n}") for n in (1, 2, 4, 8)]


def test_known_costs_are_found_again(varied):
    """Within 4 %, the front end's within 0.2 ms."""
    made = fitted(varied, name="x")
    assert costs_of(made) == pytest.approx(COSTS, rel=0.04)
    assert made.engine.front_ms == pytest.approx(4.0, abs=0.2)
    assert made.residuals.p95_abs_fraction < 0.01
    assert set(COSTS) <= set(made.provenance.identified)


def test_noise_hides_no_cost_and_its_size_is_found(varied):
    """Steps that scatter by 20 %: prefill and fixed part within 10 %, the sum kept."""
    noisy = [run(n, 25 * n, noise=0.2, name=f"c{n}", seed=n) for n in (1, 2, 4, 8)]
    made = fitted(noisy, name="x")
    assert made.engine.ms_per_prefill_token == pytest.approx(0.3, rel=0.10)
    assert made.engine.step_ms == pytest.approx(9.0, rel=0.10)
    eight = made.engine.step_ms + 8 * made.engine.ms_per_sequence
    eight += 1300 * made.engine.ms_per_resident_token
    assert eight == pytest.approx(9 + 8 * 0.8 + 1300 * 0.002, rel=0.04)
    at_64 = made.engine.noise * min(1.0, math.sqrt(made.engine.noise_steps / 64))
    assert at_64 == pytest.approx(0.2 / 8, rel=0.6)


def test_one_client_cannot_tell_a_sequence_from_a_step(varied):
    """The sum is found, the parts stand in the prior's ratio; the profile says so."""
    made = fitted(varied[:1], name="x")
    engine = made.engine
    assert "ms_per_sequence" in made.provenance.priors
    assert "ms_per_sequence" not in made.provenance.identified
    ratio = engine.ms_per_sequence / engine.ms_per_prefill_token
    assert ratio == pytest.approx(RATIOS["ms_per_sequence"][1], rel=0.15)
    together = engine.step_ms + engine.ms_per_sequence
    assert together == pytest.approx(9.8, rel=0.03)


def test_a_profile_to_start_from_gives_its_ratios(varied):
    """With another ratio in it, another one stands in, scaled to what is known."""
    base = profile("vllm-cpu")
    engine = replace(base.engine, ms_per_sequence=5 * base.engine.ms_per_prefill_token)
    made = fitted(varied[:1], name="x", base=replace(base, engine=engine))
    ratio = made.engine.ms_per_sequence / made.engine.ms_per_prefill_token
    assert ratio == pytest.approx(5, rel=0.15)
    assert "profile vllm-cpu" in made.provenance.priors["ms_per_sequence"]


def test_the_prior_does_not_move_what_the_runs_know(varied):
    """A wrong belief about every ratio changes a known cost by less than 2 %."""
    rows = [observed(one).rows for one in varied]
    wrong = {at: (beside, 3 * ratio) for at, (beside, ratio) in RATIOS.items()}
    fits = [regressed(rows, prior, 0) for prior in (Prior(), Prior(ratios=wrong))]
    for name in ("step_ms", "ms_per_prefill_token", "ms_per_sequence"):
        first, second = (fit.costs[name] for fit in fits)
        assert second == pytest.approx(first, rel=0.02)


def test_a_log_alone_gives_the_costs_of_a_step(varied):
    """First tokens and ends only: a step of one and of eight sequences within 15 %."""
    made = fitted([without_tokens(one) for one in varied], name="x")
    engine = made.engine
    assert engine.ms_per_prefill_token == pytest.approx(0.3, rel=0.10)
    for n, resident in ((1, 200), (8, 1600)):
        step_ms = engine.step_ms + n * engine.ms_per_sequence
        step_ms += resident * engine.ms_per_resident_token
        assert step_ms == pytest.approx(9 + n * 0.8 + resident * 0.002, rel=0.15)
    assert "not when tokens came" in made.provenance.notes[0]


def test_a_faster_engine_is_as_much_faster_in_all_costs(varied):
    """Halving every cost halves every coefficient."""
    half = Costs(front=2, step=4.5, resident=0.001, prefill=0.15, sequence=0.4)
    runs = [run(n, 12 * n, costs=half, name=f"c{n}") for n in (1, 2, 4, 8)]
    made = fitted(runs, name="x")
    assert costs_of(made) == pytest.approx(
        {k: v / 2 for k, v in COSTS.items()}, rel=0.04
    )


def test_a_run_that_was_slower_as_a_whole_is_no_cost(varied):
    """Of two occasions, the one 10 % slower: all costs lie between, in their ratios."""
    slow = Costs(step=9.9, resident=0.0022, prefill=0.33, sequence=0.88)
    runs = [*varied, *(run(n, 12 * n, costs=slow, name=f"s{n}") for n in (1, 2, 4, 8))]
    made = fitted(runs, name="x")
    assert costs_of(made) == pytest.approx(
        {k: 1.05 * v for k, v in COSTS.items()}, rel=0.04
    )
    assert made.residuals.run_to_run == pytest.approx(0.05, rel=0.5)


def test_what_other_processes_disturbed_is_left_out():
    """Steps three times as long while others ran: the costs are those of the rest."""
    calm = run(clients=4, requests=48)
    split_s = calm.asked[24].sent_s
    end_s = max(one.end_s for one in calm.asked)

    def late(at_s):
        return at_s if at_s < split_s else split_s + 2.5 * (at_s - split_s)

    asked = tuple(
        replace(
            one,
            chunks=tuple((late(t), n) for t, n in one.chunks),
            ttft_ms=(late(one.first_s) - one.sent_s) * 1e3,
            e2e_ms=(late(one.end_s) - one.sent_s) * 1e3,
        )
        for one in calm.asked
    )
    spans = (Foreign(0.0, split_s, 0.0), Foreign(split_s, late(end_s), 1.0))
    made = replace(calm, asked=asked, foreign=spans)
    assert disturbances(made) == [(split_s, late(end_s))]
    found = fitted([made], name="x")
    assert found.engine.ms_per_prefill_token == pytest.approx(0.3, rel=0.02)
    assert "other processes ran then" in found.provenance.notes[0]


def test_others_that_always_ran_belong_to_the_machine():
    """Nothing is left out where nothing would remain."""
    spans = tuple(Foreign(float(n), n + 1.0, 1.0) for n in range(9))
    assert disturbances(replace(run(1, 2), foreign=spans)) == []


def test_runs_that_contradict_each_other_are_refused(varied):
    """The error says how to decide, and a size said by hand decides."""
    other = replace(varied[1], engine={**varied[1].engine, "max_num_seqs": 4})
    with pytest.raises(ConfigError, match="max_num_seqs is 8 in c1, 4 in c2"):
        fitted([varied[0], other], name="x")
    made = fitted([varied[0], other], name="x", sizes={"max_num_seqs": 6})
    assert made.engine.max_num_seqs == 6


def test_a_run_that_does_not_say_its_engine_needs_help(varied):
    """A bench file states no sizes: they come by hand, or from a profile."""
    bare = replace(varied[0], engine={})
    with pytest.raises(ConfigError, match=r"do not say max_num_seqs.*kv_blocks"):
        fitted([bare], name="x")
    made = fitted([bare], name="x", base=profile("vllm-cpu"))
    assert made.engine.kv_blocks == profile("vllm-cpu").engine.kv_blocks
