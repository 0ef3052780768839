"""The source as data: each module's syntax tree, and its functions."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: its dotted name, its path and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    def imports(self) -> Iterator[str]:
        """Every module named by an import statement, wherever it stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield "." * node.level + (node.module or "")

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method, nested ones too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def read(path: Path, top: Path) -> Module:
    """The module at `path`, named from the folder `top` that holds its package."""
    dotted = path.relative_to(top).with_suffix("").parts
    name = ".".join(part for part in dotted if part != "__init__")
    return Module(name, path, ast.parse(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def modules(root) -> list[Module]:
    """Every module of the package."""
    source = root / "src"
    found = [read(path, source) for path in sorted(source.rglob("*.py"))]
    assert found, "no source found: the guards would pass on nothing"
    return found


@pytest.fixture(scope="session")
def test_modules(root) -> list[Module]:
    """Every Python file under `tests/` but the data."""
    data = root / "tests" / "data"
    paths = [p for p in (root / "tests").rglob("*.py") if data not in p.parents]
    return [read(path, root) for path in sorted(paths)]
