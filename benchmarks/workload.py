"""What a workload is: inputs, and a program in terms of a library.

`loss(xp, *inputs)` is the same text for every library. `xp` is an array namespace with NumPy's names and
arguments (`benchmarks.peers` says what it is in each library). A workload that is not "value and gradient of
a loss" has a `program` instead: a function of a `Library`, which gives the function that is timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .peers import Library

Inputs = tuple[np.ndarray, ...]
Loss = Callable[..., Any]
"""`loss(xp, *inputs)`: a scalar."""
Program = Callable[["Library"], Callable[..., Any]]
"""`program(library)(*inputs)`: arrays of the library, in tuples and lists."""

SEED = 20240229


class NotOffered(Exception):
    """A library has no way to do what a workload asks; it is left out without being at fault."""


@dataclass(frozen=True)
class Workload:
    """What is timed: by default the value of `loss` and its gradient with respect to the inputs at `argnums`.

        Workload("chain-1000", make=make, loss=chain, argnums=(0, 1, 2))

    `make` draws the inputs; each library gets them as its own arrays before anything is timed.
    """

    name: str
    make: Callable[[np.random.Generator], Inputs]
    loss: Loss | None = None
    argnums: tuple[int, ...] = ()
    program: Program | None = None
    """What is timed in place of value and gradient; `loss` and `argnums` may then be missing."""
    variants: Mapping[str, Loss | Program | None] = field(default_factory=dict)
    """By a peer's name: a formulation that suits it better. It stands for `program` where the workload has
    one, otherwise for `loss`. None leaves the peer out."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """By a peer's name: the module that its formulation imports, as a program does before any call."""
    flops: float = 0.0
    """Where arithmetic (matrix products, as a rule), not memory, bounds the work: how much there is."""
    bytes: float | None = None
    """What must move between memory and processor, if not each input and each gradient once."""
    blas_bound: bool = False
    """Most of the time is spent in matrix products, which all libraries leave to a BLAS."""
    small_calls: bool = False
    """So little work in one call (of the compiled function) that the cost of calling counts."""
    tolerance: float | None = None
    """The difference allowed between libraries, relative to an array's largest element; else by dtype."""
    tolerance_reason: str = ""
    """Why it is another one than the default."""
    seconds_limit: float = 60.0
    """How long all turns of one library may take together."""
    make_small: Callable[[np.random.Generator], Inputs] | None = None
    """Inputs for the tests, which a slow computer can do in a second."""

    def __post_init__(self) -> None:
        if self.loss is None and self.program is None:
            raise ValueError(f"{self.name} has neither a loss nor a program.")
        if self.program is None and not self.argnums:
            raise ValueError(f"{self.name} says of no input that its gradient is wanted.")
        if (self.tolerance is None) != (self.tolerance_reason == ""):
            raise ValueError(f"{self.name}: a tolerance needs a reason, and a reason a tolerance.")

    def inputs(self) -> Inputs:
        """The same arrays in every process."""
        return self.make(np.random.default_rng(SEED))

    def small_inputs(self) -> Inputs | None:
        return None if self.make_small is None else self.make_small(np.random.default_rng(SEED))

    def program_for(self, peer: str) -> Program:
        """What the peer of that name runs.

        Raises NotOffered where the workload leaves it out.
        """
        variant = self.variants.get(peer, self.program or self.loss)
        if variant is None:
            raise NotOffered(f"{self.name} leaves {peer} out.")
        return variant if self.program else value_and_gradient(variant, self.argnums)

    def import_module(self, peer: str) -> None:
        """So that no first call counts the loading of a library that the program itself asks for."""
        if peer in self.modules:
            importlib.import_module(self.modules[peer])

    def bytes_moved(self, inputs: Inputs) -> float:
        """`bytes`, or each input once and each gradient once."""
        if self.bytes is not None:
            return self.bytes
        gradients = [inputs[position] for position in self.argnums]
        return sum(array.nbytes for array in (*inputs, *gradients))

    def dtype(self, inputs: Inputs) -> str:
        """The coarsest of the inputs' floating-point types: results are as exact as that."""
        found = {str(array.dtype) for array in inputs if array.dtype.kind == "f"}
        return min(found, default="float64")


def value_and_gradient(loss: Loss, argnums: int | tuple[int, ...]) -> Program:
    """The default program: `(value, gradients)` of `loss`."""

    def program(library: Library) -> Callable[..., Any]:
        return library.value_and_grad(partial(loss, library.xp), argnums)

    return program
