"""What the extras `reports` and `html` bring, imported when it is needed."""

from importlib import import_module
from typing import Any, Literal

from admitperf.core.errors import MissingExtra

HOW_TO_GET = {
    "reports": "pip install duckdb scipy",
    "html": "pip install jinja2 vl-convert-python",
}
"""What each extra brings, by name: `admitperf` on the index is another project."""


def needed(
    module: str,
    extra: Literal["reports", "html"] = "reports",
) -> Any:  # noqa: ANN401  a module of another package
    """A module of an extra.

    Args:
        module: its name, such as "duckdb".
        extra: which one brings it.

    Raises:
        MissingExtra: it is not installed; the text names the extra.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        get = HOW_TO_GET[extra]
        said = f"this needs {package}, of the extra admitperf[{extra}]: {get}"
        raise MissingExtra(said) from None
