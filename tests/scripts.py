"""Scripts of `benchmarks/` as modules: they are no package, and import each other."""

import importlib.util
import sys


def script(root, name):
    """A script as a module, found with the others that it imports.

    Args:
        root: of the project.
        name: the file's, without its ending.
    """
    folder = root / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(
            f"{name}_script", folder / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
