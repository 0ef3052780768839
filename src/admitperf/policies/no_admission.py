"""The baseline: everything starts at once."""

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.policy import Policy
from admitperf.core.snapshot import Snapshot


class NoAdmission(Policy):
    """Admits everything: what a server does without a front door.

    It reads nothing, and its log still holds every signal, so that a report can say
    which other rule would have had something to do.

    Raises:
        ConfigError: it was given a parameter. A class that declares none takes any,
            and a baseline with a threshold in its run header would mislead.
    """

    name = "no_admission"
    baseline = True

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        if self.given:
            faults = [f"{name} is no parameter (it has none)" for name in self.given]
            raise ConfigError(f"policy {self.name}", sorted(faults))

    def decide(self, metrics: Snapshot) -> Decision:  # noqa: ARG002  the rule is: always
        """Admit."""
        return self.admit()
