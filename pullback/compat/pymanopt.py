"""Optimisation on manifolds: pullback as a backend of pymanopt, `pip install 'pullback[pymanopt]'`.

Example:
    >>> @pullback.compat.pymanopt.pullback(pymanopt.manifolds.Sphere(3))
    ... def cost(point):
    ...     return -point @ A @ point
    >>> problem = pymanopt.Problem(manifold, cost)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pymanopt.autodiff import backend_decorator_factory
from pymanopt.autodiff.backends._backend import Backend

from pullback.runtime.dispatch.compiled import compile
from pullback.runtime.transforms.transforms import grad, jvp

Function = Callable[..., Any]


class PullbackBackend(Backend):
    """Costs, Euclidean gradients and products with Hessians as compiled functions of NumPy arrays."""

    def __init__(self) -> None:
        super().__init__("pullback")

    @staticmethod
    def is_available() -> bool:
        """It is: this module has been imported."""
        return True

    def prepare_function(self, function: Function) -> Function:
        """The function, compiled."""
        return compile(function)

    def generate_gradient_operator(self, function: Function, num_arguments: int) -> Function:
        """The function of a point that gives its gradient, of several arguments a list."""
        gradient = grad(compile(function), tuple(range(num_arguments)))
        if num_arguments == 1:
            return lambda point: gradient(point)[0]
        return lambda *point: list(gradient(*point))

    def generate_hessian_operator(self, function: Function, num_arguments: int) -> Function:
        """The function of a point and a tangent that gives the product of the Hessian with the tangent."""
        gradient = grad(function, tuple(range(num_arguments)))

        @compile
        def hessian_vector_product(*given: Any) -> Any:
            return jvp(gradient, given[:num_arguments], given[num_arguments:])[1]

        if num_arguments == 1:
            return lambda point, vector: hessian_vector_product(point, vector)[0]
        return lambda *given: list(hessian_vector_product(*given))


pullback = backend_decorator_factory(PullbackBackend)
"""The decorator of costs: `@pullback(manifold)`."""
