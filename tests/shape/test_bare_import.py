"""The package comes up on a bare Python."""

import json
import subprocess
import sys
import sysconfig

PROGRAM = """
import importlib, json, pkgutil, sys

class Wall:
    "Refuses every name that is neither ours nor the standard library's."

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top != "admitperf" and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"walled off: {name}", name=name)

sys.meta_path.insert(0, Wall())
for name in json.loads(sys.argv[1]):
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), name + "."):
        if name != "admitperf":
            importlib.import_module(found.name)
print("up")
"""


def run(root, *names):
    """Import `names` in a fresh interpreter where the wall stands."""
    # -S: nothing in site-packages may run before the wall is up. The folder itself
    # is on the path, so a third-party import fails at the wall, not for lack of it.
    paths = [str(root / "src"), sysconfig.get_paths()["purelib"]]
    prelude = f"import sys; sys.path[:0] = {paths!r}\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", prelude + PROGRAM, json.dumps(names)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_package_imports_with_every_third_party_name_blocked(root):
    """`import admitperf` needs nothing but the standard library."""
    ran = run(root, "admitperf")
    assert (ran.stdout, ran.stderr) == ("up\n", "")


def test_every_module_a_gateway_needs_imports_behind_the_wall(root):
    """Core, policies and engines need nothing but the standard library."""
    ran = run(root, "admitperf.core", "admitperf.policies", "admitperf.engines")
    assert (ran.stdout, ran.stderr) == ("up\n", "")


def test_the_wall_stands(root):
    """A third-party name that is installed does not pass: the guard can fail."""
    ran = run(root, "click")
    assert "walled off: click" in ran.stderr
