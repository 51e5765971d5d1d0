"""What a compiled function shows of itself: generated source, graph, and an account of what was decided.

Nothing here runs the function's kernels; what is not traced yet is traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..tracer.errors import GradientError
from ..tracer.graph import Graph, Node
from .flatten import flatten, is_container, unflatten
from .modes import enable_grad
from .signature import conform, spec_of_leaf
from .tensor import Tensor, make
from .variant import TapePair, Variant

if TYPE_CHECKING:
    from ..codegen.pipeline import Pair
    from .paths import Paths


class Inspection:
    """The methods that a compiled function and a compiled method share."""

    def _variant_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
        return self._known_for(args, kwargs)[0]

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Variant, Paths | None]:
        """What a call would run, and where values decide, the paths that it is one of."""
        raise NotImplementedError

    def forward_source(self, *args: Any, **kwargs: Any) -> str:
        """The generated Python that computes the result for such arguments.

        Where a gradient is asked for, it also saves what the backward function needs.
        """
        return self._variant_for(args, kwargs).forward.source

    def backward_source(self, *args: Any, **kwargs: Any) -> str:
        """The generated Python of the gradient, for such arguments.

        With respect to the tensors that require grad; of all floating arrays if none does.

        Raises:
            GradientError: no result depends on a floating argument in a differentiable way.
        """
        variant = self._variant_for(args, kwargs)
        pair = self._pair_or_none(variant, args, kwargs)
        if pair is None:
            inputs = ", ".join(f"{node.name}: {node.spec}" for node in variant.traced.graph.inputs)
            raise GradientError(
                f"{variant.traced.name} has no gradient for ({inputs}): no floating result depends on a "
                "floating argument in a differentiable way. Pass floating arrays, e.g. with .astype(float)."
            )
        return pair.backward.source

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated Python for such arguments: forward, and backward where there is a gradient.

        Without arguments it is the code that the latest new kind of call has made. Where values decide, the
        path of these arguments is first, and the other known ones follow.
        """
        variant, paths = self._known_for(args, kwargs)
        pair = None if variant.is_gradient else self._pair_or_none(variant, args, kwargs)
        own = _source(variant, pair)
        if paths is None:
            return own
        found = [f"# The path of these arguments\n{_commented(variant)}\n{own}"]
        for path in paths.paths:
            other = path.variant
            if other is not variant:
                text = _source(other, other.pair if other.differentiable else None)
                found.append(f"# Another path\n{_commented(other)}\n{text}")
        return "\n\n".join(found)

    def _pair_or_none(self, variant: Variant, args: Any, kwargs: Any) -> Pair | TapePair | None:
        """Forward and backward, with respect to all floats if to none; None if no gradient exists."""
        if not variant.wrt:
            try:
                with enable_grad():
                    variant = self._variant_for(*_asking_for_gradients(args, kwargs))
            except GradientError:  # it writes into an argument that would require one
                return None
        return variant.pair if variant.differentiable else None

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The traced graph for such arguments; it prints as text, one operator a line."""
        return self._variant_for(args, kwargs).traced.graph

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """How the function runs for such arguments: inputs, loops, what is saved, what is a constant.

        Where values decide, it lists the known paths with their guards, and how often each has run.
        """
        variant, paths = self._known_for(args, kwargs)
        lines = [*_input_lines(variant), *_path_lines(variant, paths), variant.forward.explain()]
        pair = None if variant.is_gradient else self._pair_or_none(variant, args, kwargs)
        if pair is not None:
            lines += [*_saved_lines(variant, pair), pair.backward.explain()]
        return "\n".join(lines)


def _asking_for_gradients(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments, floating arrays as Tensors that require grad."""

    def asking(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray | np.generic | Tensor) and spec_of_leaf(leaf).is_float:
            return make(conform(leaf)).requires_grad_()
        return leaf

    def changed(value: Any) -> Any:
        if not is_container(value):
            return asking(value)
        leaves, structure = flatten(value)
        return unflatten(structure, [asking(leaf) for leaf in leaves])

    return tuple(map(changed, args)), {name: changed(value) for name, value in kwargs.items()}


def _input_lines(variant: Variant) -> list[str]:
    traced = variant.traced
    lines = [f"{traced.name}: {len(traced.graph.nodes)} nodes in the graph"]
    for name, node in zip(traced.argument_names, traced.graph.inputs):
        lines.append(f"  argument {name}: {node.spec}")
    lines += [f"  {note}" for note in traced.notes]
    for index in traced.sources:
        source = traced.reading.sources[index]
        kind = "Tensor" if isinstance(source.value, Tensor) else "array"
        lines.append(f"  captured {kind} {source.label}: {spec_of_leaf(source.value)}, read in every call")
    for array in traced.constants:
        lines.append(f"  constant of the trace: {_array_text(array)}, made while the function was traced")
    lines += [f"  random numbers, drawn in every call: input {number}" for number in range(len(traced.drawn))]
    return lines


def _path_lines(variant: Variant, paths: Paths | None) -> list[str]:
    """The known paths, each with its guards."""
    if paths is None:
        return []
    lines = [f"values decide: {len(paths.paths)} of at most {paths.function.max_paths} paths are known"]
    for path in paths.paths:
        this = ", that of these arguments" if path.variant is variant else ""
        calls = "1 call" if path.calls == 1 else f"{path.calls:,} calls"
        lines += [f"  path of {calls}{this}", *(f"    {line}" for line in path.variant.traced.guards.lines())]
    return lines


def _source(variant: Variant, pair: Pair | TapePair | None) -> str:
    if pair is None:
        return variant.forward.source
    return f"{pair.forward.source.rstrip()}\n\n\n{pair.backward.source}"


def _commented(variant: Variant) -> str:
    return "\n".join(f"#   {line}" for line in variant.traced.guards.lines())


def _saved_lines(variant: Variant, pair: Pair | TapePair) -> list[str]:
    """What the forward function hands to the backward one."""
    given = []
    if isinstance(pair, TapePair):
        return ["a Function or a hook has a backward of its own: it was traced, and nothing is saved for it"]
    reasons = dict(pair.partition.reasons)
    for kind, index in pair.backward_inputs:
        if kind == "input":
            node: Node = variant.traced.graph.inputs[index]
            given.append(f"  the input {node.name}: {node.spec}")
        else:
            position = index if kind == "output" else index + len(variant.traced.graph.outputs)
            node = pair.forward.graph.outputs[position]
            what = "the result" if kind == "output" else "saved"
            why = f": {reasons[node]}" if node in reasons else ""
            given.append(f"  {what} {node.name or node.operator.name}: {node.spec}{why}")
    again = [f"  {node.name}: {node.spec}" for node in pair.partition.recomputed]
    lines = ["the backward function reads", *(given or ["  nothing but the cotangents"])]
    return lines + (["and computes again, which costs less than memory traffic", *again] if again else [])


def _array_text(array: np.ndarray) -> str:
    text = f"{array.dtype}{list(array.shape)}"
    return f"{text} = {np.array2string(array, threshold=6)}" if array.size <= 6 else text
