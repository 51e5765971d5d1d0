"""`pullback.autograd`: gradients of recorded computations, and hooks."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, GradientError, ShapeError
from ...tracer.graph import Node
from ...tracer.users_frames import showing_users_frames
from ..functions.shapes.joining import stack
from ..tape.engine import Pass
from ..tensors.creation import ones_like, zeros_like
from ..values.nodes import Behind, Edge, edge_of, hooks_of, hooks_of_leaf
from ..values.tensor import RemovableHandle, Tensor, make

Tensors = Tensor | Sequence[Tensor]


# --- backward and grad ----------------------------------------------------------------------------------


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves that they were computed from.

    Args:
        tensors: what to differentiate.
        grad_tensors: the cotangent of each; may be None for those with one element.
        retain_graph: keep what is needed to do it again; by default as `create_graph`.
        create_graph: record the computation of the gradients, so that they can be differentiated.
        inputs: the only tensors whose gradients to accumulate.

    Raises:
        GradientError: nothing requires grad, a cotangent is missing, the graph has been freed, or a value
            that is needed was overwritten.

    Example:
        >>> x = tensor([1.0, 2.0], requires_grad=True)
        >>> backward((x * x).sum()); x.grad
        tensor([2., 4.])
    """
    roots, cotangents = _roots(_tuple(tensors), _tuple_or_none(grad_tensors), create_graph)
    variables = None if inputs is None else _tuple(inputs)
    targets = None if variables is None else _input_edges(variables)
    if targets == []:
        raise GradientError("'inputs' argument to backward cannot be empty.")
    one_pass = Pass(create_graph, create_graph if retain_graph is None else retain_graph, targets)
    leaves = dict.fromkeys(variable for variable in variables or () if variable._grad_fn is None)
    for variable in variables or ():
        if variable not in leaves:
            retain_grad(variable)
    one_pass.run(roots, cotangents)
    for variable in leaves:
        found = one_pass.found.get((id(variable), 0))
        if found is not None:
            one_pass.add_to_leaf(variable, found, owned=False)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is left alone.

    Args:
        grad_outputs: the cotangent of each output; may be None for those with one element.
        retain_graph, create_graph: as in `backward`.
        allow_unused: give None for an input that the outputs do not depend on, instead of raising.
        is_grads_batched: each cotangent has a leading dimension, and so has each gradient.
        materialize_grads: give zeros for such an input.

    Raises:
        GradientError: as in `backward`, and for an unused input.

    Example:
        >>> x = tensor(3.0, requires_grad=True)
        >>> (slope,) = grad(x ** 3, x, create_graph=True)
        >>> slope.item(), grad(slope, x)[0].item()
        (27.0, 18.0)
    """
    if is_grads_batched:
        options = (True, create_graph, allow_unused, False, materialize_grads)
        return _batched_grad(_tuple(outputs), _tuple(inputs), _tuple_or_none(grad_outputs), options)
    variables = _tuple(inputs)
    if materialize_grads and allow_unused is False:
        raise ArgumentError("Expected allow_unused to be True or not passed when materialize_grads=True.")
    roots, cotangents = _roots(_tuple(outputs), _tuple_or_none(grad_outputs), create_graph)
    targets = _input_edges(variables)
    one_pass = Pass(create_graph, create_graph if retain_graph is None else retain_graph, targets)
    one_pass.run(roots, cotangents)
    found = _found(one_pass, targets, bool(allow_unused) or materialize_grads)
    if materialize_grads:
        return tuple(zeros_like(one) if slope is None else slope for slope, one in zip(found, variables))
    return tuple(found)


def pull_back(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
    create_graph: bool = True,
    retain_graph: bool | None = None,
    behind: Behind | None = None,
    since: int = 0,
) -> tuple[Tensor | None, ...]:
    """The gradient of each input; None where the outputs do not depend on it.

    `behind` are the nodes and leaves behind the outputs, if they are known, of which those made `since` a
    sequence number alone may lead to inputs.
    """
    recorded = [(output, one) for output, one in zip(outputs, cotangents) if output.requires_grad]
    if not recorded or not inputs:
        return (None,) * len(inputs)
    differentiated, given = zip(*recorded)
    roots, started = _roots(differentiated, given, create_graph)
    targets = _input_edges(inputs)
    retain_graph = create_graph if retain_graph is None else retain_graph
    one_pass = Pass(create_graph, retain_graph, targets, since=since)
    one_pass.run(roots, started, behind)
    return tuple(_found(one_pass, targets, True))


def pull_back_each(
    output: Tensor, inputs: Sequence[Tensor], cotangents: np.ndarray, behind: Behind | None = None
) -> list[Tensor]:
    """The gradients of inputs for each of several cotangents of one result, stacked; outside of traces.

    What is behind the result is found once. Zeros where the result does not depend on an input.
    """
    found = [np.zeros((len(cotangents), *one._value.shape), one._value.dtype) for one in inputs]
    root = edge_of(output)
    if root is not None and found:
        Pass(False, True, _input_edges(inputs)).run_each(root, cotangents, behind, found)
    return list(map(make, found))


def _batched_grad(
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    cotangents: tuple[Any, ...] | None,
    options: tuple[Any, ...],
) -> tuple[Any, ...]:
    """The gradients for each of a batch of cotangents, stacked."""
    counts = {one.shape[0] for one in cotangents or () if one is not None and one.ndim}
    if len(counts) != 1:
        raise ArgumentError("grad(): is_grads_batched needs grad_outputs with one leading dimension.")
    rows = [
        grad(outputs, inputs, tuple(None if one is None else one[row] for one in cotangents or ()), *options)
        for row in range(counts.pop())
    ]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows))


def _found(one_pass: Pass, targets: Sequence[Edge], allow_unused: bool) -> list[Tensor | None]:
    """The gradients by which a pass was asked for, as tensors."""
    found: list[Tensor | None] = []
    for target, number in targets:
        value = one_pass.found.get((id(target), number))
        if value is None and not allow_unused:
            raise GradientError(
                f"The differentiated Tensor at index {len(found)} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
        found.append(make(value) if type(value) is np.ndarray else one_pass.tensor(value))
    return found


def _tuple(values: Tensors) -> tuple[Tensor, ...]:
    found = (values,) if isinstance(values, Tensor) or not isinstance(values, Iterable) else tuple(values)
    for one in found:
        if not isinstance(one, Tensor):
            raise ArgumentError(f"tensors expected, found {type(one).__name__} {one!r}.")
    return found


def _tuple_or_none(values: Any) -> tuple[Any, ...] | None:
    return None if values is None else (values,) if isinstance(values, Tensor) else tuple(values)


def _roots(
    outputs: tuple[Tensor, ...], given: tuple[Any, ...] | None, create_graph: bool
) -> tuple[list[Edge], list[Any]]:
    """The edges to start from and their cotangents."""
    if given is None:
        given = (None,) * len(outputs)
    if len(given) != len(outputs):
        raise GradientError(f"got {len(outputs)} tensors and {len(given)} gradients")
    roots, cotangents = [], []
    for position, (output, cotangent) in enumerate(zip(outputs, given)):
        edge = edge_of(output)
        if edge is None:
            raise GradientError(
                f"element {position} of tensors does not require grad and does not have a grad_fn. Nothing "
                "that it is computed of requires grad, or it was detached, or computed under no_grad."
            )
        started = _cotangent(output, cotangent, position)
        roots.append(edge)
        cotangents.append(started if create_graph else started._value)
    return roots, cotangents


def _cotangent(output: Tensor, cotangent: Any, position: int) -> Tensor:
    """The cotangent of an output: given, of the output's shape, or 1 for a single element."""
    if cotangent is None:
        if math.prod(output._value.shape) != 1:
            raise GradientError(
                "grad can be implicitly created only for scalar outputs; this one has shape "
                f"{tuple(output._value.shape)}. Reduce it, e.g. with .sum() or .mean(), or give its gradient."
            )
        if output._value.dtype.kind == "c":
            raise GradientError(
                f"grad can be implicitly created only for real scalar outputs but got {output.dtype}. Take "
                "its real part or its abs(), or give the gradient of the output."
            )
        return _one(output)
    if not isinstance(cotangent, Tensor):
        raise ArgumentError(f"gradients can be either Tensors or None, but got {type(cotangent).__name__}")
    if cotangent._value.shape != output._value.shape:
        raise ShapeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {cotangent.shape} and "
            f"output[{position}] has a shape of {output.shape}."
        )
    if cotangent._value.dtype == output._value.dtype:
        return cotangent
    if cotangent.is_complex() and not output.is_complex():
        raise DTypeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch "
            f"in dtype: grad_output[{position}] has a dtype of {cotangent.dtype} and output[{position}] has "
            f"a dtype of {output.dtype}. Of a real value it must be real: take its .real."
        )
    return cotangent.to(output.dtype)


def _one(output: Tensor) -> Tensor:
    """The cotangent of a single element."""
    value = output._value
    return ones_like(output) if isinstance(value, Node) else make(np.array(1, value.dtype, ndmin=value.ndim))


def _input_edges(inputs: Sequence[Tensor]) -> list[Edge]:
    edges = []
    for variable in inputs:
        edge = edge_of(variable)
        if edge is None:
            raise GradientError("One of the differentiated Tensors does not require grad")
        edges.append(edge)
    return edges


@showing_users_frames
def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradients of this tensor to the `.grad` of the leaves: see `autograd.backward`.

    Example:
        >>> x = tensor([1.0, 2.0], requires_grad=True)
        >>> (3 * x).backward(tensor([1.0, 10.0])); x.grad
        tensor([ 3., 30.])
    """
    if gradient is None and inputs is None and not create_graph:
        node = self.grad_fn
        if node is not None and node.backward_to_leaves(self, bool(retain_graph)):
            return
    backward(self, None if gradient is None else (gradient,), retain_graph, create_graph, inputs)


def Variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """A leaf that shares the memory of `data`: the older way to say `requires_grad`.

    Example:
        >>> Variable(tensor([1.0]), requires_grad=True)
        tensor([1.], requires_grad=True)
    """
    return data._detached().requires_grad_(requires_grad)


# --- hooks of tensors ---------------------------------------------------------------------------------------


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook(gradient)` whenever this tensor's gradient is computed; what it returns replaces it.

    Example:
        >>> x = tensor([1.0], requires_grad=True)
        >>> handle = x.register_hook(lambda gradient: 2 * gradient)
        >>> x.sum().backward(); x.grad
        tensor([2.])
    """
    if not self.requires_grad:
        raise GradientError("cannot register a hook on a tensor that doesn't require gradient")
    node = self.grad_fn
    if node is not None:
        return RemovableHandle(hooks_of(node).tensors.setdefault(self._output_nr, {}), hook)
    return RemovableHandle(hooks_of_leaf(self)["gradient"], hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` after a backward pass has added to the `.grad` of this leaf."""
    if not self.requires_grad or self.grad_fn is not None:
        raise GradientError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(hooks_of_leaf(self)["accumulated"], hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in `.grad`, too."""
    if not self.requires_grad:
        raise GradientError("can't retain_grad on Tensor that has requires_grad=False")
    node = self.grad_fn
    if node is not None:
        hooks_of(node).retained[self._output_nr] = weakref.ref(self)
