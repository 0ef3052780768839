"""One idea a file, named for the idea."""

import ast

VAGUE = {"utils", "util", "common", "helpers", "helper", "manager", "base", "types"}


def public_classes(module):
    """The names of the classes a module offers."""
    return [
        node.name
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_core_and_policies_hold_one_public_class_a_file(modules):
    """A reader finds a class by its file; only the error tree shares one."""
    crowded = {
        module.name: public_classes(module)
        for module in modules
        if module.name.startswith(("admitperf.core.", "admitperf.policies."))
        and module.name != "admitperf.core.errors"
        and len(public_classes(module)) > 1
    }
    assert crowded == {}


def test_no_module_has_a_name_that_says_nothing(modules):
    """No utils, common, helpers, manager, base or types."""
    vague = [m.name for m in modules if VAGUE & set(m.name.split("."))]
    assert vague == []


def test_every_module_says_what_it_is(modules):
    """Each source file opens with a docstring."""
    silent = [module.name for module in modules if not ast.get_docstring(module.tree)]
    assert silent == []


def test_every_test_states_its_promise(test_modules):
    """A test without a docstring checks something nobody wrote down."""
    tests = [
        (module, function)
        for module in test_modules
        for function in module.functions()
        if function.name.startswith("test_")
    ]
    silent = [
        f"{module.path.name}:{function.lineno} {function.name}"
        for module, function in tests
        if not ast.get_docstring(function)
        # The session fixture in this folder's conftest is no test.
        and module.path.name != "conftest.py"
    ]
    assert tests
    assert silent == []
