"""A YAML text as plain values: variables put in, no key twice.

Variables are put into single values after the text has been parsed, so what an
environment holds cannot change the structure of a file.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from admitperf.core.errors import ConfigError
from admitperf.gateway.extra import needed

_LARGEST_BYTES = 1 << 20
"""Plain choice: some ten thousand tenants."""
_VARIABLE = re.compile(r"\$(?:(\$)(?=\{)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})")
_BEGUN = re.compile(r"(?<!\$)\$\{")
_UNSET = "the environment variable {} is not set"


def read(path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """A file's document.

    Raises:
        ConfigError: it cannot be read, or as `document`.
        MissingExtra: there is no YAML reader.
    """
    try:
        with path.open("rb") as file:
            held = file.read(_LARGEST_BYTES + 1)
        text = held.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ConfigError(str(path), [f"cannot be read: {why}".lower()]) from None
    if len(held) > _LARGEST_BYTES:
        raise ConfigError(str(path), [f"is larger than {_LARGEST_BYTES} bytes"])
    return document(text, str(path), environment)


def document(text: str, where: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The mapping that a text holds.

    `${NAME}` becomes what the environment has under that name, `${NAME:-other}` the
    other where it has nothing; `$${` stands for itself. A value without quotes is then
    read as if it had stood in the file: `8` is a number.

    Args:
        text: YAML.
        where: what errors call it.
        environment: variables.

    Raises:
        ConfigError: it is no YAML or no mapping, a key is given twice, a variable is
            not set. All keys and variables at once.
        MissingExtra: there is no YAML reader.
    """
    needed("yaml")
    yaml: Any = import_module("yaml")
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        nodes = _Nodes(loader, environment)
        if root is not None:
            nodes.walk(root, "")
        told = None if nodes.faults or root is None else loader.construct_document(root)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise ConfigError(where, [f"is no YAML: {_problem(error)}"]) from None
    if nodes.faults:
        raise ConfigError(where, nodes.faults)
    if not isinstance(told, dict):
        raise ConfigError(where, ["holds no mapping of keys to values"])
    return told


def _problem(error: Exception) -> str:
    """What is wrong and on which line. The line itself may hold a key."""
    problem = getattr(error, "problem", None) or "it cannot be read"
    mark = getattr(error, "problem_mark", None)
    return f"{problem}, line {mark.line + 1}" if mark is not None else problem


class _Nodes:
    """Walks what was parsed before it becomes values.

    Args:
        loader: knows how a value without quotes is read.
        environment: variables.

    Attributes:
        faults: what is wrong, each with its path.
    """

    def __init__(self, loader: Any, environment: Mapping[str, str]) -> None:  # noqa: ANN401
        self._loader = loader
        self._environment = environment
        self._seen: set[int] = set()  # what an alias names is walked once
        self.faults: list[str] = []

    def walk(self, node: Any, path: str) -> None:  # noqa: ANN401
        """Looks at a node and at all below it."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if node.id == "mapping":
            self._mapping(node, path)
        elif node.id == "sequence":
            for place, one in enumerate(node.value):
                self.walk(one, f"{path}[{place}]")
        elif "$" in node.value:
            self._scalar(node, path)

    def _mapping(self, node: Any, path: str) -> None:  # noqa: ANN401
        known: set[str] = set()
        for key, value in node.value:
            name = key.value if key.id == "scalar" else "?"
            at = f"{path}.{name}" if path else name
            if name in known:
                line = key.start_mark.line + 1
                self.faults.append(f"{at} is given twice, again on line {line}")
            known.add(name)
            self.walk(value, at)

    def _scalar(self, node: Any, path: str) -> None:  # noqa: ANN401
        def put(match: re.Match[str]) -> str:
            if match[1]:
                return "$"
            found = self._environment.get(match[2])
            if not found and match[3] is not None:
                return match[3]
            if found is None:
                self.faults.append(f"{path}: {_UNSET.format(match[2])}")
            return found or ""

        if _BEGUN.search(_VARIABLE.sub("", node.value)):
            self.faults.append(f"{path}: ${{ is followed by no NAME}}; $${{ is itself")
            return
        node.value = _VARIABLE.sub(put, node.value)
        if not node.style:
            kind = type(node)
            node.tag = self._loader.resolve(kind, node.value, (True, False))
