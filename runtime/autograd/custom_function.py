"""Operations with a backward of their own: `pullback.autograd.Function`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError, MissingRuleError, MutationError, ShapeError
from ...tracer.graph import Node
from ...tracer.ops.reduction import sum_to_shape
from ...tracer.spec import CONTINUOUS
from ..captures.classes import copied_from
from ..tape.apply import with_own_memory
from ..tape.inplace import rebase, require_assignable
from ..tensors.creation import zeros
from ..values.modes import is_recording, no_grad
from ..values.nodes import FREED, Edge, GradNode, Saved, edge_of, tensor_at
from ..values.tensor import Tensor, make, mark_written
from .ruled_calls import call_ruled
from .rules import RuledCall
from .traced_rules import OnTapeOnly


class Context:
    """What `forward` tells `backward`: tensors by `save_for_backward`, anything else as attributes."""

    def __init__(self) -> None:
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: tuple[Saved | None, ...] | None = None
        self._dirty: tuple[Tensor, ...] = ()
        self._not_differentiable: tuple[Tensor, ...] = ()
        self._materialise = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs of `forward` for `backward`, which finds them in `saved_tensors`."""
        for one in tensors:
            if one is not None and not isinstance(one, Tensor):
                raise ArgumentError(
                    f"save_for_backward can only save variables, but got {type(one).__name__}"
                )
        self._to_save = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` kept; GradientError if it has been overwritten or freed."""
        if self._saved is None:
            raise GradientError(FREED)
        return tuple(None if one is None else one.as_tensor() for one in self._saved)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has changed in place; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for an output that nothing depends on."""
        self._materialise = value


class FunctionNode(GradNode):
    """The tape node of a `Function`; its class is named after the function's, and it is the `ctx`."""

    __slots__ = ("context", "function", "input_specs", "output_specs", "outputs", "tensor_inputs")
    function: type[Function]
    context: Context

    def __init__(
        self, function: type[Function], context: Context, edges: Sequence[Edge | None], outputs: int
    ) -> None:
        super().__init__(edges)
        self.function = function
        self.context = context
        self.outputs = outputs
        self.output_specs: list[tuple[tuple[int, ...], np.dtype] | None] = [None] * outputs
        self.input_specs: list[tuple[tuple[int, ...], np.dtype] | None] = []
        self.tensor_inputs: list[bool] = []

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    @property
    def next_functions(self) -> tuple[tuple[GradNode | None, int], ...]:
        """The nodes that gradients go to next, of the inputs that are tensors."""
        return tuple(one for one, is_tensor in zip(super().next_functions, self.tensor_inputs) if is_tensor)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        received = [self._received(number, cotangent) for number, cotangent in enumerate(cotangents)]
        returned = self.function.backward(self.context, *received)
        given = returned if isinstance(returned, tuple | list) else (returned,)
        if len(given) > len(self.edges) and all(one is None for one in given[len(self.edges) :]):
            given = given[: len(self.edges)]
        if len(given) != len(self.edges):
            raise GradientError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {len(self.edges)}, got {len(given)})"
            )
        return [self._checked(position, one, create_graph) for position, one in enumerate(given)]

    def _received(self, number: int, cotangent: Any) -> Tensor | None:
        if cotangent is not None:
            return cotangent if isinstance(cotangent, Tensor) else make(_payload(cotangent))
        spec = self.output_specs[number]
        if not self.context._materialise or spec is None:
            return None
        return zeros(spec[0], dtype=spec[1])

    def _checked(self, position: int, gradient: Any, create_graph: bool) -> Any:
        """One result of `backward`, of the shape and dtype of the input."""
        spec = self.input_specs[position]
        if gradient is None or spec is None:
            return None
        if not isinstance(gradient, Tensor):
            raise ArgumentError(
                f"function {self.name()}: expected a Tensor or None for gradient {position}, "
                f"but got {type(gradient).__name__}"
            )
        if gradient._value.shape != spec[0]:
            try:
                gradient = sum_to_shape(gradient, spec[0])
            except ShapeError:
                raise GradientError(
                    f"Function {self.name()} returned an invalid gradient at index {position} - got "
                    f"{list(gradient.shape)} but expected shape compatible with {list(spec[0])}"
                ) from None
        gradient = gradient.to(spec[1])
        return gradient if create_graph else gradient._value

    def release(self) -> None:
        self.context._saved = None


def _payload(value: Any) -> Any:
    return value if isinstance(value, Node | np.ndarray) else np.asarray(value)


class Function:
    """An operation with a backward of its own: derive from it, and call `apply`.

    `forward(ctx, *inputs)` and `backward(ctx, *cotangents)` are static methods; `backward` returns one
    gradient, or None, for each input. Alternatively `forward(*inputs)` together with
    `setup_context(ctx, inputs, output)`. Neither is recorded itself, except that `backward` is under
    `create_graph`, so that it can be differentiated again.

    Example:
        >>> class Cube(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x ** 3
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x ** 2 * g
        >>> x = tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward(); x.grad
        tensor(12.)
    """

    @staticmethod
    def forward(*arguments: Any, **options: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs, for a `forward` without ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs from those of the outputs."""
        raise MissingRuleError("You must implement the backward for your custom autograd.Function.")

    vjp = backward

    @classmethod
    def apply(cls, *inputs: Any, **options: Any) -> Any:
        """The outputs of `forward`, recorded."""
        if any(isinstance(one, Tensor) and isinstance(one.payload, Node) for one in inputs):
            try:
                return _in_graph(cls, inputs, options)
            except OnTapeOnly:
                pass
        edges = [edge_of(one) if isinstance(one, Tensor) else None for one in inputs]
        context = Context()
        context.needs_input_grad = tuple(edge is not None for edge in edges)
        recorded = is_recording() and any(context.needs_input_grad)
        with no_grad():
            returned = _forward(cls, context, inputs, options)
        _check_dirty(context, inputs, returned, recorded)
        if not recorded:
            context._saved = tuple(
                None if one is None else Saved(one._value, None, one._cell) for one in context._to_save
            )
            return returned
        return _record_function(cls, context, inputs, edges, returned)


def _forward(
    function: type[Function], context: Context, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    if function.setup_context is Function.setup_context:
        return function.forward(context, *inputs, **options)
    returned = function.forward(*inputs, **options)
    function.setup_context(context, inputs, returned)
    return returned


# --- in a trace -------------------------------------------------------------------------------------------


def _in_graph(function: type[Function], inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The outputs of a function with a rule, as `ruled_calls.py` has it.

    Raises:
        OnTapeOnly: it is called on the tape, as outside of traces.
    """
    if getattr(function.backward, "is_once_differentiable", False):
        raise OnTapeOnly
    needs = tuple(isinstance(one, Tensor) and one.requires_grad for one in inputs)
    apart: list[bool] = []

    def call_of(function: type[Function]) -> RuledCall:
        def forward(*given: Any) -> tuple[Any, Any]:
            context = Context()
            context.needs_input_grad = needs
            try:
                with no_grad():
                    returned = _forward(function, context, given, options)
            except MutationError:
                raise OnTapeOnly from None
            if context._dirty or not context._materialise:
                raise OnTapeOnly
            excluded = {id(one) for one in context._not_differentiable}
            apart[:] = [id(one) in excluded for one in _outputs(returned)]
            own = vars(context).keys() - vars(Context()).keys()
            attributes = {name: vars(context)[name] for name in sorted(own)}
            return returned, (context._to_save, attributes)

        def backward(residuals: Any, cotangent: Any) -> Sequence[Any]:
            context = Context()
            saved, attributes = residuals
            vars(context).update(attributes)
            context.needs_input_grad = needs
            context._saved = tuple(
                None if one is None else Saved(one.payload, edge_of(one), one._cell) for one in saved
            )
            returned = _outputs(function.backward(context, *_outputs(cotangent)))
            return [_summed(one, given) for one, given in zip(returned, inputs, strict=True)]

        return RuledCall(
            copied_from(function),
            function.__name__,
            inputs,
            lambda *given: forward(*given)[0],
            forward,
            backward,
            lambda: call_of(copied_from(function)),
            (*needs, *(one for pair in options.items() for one in pair)),
        )

    result = call_ruled(call_of(function))
    found = tuple(one.detach() if is_apart else one for one, is_apart in zip(_outputs(result), apart))
    return found if isinstance(result, tuple) else found[0]


def _outputs(returned: Any) -> tuple[Any, ...]:
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


def _summed(gradient: Any, given: Any) -> Any:
    """A gradient in the shape of an input that was broadcast."""
    if not isinstance(gradient, Tensor) or not isinstance(given, Tensor):
        return None if not isinstance(given, Tensor) else gradient
    return sum_to_shape(gradient, tuple(given._value.shape))


def _check_dirty(context: Context, inputs: tuple[Any, ...], returned: Any, recorded: bool) -> None:
    """Count the writes into what `mark_dirty` names.

    Raises:
        GradientError: it is not returned, or is a leaf that requires grad, or a view that others use as well.
    """
    outputs = returned if isinstance(returned, tuple) else (returned,)
    for one in context._dirty:
        if all(one is not output for output in outputs):
            raise GradientError(
                "Some elements marked as dirty during the forward method were not returned as output. The "
                "inputs that are modified inplace must all be outputs of the Function."
            )
        if recorded:
            require_assignable(one)
            if one._view is not None and sum(isinstance(output, Tensor) for output in outputs) > 1:
                raise GradientError(
                    "If your Function modifies inplace an input that is a view of another Tensor, your "
                    "Function cannot return more than one Tensor. Write into a clone() of the input."
                )
        mark_written(one)


def _placed(tensor: Tensor, node: FunctionNode, number: int) -> Tensor:
    """The tensor, on the tape as an output of a node."""
    tensor._grad_fn, tensor._output_nr, tensor._requires_grad = node, number, True
    return tensor


def _record_function(
    function: type[Function],
    context: Context,
    inputs: tuple[Any, ...],
    edges: Sequence[Edge | None],
    returned: Any,
) -> Any:
    """The outputs of a function with their place on the tape."""
    single = not isinstance(returned, tuple)
    raw = (returned,) if single else returned
    node = _function_node_class(function.__name__)(function, context, edges, len(raw))
    node.tensor_inputs = [isinstance(one, Tensor) for one in inputs]
    node.input_specs = [
        (tuple(one._value.shape), one._value.dtype) if edge is not None else None
        for one, edge in zip(inputs, edges)
    ]
    excluded = {id(one) for one in context._not_differentiable}
    dirty = {id(one) for one in context._dirty}
    given_cells = {id(one._cell) for one in inputs if isinstance(one, Tensor)}
    outputs: list[Any] = []
    for number, one in enumerate(raw):
        if not isinstance(one, Tensor):
            outputs.append(one)
            continue
        if id(one) in excluded or one._value.dtype.kind not in CONTINUOUS:
            is_input = any(one is given for given in inputs)
            outputs.append(one.view_as(one) if is_input else one)
            continue
        node.output_specs[number] = (tuple(one._value.shape), one._value.dtype)
        if id(one) in dirty:
            rebase(one, _placed(make(one._value), node, number))
            outputs.append(one)
        elif id(one._cell) in given_cells:  # writes into an input, or into this, are none into the other
            outputs.append(_placed(with_own_memory(one.view_as(one)), node, number))
        else:
            one._view = None
            outputs.append(_placed(one, node, number))
    context._saved = tuple(_saved(one, raw, outputs, node) for one in context._to_save)
    context._to_save = context._dirty = context._not_differentiable = ()
    return outputs[0] if single else tuple(outputs)


def _saved(
    one: Tensor | None, raw: Sequence[Any], outputs: Sequence[Any], node: FunctionNode
) -> Saved | None:
    """A saved output is kept without its tensor: the node must not hold itself alive."""
    if one is None:
        return None
    for number, (before, after) in enumerate(zip(raw, outputs)):
        if one is before or one is after:
            return SavedOutput(after, node, number)
    return Saved(one._value, edge_of(one), one._cell)


class SavedOutput(Saved):
    """An output kept by the node that made it, which it refers to weakly."""

    __slots__ = ("node", "number")

    def __init__(self, output: Tensor, node: FunctionNode, number: int) -> None:
        super().__init__(output._value, None, output._cell)
        self.node = weakref.ref(node)
        self.number = number

    def as_tensor(self) -> Tensor:
        node = self.node()
        has_gradient = node is not None and node.output_specs[self.number] is not None
        return tensor_at(self.checked(), (node, self.number) if has_gradient else None, self.cell)


@functools.cache
def _function_node_class(name: str) -> type[FunctionNode]:
    return type(f"{name}Backward", (FunctionNode,), {"__slots__": ()})


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the `backward` of a Function that must not be differentiated again: that raises.

    Example:
        >>> class Twice(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, g):
        ...         return 2 * g
    """

    @functools.wraps(backward)
    def once(ctx: Any, *cotangents: Any) -> Any:
        with no_grad():
            returned = backward(ctx, *cotangents)
        if not is_recording() or not any(isinstance(one, Tensor) and one.requires_grad for one in cotangents):
            return returned
        single = not isinstance(returned, tuple)
        given = (returned,) if single else returned
        edges = [edge_of(one) for one in cotangents if isinstance(one, Tensor)]
        node = RefusingNode(edges)
        marked = tuple(_marked(one, node) for one in given)
        return marked[0] if single else marked

    once.is_once_differentiable = True  # type: ignore[attr-defined]
    return once


class RefusingNode(GradNode):
    """The end of a backward that is differentiable once."""

    __slots__ = ()

    def name(self) -> str:
        return "DelayedError"

    def refusal(self) -> str:
        return "trying to differentiate twice a function that was marked with @once_differentiable"

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        raise GradientError(self.refusal())


def _marked(value: Any, node: GradNode) -> Any:
    if not isinstance(value, Tensor) or value._value.dtype.kind not in CONTINUOUS:
        return value
    output = make(value._value)
    output._grad_fn, output._requires_grad = node, True
    return output
