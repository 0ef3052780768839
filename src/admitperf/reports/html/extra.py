"""What the extra `html` brings, imported when it is needed."""

from importlib import import_module
from typing import Any

from admitperf.core.errors import MissingExtra

HOW_TO_GET = "pip install jinja2 vl-convert-python"
"""What the extra brings, by name: `admitperf` on the index is another project."""


def needed(module: str) -> Any:  # noqa: ANN401  a module of another package
    """A module of the extra.

    Args:
        module: its name, such as "jinja2".

    Raises:
        MissingExtra: it is not installed; the text names the extra.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        said = f"this needs {package}, of the extra admitperf[html]: {HOW_TO_GET}"
        raise MissingExtra(said) from None
