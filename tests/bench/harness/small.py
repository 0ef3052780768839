"""A benchmark that takes seconds: chat before an engine with four places."""

from dataclasses import dataclass, field

from admitperf.bench.harness.config import parsed

SMALL = {
    "experiment": "small",
    "target": {"profile": "a100-40-qwen2.5-7b", "engine": {"max_num_seqs": 4}},
    "workload": {"name": "chat"},
    "arms": [{"policy": "queue_depth", "parameters": {"max_waiting": "fitted"}}],
    "loads": [0.8, 1.5],
    "blocks": 6,
    "calls": 30,
    "jobs": 1,
}


def small(root, **changed):
    """The same with some keys changed, below a folder."""
    return parsed({**SMALL, "root": str(root), **changed}, "test")


@dataclass
class Heard:
    """Notes what it is told, and may interrupt."""

    interrupt_at: int | None = None
    stages: list = field(default_factory=list)
    runs: list = field(default_factory=list)

    def stage(self, what):
        """Something begins."""
        self.stages.append(what)

    def ran(self, done, n, of, left_s):
        """A run is over."""
        self.runs.append((done, n, of, left_s))
        if n == self.interrupt_at:
            raise KeyboardInterrupt
