"""Transformations of functions under the names of torch.func."""

from pullback.runtime.transforms.batching import vmap
from pullback.runtime.transforms.func import grad_and_value, hessian, jacfwd, jacrev, linearize
from pullback.runtime.transforms.transforms import grad, jacobian, jvp, value_and_grad, vjp

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]
