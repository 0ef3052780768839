"""What the extra `sim` brings, asked for before it is needed."""

from importlib import import_module

from admitperf.core.errors import MissingExtra

HOW_TO_GET = "pip install aiohttp"
"""What the extra brings, by name: `admitperf` on the index is another project."""


def needed(module: str) -> None:
    """Sees that a module of the extra is there.

    Raises:
        MissingExtra: it is not installed; the text names the extra.
    """
    try:
        import_module(module)
    except ImportError:
        said = f"this needs {module}, of the extra admitperf[sim]: {HOW_TO_GET}"
        raise MissingExtra(said) from None
