"""The page: verdicts first, every number with what it is of."""

from dataclasses import replace

import pytest

from admitperf.bench.pages import page


def test_the_page_is_as_it_was(verdicts, runs, golden):
    """A golden file with an arm of each kind."""
    golden("bench_compare.txt", page.text(verdicts, runs))


def test_it_is_ascii_in_80_columns(verdicts, runs):
    """However long a name is."""
    long = replace(verdicts, experiment="a name that is long " * 6)
    for made in (verdicts, long):
        lines = page.text(made, runs).splitlines()
        assert all(line.isascii() and line.isprintable() for line in lines)
        assert max(map(len, lines)) <= 80


def test_verdicts_come_first_and_checks_before_the_design(verdicts):
    """In the order a reader needs them."""
    text = page.text(verdicts)
    order = ("BETTER", "VOID", "SIMULATED", "Goodput by load", "Claims")
    order += ("Checks before", "Design", "Left out")
    places = [text.index(word) for word in order]
    assert places == sorted(places)


def test_an_exploratory_metric_says_so_above_the_verdicts(verdicts):
    """And which one was declared."""
    assert "EXPLORATORY" not in page.text(verdicts)
    made = replace(
        verdicts, metric="cost_per_good", exploratory=True, share=False, better="lower"
    )
    text = page.text(made)
    assert text.index("EXPLORATORY") < text.index("BETTER")
    assert "the claims were set on goodput before any run" in " ".join(text.split())
    assert "1 % of the baseline's mean: cost per good is no share" in text


def test_an_identical_pair_is_not_called_noise(verdicts):
    """Nothing could differ."""
    arms = tuple(replace(one, identical=one.twin) for one in verdicts.arms)
    assert "noise: +0.000" in page.text(verdicts)
    text = page.text(replace(verdicts, arms=arms))
    assert "gain        not even noise: +0.000" in text


def test_a_small_unit_is_not_rounded_away(verdicts):
    """As many places as show the margin."""
    (bounded, *_) = verdicts.arms
    tiny = replace(bounded.gain.statistics, mean=0.000123, margin=0.00001)
    arms = (replace(bounded, gain=replace(bounded.gain, statistics=tiny)),)
    assert "+0.000123," in page.text(replace(verdicts, arms=arms))


def test_no_difference_is_shown_of_a_void_arm(verdicts):
    """Its means stand in the table, and nothing is judged."""
    text = page.text(verdicts)
    cells = text.split("Single loads")[1].split("Checks before")[0]
    assert "inert" not in cells
    assert "bounded" in cells
    own = text.split("inert (kv_threshold")[1].split("refuses_all (")[0]
    assert "no difference is judged" in own
    assert "gain" not in own


def test_a_gain_with_harm_reads_so(verdicts):
    """In the first lines."""
    head = " ".join(page.text(verdicts).split("Goodput by load")[0].split())
    said = "INCONCLUSIVE harms_below: better above capacity, harm below it"
    assert said in head


@pytest.mark.parametrize("loads", [(1.2,), (0.8,)])
def test_a_claim_that_was_not_asked_says_so(verdicts, loads):
    """No load above capacity, or none below."""
    missing = {"no_harm": None} if loads == (1.2,) else {"gain": None}
    arms = tuple(replace(one, **missing) for one in verdicts.arms)
    text = page.text(replace(verdicts, arms=arms))
    assert "not asked: no load of its kind was run" in text


def test_what_was_ended_early_says_so(verdicts):
    """Above all numbers."""
    text = page.text(replace(verdicts, partial=True))
    assert text.index("PARTIAL") < text.index("Goodput by load")
    assert "PARTIAL" not in page.text(verdicts)


def test_what_is_not_known_is_left_out(verdicts):
    """No empty rows, and no `None`."""
    bare = replace(
        verdicts, workload=None, client=None, window=None, slo={}, capacity={},
        left_out=(), notices=("Something.",),
    )  # fmt: skip
    text = page.text(bare)
    assert "None" not in text
    assert "Left out" not in text
    assert "workload" not in text.split("Design")[1]
    assert text.endswith("Notices\n  - Something.\n")
