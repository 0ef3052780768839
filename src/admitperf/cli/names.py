"""Names as people type them: of hosts, and of whatever has one."""

import click

from admitperf.cli.typed import Typed


class _Name(Typed[str]):
    """A text of one line that can be shown, with something in it."""

    name = "TEXT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Reads the option; a fault is a usage error."""
        text = str(value)
        if not text.strip():
            self.fail("it is empty", param, ctx)
        if not text.isprintable():  # a lone surrogate, of a wrong byte, is not either
            self.fail(f"{text!a} has characters that cannot be shown", param, ctx)
        return text


class _Host(_Name):
    """A host by its name or address; which of them there are is found out later."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Reads the option; a fault is a usage error."""
        text = super().convert(value, param, ctx)
        try:
            text.encode("idna")
        except UnicodeError:
            self.fail(f"{text!a} is no name of a host", param, ctx)
        return text


NAME = _Name()
HOST = _Host()
