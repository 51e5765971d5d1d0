"""JAX: jit of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..workload import Workload
from .library import Argnums, Call, Function, Library, namespace_of


class Jax(Library):
    package = "jax"

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        import jax
        import jax.numpy as jnp
        import jax.scipy.special as special

        jax.config.update("jax_enable_x64", any(one.dtype == np.float64 for one in inputs))
        jax.config.update("jax_enable_compilation_cache", False)

        def cross_entropy(logits: Any, labels: Any) -> Any:
            chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
            return -jnp.mean(chosen)

        self.jax = jax
        self.xp = namespace_of(
            jnp,
            erf=special.erf,
            gammaln=special.gammaln,
            digamma=special.digamma,
            sigmoid=jax.nn.sigmoid,
            softplus=jax.nn.softplus,
            relu=jax.nn.relu,
            logsumexp=special.logsumexp,
            softmax=jax.nn.softmax,
            log_softmax=jax.nn.log_softmax,
            cross_entropy=cross_entropy,
        )

    def asarray(self, array: np.ndarray) -> Any:
        return self.jax.numpy.asarray(array)

    def compile(self, function: Function) -> Function:
        return self.jax.jit(function)

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.jax.jit(self.jax.value_and_grad(function, argnums=argnums))

    def grad(self, function: Function, argnums: Argnums = 0) -> Function:
        return self.jax.jit(self.jax.grad(function, argnums=argnums))

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        def all_three(*arguments: Any) -> Any:
            *others, vector = arguments

            def at(argument: Any) -> Any:
                moved = [*others[:argnum], argument, *others[argnum + 1 :]]
                return self.jax.value_and_grad(function, argnums=argnum)(*moved)

            (value, gradient), (_, product) = self.jax.jvp(at, (others[argnum],), (vector,))
            return value, gradient, product

        return self.jax.jit(all_three)

    def bind(self, function: Function, arguments: Sequence[Any]) -> Call:
        return lambda: self.jax.block_until_ready(function(*arguments))
