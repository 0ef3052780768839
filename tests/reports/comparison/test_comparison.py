"""A comparison: what it says, and what it does not."""

import json
import re
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator
from tests.reports.comparison.test_guards import compared
from tests.reports.comparison_schema import comparison_schema, experiments_schema
from tests.reports.repeats_byhand import arm, baseline, better, repeat, worse

from admitperf.reports.comparison import experiments
from admitperf.reports.comparison.arms import arms
from admitperf.reports.comparison.comparison import compare, compare_all
from admitperf.reports.comparison.sides import against
from admitperf.reports.pages import comparison_page
from admitperf.reports.pages.comparison_document import document
from admitperf.reports.report import report
from admitperf.reports.runs.log import Files

__all__ = ["compared"]
SIMULATED = {"simulated": True}


@pytest.fixture
def page(compared):
    """The page on two arms."""

    def _page(*sides):
        return comparison_page.text([compared(*sides)], Files())

    return _page


@pytest.fixture
def experiment(write):
    """Compare every arm of one log with its baseline."""

    def _experiment(*lines):
        made = report([write(*lines, name="all.jsonl")])
        chosen, others = against(arms(made.runs))
        return compare_all(*others, chosen), made.files

    return _experiment


def flat(text):
    """A page as one line, so that wrapping hides nothing."""
    return " ".join(text.split())


PAGES = {
    "better": lambda: (better(), baseline()),
    "worse": lambda: (worse(notes=SIMULATED), baseline(notes=SIMULATED)),
    "few": lambda: (better(2), baseline(2)),
    "five": lambda: (better(5), baseline(5)),
    "void": lambda: (arm("queue_bound", (90, 91, 92)), baseline(3)),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_agreed(golden, page, name):
    """Each verdict's page, letter by letter."""
    golden(f"compare_{name}.txt", page(*PAGES[name]()))


@pytest.mark.parametrize("name", PAGES)
def test_the_page_fits_any_terminal(page, name):
    """ASCII, at most 80 columns, no trailing space."""
    for line in page(*PAGES[name]()).splitlines():
        assert re.fullmatch(r"[ -~]{0,80}", line)
        assert line == line.rstrip()


@pytest.mark.parametrize("name", PAGES)
def test_the_verdict_comes_first_and_checks_before_numbers(page, name):
    """Title, line, verdict; then the checks; then repeats."""
    lines = page(*PAGES[name]()).splitlines()
    assert re.match(r"  (BETTER|WORSE|EQUIVALENT|INCONCLUSIVE|VOID) ", lines[2])
    assert lines.index("Checks before numbers") < lines.index("Repeats")


@pytest.mark.parametrize("name", PAGES)
def test_the_mde_is_always_printed(page, name):
    """With every verdict."""
    assert re.search(
        r"^  MDE +0\.\d+: the smallest", page(*PAGES[name]()), re.MULTILINE
    )


def test_parameters_stand_with_where_they_come_from(page):
    """Or alone, when the log does not say."""
    ours = better(3, params={"a": 4, "b": 1}, provenance={"a": "unstated"})
    text = page(ours, baseline(3))
    assert "queue_bound, 3 repeats; a=4 (given, origin not stated), b=1" in flat(text)


def test_what_is_simulated_is_said_in_the_first_lines(page):
    """Before any number that could be taken for a measurement."""
    lines = page(worse(notes=SIMULATED), baseline(notes=SIMULATED)).splitlines()
    assert any("SIMULATED" in line for line in lines[:6])
    assert "SIMULATED" not in page(worse(), baseline())


def test_what_an_oracle_helped_is_said_in_the_first_lines(page):
    """One arm that knew what no host can is enough."""
    told = {"simulated": True, "oracle": True}
    lines = page(worse(notes=told), baseline(notes=SIMULATED)).splitlines()
    assert any(line.startswith("  ORACLE ") for line in lines[:7])
    assert "ORACLE" not in page(worse(notes=SIMULATED), baseline(notes=SIMULATED))


def test_a_fall_with_a_shorter_tail_is_no_win(compared):
    """The two sentences of the argument, and why, with their numbers."""
    made = compared(worse(), baseline())
    said = " ".join(made.says)
    assert made.verdict == "worse"
    assert said.startswith("It refused 420 of 600 (70.0 %) attempts offered, in 6")
    assert "Goodput fell from 0.508 to 0.290 of offered, means of 6 pairs" in said
    assert re.search(r"although the p95 tail .* got [\d.]+ times shorter", said)
    assert "the policy refused requests that the cluster could have served." in said
    assert "no_admission met the SLO on 305 of 600 offered, kv_wall on 174." in said
    assert "That is no win" in said
    assert "420 of 600 (70.0 %) got no answer" in said


def test_a_rise_with_a_shorter_tail_is_said_too(compared):
    """Both got better, and what was refused was paid back."""
    made = compared(better(slow_ms=1600), baseline())
    said = " ".join(made.says)
    assert "It refused 120 of 600 (20.0 %) attempts offered" in said
    assert re.search(r"Goodput rose .*, and the p95 tail .* times shorter", said)
    assert "no win" not in said


def test_a_longer_tail_is_not_hidden(compared):
    """Goodput rose and those too late waited longer."""
    made = compared(better(slow_ms=30_000), baseline())
    assert re.search(r"Goodput rose .*got [\d.]+ times longer", " ".join(made.says))
    goods = (25, 26, 24, 25, 26, 23)
    made = compared(arm("kv_wall", goods, refused=70, slow_ms=30_000), baseline())
    said = " ".join(made.says)
    assert re.search(r"Goodput fell .*got [\d.]+ times longer", said)
    assert "no win" not in said


def test_a_tail_that_hardly_changed_is_not_called_shorter(compared):
    """Within 5 % it is as long."""
    said = " ".join(compared(better(), baseline()).says)
    assert "the p95 tail of those served hardly changed" in said
    assert "shorter" not in said


def test_a_void_comparison_says_nothing_of_the_policy(compared):
    """Only what was refused, which is a count."""
    made = compared(arm("queue_bound", (90, 91, 92)), baseline(3))
    assert made.verdict == "void"
    assert made.says == ("It refused 0 of 300 (0.0 %) attempts offered, in 3 repeats.",)


def test_an_argument_tells_who_waited_from_who_was_refused(compared):
    """Nobody was turned away, so nothing is said to be paid back by it."""
    made = compared(better(refused=0, held=20), baseline())
    assert made.says[0] == (
        "It refused 0 of 600 (0.0 %) attempts offered and held 120 of 600 (20.0 %)"
        " attempts, in 6 repeats."
    )
    assert "turned away" not in " ".join(made.says)
    assert {(one.held.n, one.held.of) for one in made.arm.repeats} == {(20, 100)}
    short = better(refused=0, held=20, slow_ms=2000)
    assert made.verdict == "better"
    said = " ".join(compared(short, baseline()).says)
    assert "shorter" in said
    assert "turned away" not in said


def test_a_void_page_judges_no_difference(page):
    """The MDE stands there, and no interval of the difference."""
    text = page(arm("queue_bound", (90, 91, 92)), baseline(3))
    statistics = text.split("The difference, arm minus baseline")[1]
    assert "A check failed: no difference is judged." in statistics
    assert "interval" not in statistics
    assert "MDE" in statistics


def test_one_pair_settles_nothing(compared):
    """The change is described, with its doubt."""
    made = compared(better(1), baseline(1))
    assert made.verdict == "inconclusive"
    assert "These pairs do not settle it." in " ".join(made.says)


def test_percentiles_are_never_averaged(page):
    """1,000 requests with one p95 and 30 with another: both shown, and a warning."""
    one = repeat("no_admission", "r1", 930, offered=1000, slow_ms=2000)
    two = repeat("no_admission", "r2", 20, offered=30, slow_ms=90_000)
    ours = [
        *repeat("queue_bound", "r1", 700, offered=1000, refused=200, slow_ms=2000),
        *repeat("queue_bound", "r2", 15, offered=30, refused=5, slow_ms=90_000),
    ]
    text = page(ours, [*one, *two])
    p95s = [int(found) for found in re.findall(r"(\d+) \((?:1000|30)\)", text)]
    assert len(p95s) == 2
    assert str(round(sum(p95s) / 2)) not in text
    assert (
        "no_admission: the repeats differ in size, 30 to 1000 served. Their"
        " percentiles are shown apart, never averaged."
    ) in flat(text)


def test_a_p95_of_few_is_withheld(page):
    """Below 20 it would be the maximum."""
    few = {"offered": 12}
    ours = arm("queue_bound", (8, 7, 8), refused=2, **few)
    text = page(ours, arm("no_admission", (6, 5, 6), **few))
    assert "n<20 (10)" in text
    assert re.search(r"^  median +0\.667 +-- ", text, re.MULTILINE)


def test_several_gains_are_raised_by_holm(experiment):
    """Six pairs cannot show two gains; the page says whose p was raised."""
    second = arm("other_bound", (71, 74, 69, 73, 70, 73), refused=20)
    made, files = experiment(*better(), *second, *worse(), *baseline())
    words = {one.arm.label: one.verdict for one in made}
    assert words == {
        "kv_wall": "worse",
        "other_bound": "inconclusive",
        "queue_bound": "inconclusive",
    }
    text = comparison_page.text(made, files)
    assert text.startswith("Experiment pilot: every arm against no_admission\n")
    assert "2 arms claim a gain: Holm's procedure raises their p" in flat(text)
    assert "Holm p 0.062 among 2 arms with a gain" in flat(text)
    assert "needed 7 pairs" in flat(text)


def test_a_void_arm_takes_no_part_in_the_family(experiment):
    """What makes no claim claims no gain."""
    void = arm("broken", (90, 91, 92, 90, 91, 92))
    made, _ = experiment(*better(), *void, *baseline())
    words = {one.arm.label: (one.verdict, one.statistics.family) for one in made}
    assert words == {"broken": ("void", 1), "queue_bound": ("better", 1)}


@pytest.mark.parametrize(
    ("sides", "claim", "why"),
    [
        ((better, baseline), "better", None),
        ((better, baseline), "not-worse", None),
        ((better, baseline), "equivalent", "better, not equivalent"),
        ((worse, baseline), "better", "worse, not better"),
        ((worse, baseline), "not-worse", "a loss of 0.01 is not ruled out"),
    ],
)
def test_a_claim_is_held_or_not(compared, sides, claim, why):
    """Each failure has words of its own."""
    made = compared(*(side() for side in sides))
    found = made.against_claim(claim)
    assert (found == ()) if why is None else (why in found[0])


def test_too_few_pairs_support_no_claim(compared):
    """They were not asked."""
    made = compared(better(2), baseline(2))
    for claim in ("better", "not-worse", "equivalent"):
        assert made.against_claim(claim) == (
            "inconclusive: with 2 pairs it is not asked",
        )


def test_the_margin_is_the_callers(write):
    """A gain of 0.2 is within a margin of 0.5."""
    sides = [
        report([write(*lines, name=name)]).runs
        for name, lines in (("a", better()), ("b", baseline()))
    ]
    assert compare(*sides, margin=0.5).verdict == "equivalent"


def test_every_pair_of_one_plan_is_noticed(compared):
    """Such an interval speaks of the machine."""
    notes = {"plan": "0f3c"}
    made = compared(better(3, notes=notes), baseline(3, notes=notes))
    (said,) = made.notices
    assert said.startswith("Every pair replays one plan")


def test_the_notices_of_the_runs_stand_on_the_page(write):
    """With the run they speak of; past a dozen the report has them."""
    runs = report([write(*better(), name="a")]).runs
    base = report([write(*baseline(), name="b")]).runs
    odd = [replace(run, notices=("odd one", "odd two", "odd three")) for run in runs]
    made = compare(odd, base)
    assert "queue_bound r1: odd one" in made.notices
    assert len(made.notices) == 13
    assert made.notices[-1] == "And 6 more: `admitperf report` has them."


# ------------------------------------------------------------------------- JSON


@pytest.fixture(scope="module")
def published(root):
    """Validators from the schemas in the docs."""
    folder = root / "docs" / "reference" / "report"
    return {
        name: Draft202012Validator(
            json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
        )
        for name in ("comparison", "experiments")
    }


@pytest.mark.parametrize("name", PAGES)
def test_the_document_keeps_to_its_schema(published, compared, name):
    """With a check that passes, one that fails, and none."""
    made = compared(*PAGES[name]())
    for claim in (None, "better", "equivalent"):
        plain = json.loads(
            json.dumps(document([made], Files(), claim), allow_nan=False)
        )
        published["comparison"].validate(plain)
        assert (plain["check"] is None) == (claim is None)


def test_the_document_and_the_page_hold_the_same_numbers(compared):
    """The verdict, the mean and the MDE."""
    made = compared(better(), baseline())
    plain = document([made], Files())["comparisons"][0]
    text = comparison_page.text([made], Files())
    found = plain["statistics"]
    assert plain["verdict"].upper() in text
    assert f"{found['mean']:+.3f}, 6 pairs" in text
    assert f"{found['smallest_effect']:.3f}: the smallest" in text
    assert found["blocks_needed"] == made.statistics.blocks_needed


def test_the_published_schemas_are_made_from_the_classes(root, request):
    """A field that is added stands in the docs, with its meaning."""
    folder = root / "docs" / "reference" / "report"
    for name, schema in (
        ("comparison", comparison_schema()),
        ("experiments", experiments_schema()),
    ):
        path, text = folder / f"{name}.schema.json", json.dumps(schema, indent=2) + "\n"
        if request.config.getoption("--update"):
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text, f"{path}: run with --update"


# ------------------------------------------------------------------ experiments


def test_experiments_are_listed_with_what_is_missing(golden, write, published):
    """Arms, repeats, findings, the range of goodput, and the gaps."""
    made = report(
        [
            write(
                *better(3),
                *worse(2),
                *baseline(3),
                *repeat("kv_wall", "x", 0, experiment="alone", run="solo"),
                *repeat("kv_wall", "y", 0, refused=100, experiment=None, run="nobody"),
                name="all.jsonl",
            )
        ]
    )
    found = experiments.listed(made.runs)
    golden("experiments.txt", experiments.text(found, Files()))
    published["experiments"].validate(
        json.loads(json.dumps(experiments.document(found, Files()), allow_nan=False))
    )
    (pilot,) = [one for one in found if one.name == "pilot"]
    assert "r3 in kv_wall" in pilot.missing
    (alone,) = [one for one in found if one.name == "alone"]
    assert "a baseline: no arm refuses nothing by design" in alone.missing
