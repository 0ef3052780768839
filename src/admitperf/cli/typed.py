"""The parent of our types of options, with every release of click that we take."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import ParamType as Typed
else:

    class Typed(click.ParamType):
        """`click.ParamType`, which can be subscripted from click 8.2 on only."""

        def __class_getitem__(cls, _kind: object) -> type:
            return cls


__all__ = ["Typed"]
