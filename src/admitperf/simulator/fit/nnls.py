"""Non-negative least squares, from scipy, which carries no types."""

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def nnls(rows: Floats, target: Floats) -> Floats:
    """The non-negative solution of rows @ x = target with the least squared error."""
    solver = import_module("scipy.optimize").nnls
    # The same solution from a few rows: thousands say no more than their triangle.
    triangle, side = np.linalg.qr(np.column_stack([rows, target])), rows.shape[1]
    upper = triangle.R
    scale = np.maximum(np.linalg.norm(upper[:, :side], axis=0), 1e-300)
    found, _ = solver(upper[:, :side] / scale, upper[:, side])
    return np.asarray(found / scale, dtype=np.float64)
