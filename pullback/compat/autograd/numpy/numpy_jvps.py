"""HIPS autograd's rules for NumPy's functions, forward: pullback has its own. What helps to write others."""

from typing import Any

import pullback.compat.autograd.numpy as np
from pullback.compat.autograd.insides import missing_of


def broadcast(x: Any, target: Any) -> Any:
    """The tangent x repeated to the shape of `target`, and complex where that is.

    Example:
        >>> broadcast(2.0, np.ones(3))
        array([2., 2., 2.])
    """
    shape, _, _, is_complex = np.metadata(target)
    repeated = np.broadcast_to(x, shape)
    return repeated + 0j if is_complex and not np.iscomplexobj(x) else repeated


__getattr__ = missing_of(__name__)
