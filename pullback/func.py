"""Transformations of functions under the names of torch.func."""

from pullback.runtime.transforms import grad, hessian, jacobian, jvp, value_and_grad, vjp

jacrev = jacfwd = jacobian
grad_and_value = value_and_grad

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vjp",
]
