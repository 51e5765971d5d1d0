"""pullback, on plain NumPy code: what NumPy has is written with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..workload import Workload
from .library import Argnums, Function, Library, namespace_of


class Pullback(Library):
    package = "pullback"

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import pullback as pb

        self.pb = pb
        self.xp = namespace_of(
            np,
            erf=pb.erf,
            gammaln=pb.lgamma,
            digamma=pb.digamma,
            sigmoid=pb.sigmoid,
            softplus=pb.softplus,
            relu=pb.relu,
            logsumexp=pb.logsumexp,
            softmax=pb.softmax,
            log_softmax=pb.log_softmax,
            cross_entropy=pb.cross_entropy,
        )

    def compile(self, function: Function) -> Function:
        return self.pb.compile(function)

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.pb.value_and_grad(self.pb.compile(function), argnums=argnums)

    def grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.pb.grad(self.pb.compile(function), argnums=argnums)

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        pb = self.pb
        value_and_grad = pb.value_and_grad(function, argnums=argnum)

        def all_three(*arguments: Any) -> Any:
            *arguments, vector = arguments

            def along(*arguments: Any) -> Any:
                value, gradient = value_and_grad(*arguments)
                return (gradient * vector).sum(), (value, gradient)

            product, (value, gradient) = pb.grad(along, argnums=argnum, has_aux=True)(*arguments)
            return value, gradient, product

        return self.compile(all_three)

    def release(self) -> None:
        from pullback.codegen.machine import memory

        memory.release()
