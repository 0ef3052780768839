"""Several rules that must all agree; the longest wait is told."""

from functools import partial

from admitperf.core.decision import Decision
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.compose.composition import Composition


class AllOf(Composition):
    """Admits what all parts admit; of those that refuse the longest wait answers.

    It asks every part, so that the gates of all are on the record. Who would be back
    before the slowest gate has room would be refused again.
    """

    name = "all_of"

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask all; the refusal that lasts longest, the first of equals."""
        no = self.refusals(metrics)
        if len(no) > 1:
            return max(no, key=partial(self.wait_ms, metrics))
        return no[0] if no else self.admit()
