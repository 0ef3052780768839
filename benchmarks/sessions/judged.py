"""What the records come to: regret, claims, aims and what would refute them.

Every rule is of PROTOCOL.md. An aim that cannot be asked, because runs are missing, is
missed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import NamedTuple

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.cells import CLIENTS, LOAD, LOADS, Cell
from benchmarks.sessions.evidence import (
    ARMS,
    ENGINES,
    HARM,
    MODES,
    SHIFTED,
    Evidence,
    held,
    one_set,
)

from admitperf.bench.design.claims import Pooled
from admitperf.reports.comparison.statistics import holm
from admitperf.reports.comparison.verdict import Paired

MARGIN = 0.02
"""The smallest gain that is claimed, the largest loss that is allowed. Protocol."""

MOST_WASTED = 0.01
"""Of the tokens computed, in `protect`, in every cell. Protocol."""

ALONE = 0.95
"""A gate with so many of all holds did everything. Plain choice."""

LEDGER = ("ledger_kv", "ledger_slots", "ledger_prefill")
"""The gates of which one alone could have done everything."""

ABOVE = tuple(load for load in LOADS if load > 1)
ELEPHANTS = ("gate_elephant", "cap_elephant")


# ------------------------------------------------------------------------- regret


@dataclass(frozen=True, slots=True)
class Regret:
    """How far an arm stays behind the best of each cell.

    Attributes:
        arm: its name.
        cells: the best arm's mean less its own, at least 0.
    """

    arm: str
    cells: Mapping[Cell, float]

    @property
    def worst(self) -> float:
        """In the cell where it is largest."""
        return max(self.cells.values())

    @property
    def where(self) -> Cell:
        """The cell where it is largest."""
        return max(self.cells, key=self.cells.__getitem__)

    @property
    def mean(self) -> float:
        """Over the cells."""
        return fmean(self.cells.values())


def regrets(evidence: Evidence, metric: str, cells: Sequence[Cell]) -> list[Regret]:
    """Of every arm that ran in all of these cells, the smallest worst cell first.

    The best arm of a cell is any of the protocol's table, tuned there or not.
    """
    arms = evidence.arms(cells)
    means = {
        cell: {arm: evidence.mean(arm, cell, metric) or 0.0 for arm in arms}
        for cell in cells
    }
    made = (
        Regret(arm, {cell: max(of.values()) - of[arm] for cell, of in means.items()})
        for arm in arms
    )
    return sorted(made, key=lambda one: (one.worst, one.mean, one.arm))


def ranked(evidence: Evidence, metric: str, cells: Sequence[Cell]) -> list[Regret]:
    """The same of the arms with one parameter set."""
    return [one for one in regrets(evidence, metric, cells) if one_set(one.arm)]


def without(evidence: Evidence, block: int) -> Evidence:
    """The same evidence less a block."""
    return Evidence.of(
        row
        for row in evidence.rows
        if row["block"] != block and row["stage"] != "screen"
    )


# ------------------------------------------------------------------------- claims


@dataclass(frozen=True, slots=True)
class Gain:
    """A gain of one arm over another that is claimed.

    Attributes:
        arm, other: both, as the records name them.
        metric: on which.
        loads: multiples of capacity.
        cells: in how many both arms ran, of the main ones at these loads.
        pooled: one observation a block, the mean over these cells; None = no run.
    """

    arm: str
    other: str
    metric: str
    loads: tuple[float, ...]
    cells: int
    pooled: Pooled | None

    @property
    def whole(self) -> bool:
        """Whether both arms ran in every cell of these loads."""
        return self.cells == len(ENGINES) * len(CLIENTS) * len(self.loads)

    @property
    def holds(self) -> bool:
        """Whether it is shown."""
        return self.whole and self.pooled is not None and self.pooled.rises

    @property
    def paired(self) -> Paired | None:
        """Its statistics; None = no run."""
        return self.pooled.statistics if self.pooled else None


def pooled(
    evidence: Evidence, arm: str, other: str, metric: str, cells: Sequence[Cell]
) -> tuple[int, Pooled | None]:
    """Over how many cells two arms can be compared, and what the blocks say."""
    runs = [evidence.runs[cell] for cell in cells]
    both = [(one[arm], one[other]) for one in runs if arm in one and other in one]
    if not both:
        return 0, None
    every = [set(blocks) for blocks in chain.from_iterable(both)]
    whole = sorted(set.intersection(*every))
    ours, theirs = (
        [fmean(two[place][block][metric] for two in both) for block in whole]
        for place in (0, 1)
    )
    return len(both), Pooled(
        loads=tuple(sorted({cell.load for cell in cells})),
        blocks=tuple(whole),
        lacking=tuple(sorted(set.union(*every) - set(whole))),
        statistics=Paired.of(ours, theirs, MARGIN),
    )


def gain(evidence: Evidence, arm: str, other: str, loads: Sequence[float]) -> Gain:
    """A mode against another arm on the mode's metric, over the main cells."""
    metric = MODES[arm]
    named = evidence.named(other, metric)
    made = pooled(evidence, arm, named, metric, evidence.grid(loads))
    return Gain(arm, named, metric, tuple(loads), *made)


def gains(evidence: Evidence) -> list[Gain]:
    """Every gain that is claimed, of both modes, after Holm over all of them."""
    at = (LOAD,)
    many = [
        *(gain(evidence, "protect", arm, ABOVE) for arm in ARMS if arm != "protect"),
        gain(evidence, "shed", "thunder", ABOVE),
        *(
            gain(evidence, mode, arm, at)
            for mode in ("protect", "shed")
            for arm in controls(mode)
        ),
    ]
    return in_family(many)


def controls(mode: str) -> tuple[str, ...]:
    """The arms that each lack one of a mode's parts."""
    return (f"memoryless_{mode}", f"thin_{mode}", *ELEPHANTS)


def in_family(many: Sequence[Gain]) -> list[Gain]:
    """Raises the t p of each; one that could not be asked had its chance, too."""
    ps = [one.paired.t_p if one.paired else None for one in many]
    raised = holm([1.0 if p is None else p for p in ps])
    return [_raised(*two, len(many)) for two in zip(many, raised, strict=True)]


def _raised(one: Gain, p: float, family: int) -> Gain:
    if one.pooled is None:
        return one
    own = replace(one.pooled.statistics, family=family, family_p=p)
    return replace(one, pooled=replace(one.pooled, statistics=own))


# --------------------------------------------------------------------------- aims


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question of the protocol comes to.

    Attributes:
        name: the question, in a few words.
        yes: its answer.
        says: why, in sentences with numbers.
        parts: whether each of these holds, where the answer takes all of them.
    """

    name: str
    yes: bool
    says: tuple[str, ...]
    parts: tuple[bool, ...] = ()


def aims(evidence: Evidence) -> list[Answer]:
    """The five aims; yes = met."""
    claimed = gains(evidence)
    return [
        _robust(evidence),
        _work(evidence, claimed),
        _no_harm(evidence),
        _nearest(claimed),
        _controlled(claimed),
    ]


def three(value: float | None) -> str:
    """A number with three decimals; `--` = not known."""
    return "--" if value is None else f"{value:.3f}"


def difference(found: Paired | None) -> str:
    """`+0.031 (+0.012 to +0.050)`."""
    if found is None or found.mean is None:
        return "not run"
    if found.interval is None:
        return f"{found.mean:+.3f}"
    low, high = found.interval.low, found.interval.high
    return f"{found.mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _answer(name: str, found: Sequence[tuple[bool, str]]) -> Answer:
    if not found:
        return Answer(name, yes=False, says=("Not run.",), parts=(False,))
    parts, says = zip(*found, strict=True)
    return Answer(name, all(parts), says, parts)


def _robust(evidence: Evidence) -> Answer:
    rests = [without(evidence, block) for block in blocks(evidence)]
    found = [
        _smallest(evidence, mode, where, rests)
        for mode in MODES
        for where in _both(evidence)
    ]
    return _answer("1 robustness", found)


class Where(NamedTuple):
    """Some cells.

    Attributes:
        cells: those that were run.
        name: what they are called.
        whole: whether all that the protocol asks for were.
    """

    cells: list[Cell]
    name: str
    whole: bool


def _both(evidence: Evidence) -> tuple[Where, Where]:
    grid, shift = evidence.grid(), evidence.shift()
    asked = len(ENGINES) * len(CLIENTS) * len(LOADS)
    moved = len(SHIFTED) * len(CLIENTS)
    return (
        Where(grid, f"the {len(grid)} cells", len(grid) == asked),
        Where(
            shift,
            f"the {len(shift)} cells of the shift test",
            len(shift) == moved,
        ),
    )


def _smallest(
    evidence: Evidence, mode: str, where: Where, rests: Sequence[Evidence]
) -> tuple[bool, str]:
    metric = MODES[mode]
    found = ranked(evidence, metric, where.cells)
    names = [one.arm for one in found]
    if mode not in names or len(found) < 2:
        return False, f"`{mode}` on {metric} over {where.name}: not run."
    lacking = "" if where.whole else " Some cells were not run."
    place = names.index(mode)
    other = found[0] if place else found[1]
    kept = sum(_leads(rest, mode, where.cells) for rest in rests)
    return place == 0 and where.whole, (
        f"`{mode}` on {metric} over {where.name}: worst-cell regret"
        f" {three(found[place].worst)}, place {place + 1} of {len(found)};"
        f" {'first' if place else 'next'} `{other.arm}` {three(other.worst)};"
        f" first in {kept} of {len(rests)} samples that leave a block out.{lacking}"
    )


def _leads(evidence: Evidence, mode: str, cells: Sequence[Cell]) -> bool:
    found = [cell for cell in cells if cell in evidence.runs]
    first = ranked(evidence, MODES[mode], found)
    return bool(first) and first[0].arm == mode


def blocks(evidence: Evidence) -> list[int]:
    """The blocks of the main cells."""
    return sorted(
        {
            block
            for cell in evidence.grid()
            for own in evidence.runs[cell].values()
            for block in own
        }
    )


def _work(evidence: Evidence, claimed: Sequence[Gain]) -> Answer:
    asked = [one for one in claimed if one.arm == "protect" and one.loads == ABOVE]
    return _answer("2 work", [_wasted(evidence), _all_hold("protect", asked)])


def _wasted(evidence: Evidence) -> tuple[bool, str]:
    (cells, _, whole), _ = _both(evidence)
    shares = {c: evidence.mean("protect", c, "wasted_share") for c in cells}
    known = {cell: one for cell, one in shares.items() if one is not None}
    if not whole or len(known) < len(cells):
        return False, "`protect` did not run in every cell."
    worst = max(known, key=known.__getitem__)
    over = sum(one > MOST_WASTED for one in known.values())
    return not over, (
        f"`protect` wastes at most {three(known[worst])} of the tokens in a cell"
        f" ({place_of(worst)}); over {MOST_WASTED:g} in {over} of {len(cells)} cells."
    )


def place_of(cell: Cell) -> str:
    """A cell in words."""
    mix = "" if cell.mix == "final" else f"{cell.mix}, "
    return f"{mix}{cell.engine}, {cell.client}, {cell.load:g}x"


def _all_hold(mode: str, asked: Sequence[Gain]) -> tuple[bool, str]:
    """Whether a mode gains over all of these, and over which it does not."""
    lost = [one for one in asked if not one.holds]
    loads = f"{asked[0].loads[0]:g}x" if asked else ""
    more = " and more" if asked and len(asked[0].loads) > 1 else ""
    said = (
        f"At {loads}{more} `{mode}` gains on {MODES[mode]} over"
        f" {len(asked) - len(lost)} of {len(asked)} arms"
    )
    if lost:
        told = "; ".join(f"`{one.other}` {difference(one.paired)}" for one in lost)
        said += f"; not shown over {told}"
    return not lost and bool(asked), f"{said}."


def harm(evidence: Evidence, mode: str) -> Gain:
    """A mode against no admission where nothing binds."""
    return gain(evidence, mode, "none", (HARM,))


def _no_harm(evidence: Evidence) -> Answer:
    return _answer("3 no harm", [_unharmed(harm(evidence, mode)) for mode in MODES])


def _unharmed(one: Gain) -> tuple[bool, str]:
    found = one.paired
    if found is None or found.interval_90 is None:
        return False, f"`{one.arm}` at {HARM:g}x: not run."
    ruled = "is ruled out" if found.not_worse else "is not ruled out"
    return one.whole and found.not_worse is True, (
        f"`{one.arm}` on {one.metric} at {HARM:g}x against `none`:"
        f" {difference(found)}; a loss of {MARGIN:g} {ruled} (one-sided 95 % bound"
        f" {found.interval_90.low:+.3f}, MDE {three(found.smallest_effect)})."
    )


def _nearest(claimed: Sequence[Gain]) -> Answer:
    asked = [
        one
        for one in claimed
        if one.loads == ABOVE and one.other == f"thunder:{one.metric}"
    ]
    return _answer("4 against the nearest", [_told(one) for one in asked])


def _told(one: Gain) -> tuple[bool, str]:
    return one.holds, (
        f"`{one.arm}` on {one.metric} over `{one.other}`:"
        f" {difference(one.paired)}, {'shown' if one.holds else 'not shown'}."
    )


def _controlled(claimed: Sequence[Gain]) -> Answer:
    asked = [one for one in claimed if one.loads == (LOAD,)]
    return _answer(
        "5 against the controls",
        [_all_hold(mode, [one for one in asked if one.arm == mode]) for mode in MODES],
    )


# --------------------------------------------------------------------- falsifiers


def falsifiers(evidence: Evidence) -> list[Answer]:
    """What would refute it, each for each mode; yes = it does."""
    claimed = gains(evidence)
    made: list[Answer] = []
    for mode in MODES:
        made += [
            _vanishes(evidence, mode),
            _size_rule(evidence, mode),
            _unit(mode, claimed),
            _inert(evidence, mode),
        ]
    return made


def cell_by_cell(evidence: Evidence, mode: str) -> dict[Cell, Paired | None]:
    """A mode against the better gate with one parameter set, in every main cell."""
    metric = MODES[mode]
    other = better_gate(evidence, metric)
    found = {}
    for cell in evidence.grid():
        _, one = pooled(evidence, mode, other, metric, [cell])
        found[cell] = one.statistics if one else None
    return found


def better_gate(evidence: Evidence, metric: str) -> str:
    """Of both tunings of `gate_one` the one with the higher mean at 1.2x and more."""
    names = [evidence.named("gate_one", one) for one in (metric, *METRICS)]
    cells = evidence.grid(ABOVE)
    return max(names, key=lambda name: evidence.over(name, cells, metric) or 0.0)


def _vanishes(evidence: Evidence, mode: str) -> Answer:
    found = [p for c, p in cell_by_cell(evidence, mode).items() if c.load in ABOVE]
    spans = [one.interval for one in found if one and one.interval]
    gained = sum(one.low > 0 for one in spans)
    lost = sum(one.high < 0 for one in spans)
    other = better_gate(evidence, MODES[mode])
    against = f"against `{other}`, the better of its two tunings here"
    shown = f"gains in {gained}, loses in {lost}, and the interval holds 0 in"
    return Answer(
        f"The gain of `{mode}` over `gate_one` is gone in most cells at 1.2x and more",
        2 * gained <= len(found),
        (f"Of {len(found)} it {shown} {len(spans) - gained - lost}; {against}.",),
    )


def _size_rule(evidence: Evidence, mode: str) -> Answer:
    metric = MODES[mode]
    names = [evidence.named(arm, metric) for arm in ELEPHANTS]
    said, as_well = [], dict.fromkeys(names, True)
    for cells, where, _ in _both(evidence):
        worst = {one.arm: one.worst for one in ranked(evidence, metric, cells)}
        for arm in names:
            as_well[arm] &= worst.get(arm, 0.0) <= worst.get(mode, 0.0) + MARGIN
        told = ", ".join(f"`{arm}` {three(worst.get(arm))}" for arm in (mode, *names))
        said.append(f"Worst-cell regret on {metric} over {where}: {told}.")
    return Answer(
        f"An elephant rule without a ledger does as well as `{mode}` in the worst cell"
        f" (at most {MARGIN:g} behind), also under the shift",
        any(as_well.values()),
        tuple(said),
    )


def _unit(mode: str, claimed: Sequence[Gain]) -> Answer:
    one = next(c for c in claimed if c.arm == mode and _thinned(c))
    return Answer(
        f"Thinning at equal volume does as well as `{mode}`: no gain over it is shown",
        not one.holds,
        (f"`{mode}` less `{one.other}` on {one.metric}: {difference(one.paired)}.",),
    )


def _thinned(one: Gain) -> bool:
    return one.other == f"thin_{one.arm}" and one.loads == (LOAD,)


def _inert(evidence: Evidence, mode: str) -> Answer:
    tops, said = [], []
    for engine in ENGINES:
        cells = [cell for cell in evidence.grid() if cell.engine == engine]
        every = held(evidence.of_arm(mode, cells))
        shares = {gate: share for gate, share in every.items() if gate in LEDGER}
        total = sum(shares.values())
        top = max(shares, key=shares.__getitem__, default="")
        tops.append((top, shares[top] / total) if total else ("", 1.0))
        name, of = tops[-1]
        told = f"{engine}: `{name}` has {of:.3f} of the holds of these three."
        said.append(told if name else "")
    alone = len({top for top, _ in tops}) == 1 and min(of for _, of in tops) >= ALONE
    never = tuple(f"{e}: no gate ever held." for e in _silent(tops))
    return Answer(
        f"The three ledger gates of `{mode}` never held, or one alone did"
        f" everything (at least {ALONE:g} of their holds) in all three engines",
        alone or all(not top for top, _ in tops),
        (*filter(None, said), *never),
    )


def _silent(tops: Sequence[tuple[str, float]]) -> Iterator[str]:
    for engine, (top, _) in zip(ENGINES, tops, strict=True):
        if not top:
            yield engine
