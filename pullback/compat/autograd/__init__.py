"""pullback under the names of HIPS autograd, with its conventions: see docs/autograd.md.

`import pullback.compat.autograd.numpy as np`, `from pullback.compat.autograd import grad`; or, for programs
that can't be changed, `install()` and `python -m pullback.compat.autograd script.py`.
"""

from .builtins import dict, isinstance, list, tuple, type
from .differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)  # fmt: skip
from .insides import missing_of as _missing_of
from .installation import InstallationError, install, installed, uninstall
from .rules import primitive

__all__ = [
    "InstallationError", "checkpoint", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux",
    "grad_named", "hessian", "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad",
    "install", "installed", "isinstance", "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp",
    "make_vjp", "multigrad_dict", "primitive", "tensor_jacobian_product", "tuple", "type", "uninstall",
    "value_and_grad", "vector_jacobian_product",
]  # fmt: skip

__getattr__ = _missing_of(__name__)
