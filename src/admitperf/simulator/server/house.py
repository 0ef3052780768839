"""One engine's life behind the server, and the lives after a restart."""

from admitperf.core.clock import Clock
from admitperf.simulator.server import sglang_page, vllm_page
from admitperf.simulator.server.exposition import stamp
from admitperf.simulator.server.intake import Intake
from admitperf.simulator.server.paced import PacedEngine
from admitperf.simulator.server.served import Served
from admitperf.simulator.server.setup import Setup
from admitperf.simulator.server.wall import Wall
from admitperf.simulator.server.words import Tape
from admitperf.simulator.streams import stream


class House:
    """The engine and all that lives and dies with it.

    Args:
        setup: what it is made of.
        clock: to drive the engine by.

    Attributes:
        setup: as given.
        wall: the engine in wall-clock time.
        tape: the words of answers.
        intake: what is known of prompts.
        served: what was counted.
    """

    def __init__(self, setup: Setup, clock: Clock) -> None:
        self.setup = setup
        self._clock = clock
        self._ids = stream(setup.seed, "ids")
        self.tape = Tape(setup.seed, setup.mean_tokens)
        self.wall = Wall(self._engine, clock)
        self._begin()

    def _engine(self) -> PacedEngine:
        sglang = self.setup.dialect == "sglang"
        bounds = sglang_page.FIRST_TOKEN_S if sglang else None
        return PacedEngine(self.setup.engine, self.setup.seed, bounds)

    def _begin(self) -> None:
        self.intake = Intake(self.setup.engine, self.tape)
        self.served = Served(self.setup.engine.longest_tokens)

    @property
    def second(self) -> int:
        """Whole seconds since the Unix epoch."""
        return self._clock.wall_ns() // 10**9

    def new_id(self) -> str:
        """16 hexadecimal digits, never the same twice."""
        return f"{self._ids.getrandbits(64):016x}"

    def restart(self) -> None:
        """The engine dies with all that is in it, and a new one begins."""
        self._begin()
        self.wall.restart()

    def forget_counts(self) -> None:
        """All counters begin at 0 again."""
        self.served = Served(self.setup.engine.longest_tokens)
        self.wall.forget_counts()

    def page(self, *, blank: bool) -> str:
        """The page of metrics, as of now, with the line that says it is simulated.

        Args:
            blank: gauges read NaN.
        """
        return self._page(blank=blank) + stamp(self.setup.profile)

    def _page(self, *, blank: bool) -> str:
        self.wall.catch_up()
        engine, name = self.wall.engine, self.setup.model
        if self.setup.dialect == "sglang":
            return sglang_page.sglang_page(engine, self.served, name, blank=blank)
        times_s = (self.wall.born_wall_s, self.wall.counted_wall_s)
        return vllm_page.vllm_page(engine, self.served, name, times_s, blank=blank)
