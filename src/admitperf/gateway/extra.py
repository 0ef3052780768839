"""What the extra `gateway` brings, asked for before it is needed."""

from importlib import import_module

from admitperf.core.errors import MissingExtra

MODULES = {
    "granian": "granian",
    "aiohttp": "aiohttp",
    "msgspec": "msgspec",
    "pydantic": "pydantic",
    "yaml": "pyyaml",
    "prometheus_client": "prometheus-client",
    "uvloop": "uvloop",
}
"""What each part of the gateway needs, by module, and what it is called on the index:
`admitperf` there is another project."""


def needed(*modules: str) -> None:
    """Sees that modules of the extra are there; without any, all of them.

    Raises:
        MissingExtra: some are not installed; the text says how to get them.
    """
    absent = [name for name in modules or MODULES if not _importable(name)]
    if absent:
        names = ", ".join(absent)
        get = " ".join(MODULES[name] for name in absent)
        said = f"this needs {names}, of the extra admitperf[gateway]: pip install {get}"
        raise MissingExtra(said)


def _importable(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True
