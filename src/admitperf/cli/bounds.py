"""The option that sets an SLO."""

import click

from admitperf.cli.typed import Typed
from admitperf.reports.runs.slo import Slo


class _Bounds(Typed[Slo]):
    """`ttft_ms=1500,stall_ms=500`."""

    name = "BOUNDS"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Slo:
        """Parses the option; a fault is a usage error."""
        try:
            return Slo.parsed(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


BOUNDS = _Bounds()
"""The type of `--slo`."""
