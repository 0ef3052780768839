"""How long steps take: many at a time, by their sum."""

from bisect import bisect_right
from math import exp, inf, sqrt

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.streams import stream


class Noise:
    """The factor on the time of steps: one for a group of steps, the same every run.

    Args:
        model: says how wide it is and how many steps share it.
        seed: of the run.
    """

    def __init__(self, model: EngineModel, seed: int) -> None:
        self._sigma = model.noise
        self._steps = model.noise_steps
        self._chance = stream(seed, "noise")
        self._drawn: list[float] = []

    def at(self, step: int) -> float:
        """The factor of a step, counted from the engine's start."""
        if not self._sigma:
            return 1.0
        group = step // self._steps
        while len(self._drawn) <= group:
            drawn = self._chance.gauss(-(self._sigma**2) / 2, self._sigma)
            self._drawn.append(exp(drawn))
        return self._drawn[group]

    def lasts(self, step: int) -> float:
        """Steps from this one on that share its factor."""
        return self._steps - step % self._steps if self._sigma else inf


class Leap:
    """Steps one after the other, each longer than the one before by the same time.

    Args:
        start_s: when the first begins.
        steps: how many there are.
        first_s: how long the first takes.
        growth_s: how much longer each next one takes.

    Attributes:
        steps: how many there are.
        end_s: when the last is over.
    """

    __slots__ = ("_first_s", "_growth_s", "end_s", "start_s", "steps")

    def __init__(
        self, start_s: float, steps: int, first_s: float, growth_s: float
    ) -> None:
        self.start_s = start_s
        self._first_s = first_s
        self._growth_s = growth_s
        self.steps = steps
        self.end_s = self.after_s(steps)

    def after_s(self, steps: int) -> float:
        """When so many of them are over."""
        longer = steps * (steps - 1) // 2
        return self.start_s + steps * self._first_s + longer * self._growth_s

    @property
    def longest_s(self) -> float:
        """How long the last takes."""
        return self._first_s + (self.steps - 1) * self._growth_s

    def done(self, now_s: float) -> int:
        """How many are over by then."""
        if now_s >= self.end_s:
            return self.steps
        done = self._about(now_s - self.start_s)
        while self.after_s(done + 1) <= now_s:
            done += 1
        while done and self.after_s(done) > now_s:
            done -= 1
        return done

    def cut(self, now_s: float) -> None:
        """Has it end with the step that is under way, or is over just then."""
        done = self.done(now_s)
        over = done and self.after_s(done) == now_s
        self.steps = max(1, done if over else done + 1)
        self.end_s = self.after_s(self.steps)

    def _about(self, passed_s: float) -> int:
        """The root of the sum, give or take one."""
        half = self._growth_s / 2
        if half <= 0:
            return int(passed_s / self._first_s)
        linear = self._first_s - half
        return int((sqrt(linear * linear + 4 * half * passed_s) - linear) / (2 * half))


class Slowest:
    """The longest step since any step, for as long as somebody may ask.

    It keeps those that no later one outlasts.
    """

    def __init__(self) -> None:
        self._last: list[int] = []
        self._took_s: list[float] = []

    def add(self, last: int, took_s: float) -> None:
        """Steps up to this one took so long at most."""
        while self._took_s and self._took_s[-1] <= took_s:
            self._took_s.pop()
            self._last.pop()
        self._last.append(last)
        self._took_s.append(took_s)

    def since(self, step: int) -> float:
        """The longest of the steps after this one, in seconds; there is one."""
        return self._took_s[bisect_right(self._last, step)]

    def clear(self) -> None:
        """Nobody asks about what was."""
        self._last.clear()
        self._took_s.clear()
