"""Imports point inward."""

import subprocess
import sys
from pathlib import Path


def test_the_import_contract_holds(root):
    """No ring imports outward, no sibling another, and no package is unplaced."""
    lint = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [lint, "--no-cache"], cwd=root, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_core_imports_only_the_standard_library_and_itself(modules):
    """Core needs nothing installed; the version constant is the one thing beside it."""
    core = [module for module in modules if module.name.startswith("admitperf.core")]
    outside = [
        f"{module.name} imports {name}"
        for module in core
        for name in module.imports()
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not f"{name}.".startswith("admitperf.core.")
        and name != "admitperf._version"
    ]
    assert core
    assert outside == []


def test_the_version_constant_imports_nothing(modules):
    """What core may read beside itself brings nothing else along."""
    (version,) = [m for m in modules if m.name == "admitperf._version"]
    assert list(version.imports()) == []
