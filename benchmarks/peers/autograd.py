"""HIPS autograd: NumPy, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..workload import Workload
from .library import Argnums, Function, Library
from .numpy import numpy_namespace


class Autograd(Library):
    package = "autograd"

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import autograd
        import autograd.numpy as anp
        import autograd.scipy.special as special

        self.autograd = autograd
        self.xp = numpy_namespace(anp, special)

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.autograd.value_and_grad(function, argnum=argnums)

    def grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.autograd.grad(function, argnum=argnums)

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        value_and_grad = self.autograd.value_and_grad(function, argnum=argnum)
        gradient_of = self.autograd.grad(function, argnum=argnum)

        def all_three(*arguments: Any) -> Any:
            *arguments, vector = arguments

            def along(*arguments: Any) -> Any:
                return self.xp.sum(gradient_of(*arguments) * vector)

            value, gradient = value_and_grad(*arguments)
            return value, gradient, self.autograd.grad(along, argnum=argnum)(*arguments)

        return all_three
