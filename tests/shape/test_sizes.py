"""Functions stay short, the longest ones above all."""

import ast
from statistics import median

MEDIAN_LINES = 10
MOST_STATEMENTS = 30


def lines(function):
    """The lines of a function without its decorators and its docstring."""
    total = function.end_lineno - function.lineno + 1
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    return total - (first.end_lineno - first.lineno + 1 if documented else 0)


def statements(function):
    """The statements of a function, those of its inner functions too."""
    inner = (node for node in ast.walk(function) if isinstance(node, ast.stmt))
    return sum(1 for _ in inner) - 1


def test_the_median_function_is_under_ten_lines(modules):
    """Most functions are read at a glance."""
    sizes = [lines(function) for module in modules for function in module.functions()]
    assert sizes
    assert median(sizes) < MEDIAN_LINES


def test_no_function_has_more_than_thirty_statements(modules):
    """What separates a readable code base from the rest is its longest functions."""
    long = [
        f"{module.name}.{function.name}: {statements(function)}"
        for module in modules
        for function in module.functions()
        if statements(function) > MOST_STATEMENTS
    ]
    assert long == []
