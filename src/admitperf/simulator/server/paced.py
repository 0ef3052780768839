"""The engine with what only a server does to it: slow it, hold it, reset its counts."""

from collections.abc import Sequence
from dataclasses import replace

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.engine.tally import Histogram, Tally

_COSTS = (
    "step_ms",
    "ms_per_resident_token",
    "ms_per_prefill_token",
    "ms_per_sequence",
)


def slowed(model: EngineModel, factor: float) -> EngineModel:
    """A model whose steps take this many times as long.

    Raises:
        ValueError: no step can take that long, or that short.
    """
    costs = {name: getattr(model, name) * factor for name in _COSTS}
    return replace(model, **costs)


class PacedEngine(Engine):
    """An engine whose steps can be made slower and stopped while it runs.

    Args:
        model: what it can do.
        seed: of the noise on its steps.
        first_token_s: upper bounds of the buckets for first tokens; None = vLLM's.
    """

    def __init__(
        self,
        model: EngineModel,
        seed: int = 0,
        first_token_s: Sequence[float] | None = None,
    ) -> None:
        super().__init__(model, seed)
        self._unslowed = model
        self._bounds = first_token_s
        self._forgotten = 0
        self.tally = self._new_tally()

    @property
    def counted_tokens(self) -> int:
        """Tokens of all answers since the counts were last reset."""
        return self.given_tokens - self._forgotten

    def busy(self) -> str | None:
        """The limit of the engine's own that refuses a request now, and counts it.

        None = none does.
        """
        before = dict(self.tally.refused)
        if not self._refused():
            return None
        now = self.tally.refused
        return next(name for name in now if now[name] != before[name])

    def slow(self, factor: float) -> None:
        """From the next step on each takes this many times what the model says.

        Raises:
            ValueError: no step can take that long, or that short.
        """
        self.model = slowed(self._unslowed, factor)
        if self._leap:
            self._leap.cut(self.now_s)

    def hold(self, until_s: float) -> None:
        """Lets time pass in which nothing moves: the step under way takes longer.

        Args:
            until_s: in the engine's time.
        """
        if self._leap:
            stood_s = until_s - self.now_s
            self._leap.start_s += stood_s
            self._leap.end_s += stood_s
        for job in self._coming:
            job.due_s = max(job.due_s, until_s)
        self.now_s = until_s

    def forget_counts(self) -> None:
        """All counters and histograms begin at 0 again; requests go on."""
        self._forgotten = self.given_tokens
        self.tally = self._new_tally()

    def _new_tally(self) -> Tally:
        tally = Tally()
        if self._bounds is not None:
            tally.ttft_s = Histogram(self._bounds)
        return tally
