"""The arguments of a function that is differentiated, and derivatives of its results by them.

Each argument that is differentiated is replaced by an alias, a tensor of the same elements at a place of
its own on the tape. So a derivative inside of a derivative does not see the paths of the outer one.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, OutputError
from ...tracer.graph import Node, constant
from ...tracer.ops.elementwise import complex_of, identity, stop_gradient
from ...tracer.ops.movement import concatenate, reshape
from ...tracer.origin import unlocated
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import innermost
from ..autograd.autograd import pull_back, pull_back_each
from ..functions.common import conjugate
from ..tape.apply import apply, of_kind
from ..tape.derivatives import gradients, jacobians, tangents, values_behind
from ..tape.direct import direct_view
from ..tape.engine import UNKNOWN, Pass
from ..tape.plain_sweeps import plain_gradients
from ..tape.pushing import pushed_forward
from ..tape.repeated import Repeated, repeated
from ..tracing.explored_programs import Memory
from ..tracing.numpy_programs import run_program
from ..values.differentiated import under_way
from ..values.flatten import flatten, is_container, leaf_paths, path_text, unflatten
from ..values.foreign import how_to_pass, kind_named
from ..values.modes import enable_grad, is_recording, recording
from ..values.nodes import Behind, Edge, have_own_backward, next_sequence, place_of, targets_behind
from ..values.plain_arrays import require_plain_array
from ..values.saved import end_keeping, keep_saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, as_kind, kind_of_value, plain
from .own_memory import with_own_memory

Function = Callable[..., Any]
ARRAYS = (np.ndarray, np.generic)
DIFFERENTIABLE = (Tensor, np.ndarray, np.generic, float, int, complex)
ONE_LEAF = [True]
ALONE: list[tuple[Any, list[bool]]] = [(None, ONE_LEAF)]
NOTHING = Behind([], [])
_reshaped = direct_view(reshape, of_numbers=True)
_KINDS_OF_PLAIN: dict[type, type[Tensor]] = {
    np.ndarray: NumpyTensor, float: PythonNumber, complex: PythonNumber, np.float64: NumpyScalar,
    np.float32: NumpyScalar,
}  # fmt: skip
"""Of the commonest arguments the kinds of the tensors that stand for them."""
Argnums = int | str | Sequence[int | str]
Gradient = Tensor | np.ndarray | np.generic | None
"""An array or a number where nothing is recorded; None where a result does not depend on an argument."""
HOW_TO_GIVE = " Pass arrays, also in tuples, lists, dicts and dataclasses, or choose other argnums."


@contextmanager
def reopened(leaves: Iterable[Any]) -> Iterator[None]:
    """Inside, functions may close over aliases of a function that has run: its backward pass runs them."""
    known = [one for one in leaves if _is_closed(one)]
    for one in known:
        one._is_closed = False
    try:
        yield
    finally:
        for one in known:
            one._is_closed = True


def _is_closed(target: Any) -> bool:
    """Whether it is the alias of a function that has run: a gradient inside leaves it behind its result."""
    return getattr(target, "_is_closed", False)


class Inputs:
    """The arguments of one call, with aliases in the places of those that are differentiated."""

    _behind = NOTHING
    """What is on the tape behind the outputs, once it was asked whether they reach outside."""
    _repeated: Repeated | None = None
    """The plan of a pass that is run again."""
    _wanted: Any = UNKNOWN
    """Those behind the outputs that are on a way to the leaves, once a pass has found them."""

    def __init__(
        self, name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums
    ) -> None:
        self.name = name
        self.recording = is_recording()
        self.since = next_sequence()
        self._own: set[int] = set()
        self.leaves: list[Tensor]
        """The aliases, over all differentiated arguments."""
        self.edges: list[Edge]
        """The places of the leaves on the tape."""
        self._layouts: list[tuple[Any, list[bool]]]
        if type(argnums) is int and self._takes_one(function, args, argnums):
            self.several, self._kwargs = False, kwargs
            return
        self.several = not isinstance(argnums, (int, str))
        self.leaves, self._layouts = [], []
        changed_args, self._kwargs = list(args), dict(kwargs)
        for place, label in _places(name, function, args, kwargs, argnums):
            holder: Any = self._kwargs if isinstance(place, str) else changed_args
            holder[place] = self._replaced(holder[place], label)
        self._args = tuple(changed_args)
        self.edges = list(map(place_of, self.leaves))

    def _takes_one(self, function: Function, args: tuple[Any, ...], position: int) -> bool:
        """Replace one plain array or number among the arguments, if there is one at the position."""
        if not 0 <= position < len(args):
            return False
        leaf = args[position]
        kind = _KINDS_OF_PLAIN.get(type(leaf))
        if kind is None or (value := np.asarray(leaf)).dtype.kind not in CONTINUOUS:
            return False
        names = _parameters(function)
        label = names[position] if position < len(names) else f"argument {position}"
        alias = self._own_alias(value, kind, label)
        self.leaves, self._layouts, self.edges = [alias], ALONE, [(alias, 0)]
        self._args = (alias,) if len(args) == 1 else (*args[:position], alias, *args[position + 1 :])
        return True

    def evaluate(self, function: Function, memory: Memory | None = None) -> Any:
        """What the function returns of the aliases; `memory` is of calls of one transform's result."""
        trace = innermost()
        if trace is not None:
            trace.differentiable = True
        former, saved = recording.set(True), keep_saved_values()
        under_way.append(self)
        try:
            return run_program(function, self._args, self._kwargs, memory)
        finally:
            under_way.remove(self)
            end_keeping(saved)
            recording.reset(former)
            own = self._own
            for one in self.leaves:
                if id(one) in own:
                    one._is_closed = True

    def _replaced(self, value: Any, label: str) -> Any:
        if type(value) in _KINDS_OF_PLAIN or (value is not None and not is_container(value)):
            alias = self._alias(value, label)
            self._layouts.append((None, ONE_LEAF))
            self.leaves.append(alias)
            return alias
        leaves, structure = flat(value)
        labels = (
            [label] if structure is None else [f"{label}{path_text(path)}" for path in leaf_paths(structure)]
        )
        aliases = [leaf if leaf is None else self._alias(leaf, one) for leaf, one in zip(leaves, labels)]
        self._layouts.append((structure, [one is not None for one in aliases]))
        self.leaves += [one for one in aliases if one is not None]
        return aliases[0] if structure is None else unflatten(structure, aliases)

    def _alias(self, leaf: Any, label: str) -> Tensor:
        kind = _KINDS_OF_PLAIN.get(type(leaf))
        if kind is not None and (value := np.asarray(leaf)).dtype.kind in CONTINUOUS:
            return self._own_alias(value, kind, label)
        if not isinstance(leaf, DIFFERENTIABLE):
            raise ArgumentError(
                f"{self.name}: argument '{label}' is a {kind_named(leaf)}; only tensors of pullback, "
                f"arrays and floats can be differentiated.{how_to_pass(leaf) or HOW_TO_GIVE}"
            )
        require_plain_array(leaf, f"{self.name}: argument '{label}'")
        kind = kind_of_value(leaf)
        value = leaf.payload if isinstance(leaf, Tensor) else np.asarray(leaf)
        if value.dtype.kind not in CONTINUOUS:
            raise DTypeError(
                f"{self.name}: argument '{label}' has dtype {value.dtype}, and only floating or "
                f"complex arguments have a gradient. {_as_float(leaf)}, or choose other argnums."
            )
        if not (self.recording and isinstance(leaf, Tensor) and leaf.requires_grad):
            return self._own_alias(self._own_node(value) if type(value) is Node else value, kind, label)
        shape = tuple(value.shape)
        alias = _reshaped(leaf, shape=shape)
        if alias is NotImplemented:
            alias = apply(reshape, leaf, shape=shape)
        alias = as_kind(alias, kind)
        alias._frozen = _refusal_of_writes(self.name, label, alias._copying)
        return alias

    def _own_alias(self, value: Any, kind: type[Tensor], label: str) -> Tensor:
        alias = make(value, kind)
        alias._requires_grad = True
        alias._frozen = _refusal_of_writes(self.name, label, alias._copying)
        self._own.add(id(alias))
        return alias

    def _own_node(self, value: Node) -> Node:
        """In a trace a node that leads to the value, so that only what goes through the alias reaches it."""
        with unlocated():
            own = identity(value) if self.recording else stop_gradient(value)
        return own.named(value.name)

    def require_complex(
        self, outputs: Sequence[Tensor], holomorphic: bool, of_gradient: bool = False
    ) -> None:
        """Raise where complex numbers do not have the derivatives that are asked for.

        Raises:
            OutputError: the gradient of a complex result. DTypeError: derivatives of complex results by
                complex arguments; with `holomorphic` anything real.
        """
        if holomorphic:
            real = [one for one in (*outputs, *self.leaves) if not one.is_complex()]
            if real:
                raise DTypeError(
                    f"{self.name}: holomorphic=True takes complex arguments and complex results, found dtype "
                    f"{real[0]._value.dtype}. Leave it out for real numbers, or convert them."
                )
        elif "c" in [one._value.dtype.kind for one in outputs]:
            if of_gradient:
                raise OutputError(
                    f"{self.name}: a gradient is taken of a complex result. Return a real one, as abs(z) or "
                    "z.real; for the complex derivative of a holomorphic function give holomorphic=True."
                )
            if any(one.is_complex() for one in self.leaves):
                raise DTypeError(
                    f"{self.name}: a complex result has no single derivative by a complex argument, unless "
                    "the function is holomorphic: give holomorphic=True. Else differentiate .real and .imag."
                )

    def derivatives(self, outputs: Sequence[Tensor], keep: bool) -> Sequence[Sequence[Gradient]]:
        """All derivatives of each output."""
        if len(outputs) == 1 and not keep and innermost() is None:
            (output,) = outputs
            if not output._value.shape and output._value.dtype.kind == "f":
                return [self._gradient(output)]
        is_real = all(one._value.dtype.kind != "c" for one in outputs)  # of complex ones the tape takes it
        if is_real and self._graph_shows(outputs):
            return jacobians(outputs, self.leaves, self._outer(outputs, keep))
        behind = self._behind if innermost() is None or not keep else None
        return [_all_pulled(output, self.leaves, keep, behind, self.since) for output in outputs]

    def _gradient(self, output: Tensor) -> Sequence[Gradient]:
        """That of a real number outside of traces, of which it is known what is behind it on the tape."""
        if not output._requires_grad:
            return [None] * len(self.leaves)
        root, one = place_of(output), np.array(1, output._value.dtype)
        found = plain_gradients(root, one, self._behind, self.leaves, self.since, False)
        if found is None:
            return self._passed([output], [one], retain_graph=False)
        return with_own_memory(found, [one])

    def _passed(
        self, outputs: Sequence[Tensor], cotangents: Sequence[np.ndarray], retain_graph: bool
    ) -> Sequence[Gradient]:
        """The gradients of the leaves outside of traces, without a history; what is behind is known."""
        if self._repeated is not None and (values := self._repeated.run(cotangents)) is not None:
            return with_own_memory(values, cotangents)
        roots = list(map(place_of, outputs))
        if self._wanted is not UNKNOWN and self._repeated is None:  # the second time: there may be many
            self._repeated = repeated(roots, self.leaves, self._behind, self._wanted)
        found = None
        if retain_graph and len(roots) == 1 and self._wanted is UNKNOWN:
            found = plain_gradients(roots[0], cotangents[0], self._behind, self.leaves, self.since, True)
        if found is None:
            one_pass = Pass(False, retain_graph, self.edges)
            one_pass.run(roots, cotangents, self._behind, self._wanted)
            self._wanted = one_pass.wanted
            found = list(map(one_pass.found.get, one_pass.targets))
        else:
            self._wanted = None
        return with_own_memory(found, cotangents)

    def pulled(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], keep: bool, at_once: bool = False
    ) -> Sequence[Gradient]:
        """The cotangents pulled back to each of the leaves; `at_once` where nobody has the outputs yet."""
        if not keep and innermost() is None and False not in [one._requires_grad for one in outputs]:
            return self._passed(outputs, [one._value for one in cotangents], retain_graph=True)
        if self._graph_shows(outputs):
            return gradients(outputs, cotangents, self.leaves, self._outer(outputs, keep))
        behind = self._behind if at_once and innermost() is None else None
        return pull_back(outputs, self.leaves, cotangents, keep, True, behind, self.since)

    def pushed(
        self, outputs: Sequence[Tensor], directions: Sequence[Tensor], keep: bool
    ) -> Sequence[Gradient]:
        """The derivative of each output along directions of the leaves.

        Where the tape does not push them forward, it is the pull-back of the pull-back (J. Townsend, A new
        trick for calculating Jacobian vector products, 2017).
        """
        if self._graph_shows(outputs):
            return tangents(outputs, self.leaves, directions, self._outer(outputs, keep))
        if not keep and innermost() is None:
            along = [one._value for one in directions]
            found = pushed_forward(self._behind, outputs, self.leaves, along)
            if found is not None:
                return with_own_memory(found, along)
        with enable_grad():
            cotangents = [filled_like(output, 0).requires_grad_() for output in outputs]
            pulled = pull_back(outputs, self.leaves, cotangents, create_graph=True)
            linear = [(one, tangent) for one, tangent in zip(pulled, directions) if one is not None]
            return pull_back(
                [one for one, _ in linear], cotangents, [one for _, one in linear], create_graph=keep
            )

    def _graph_shows(self, outputs: Sequence[Tensor]) -> bool:
        """Whether this is a trace whose graph shows the derivatives."""
        if innermost() is None:
            return False
        values = (*outputs, *self.leaves)
        are_nodes = all(type(one._value) is Node for one in values)
        return are_nodes and not have_own_backward(self._behind)

    def _outer(self, outputs: Sequence[Tensor], keep: bool) -> dict[Node, Edge]:
        """What derivatives that are kept depend on besides the arguments, with its place on the tape."""
        return values_behind(outputs, self.since, self._is_own) if keep else {}

    def _is_own(self, target: Any) -> bool:
        return id(target) in self._own or _is_closed(target)

    def reach_outside(self, outputs: Iterable[Tensor], given: Sequence[Tensor] = ()) -> bool:
        """Whether what is recorded depends on more that requires grad than the aliases, as on `given`.

        Where this was asked for the outputs alone, `has_history` answers for cotangents that come later.
        """
        targets = []
        for output in outputs:
            if output._view is not None:
                output.refresh()
            if output._requires_grad:
                targets.append(output._grad_fn or output)
        first = self.since
        self._behind = nodes, leaves = targets_behind(targets, first)
        if given and has_history(given):
            return True  # also of a value that was computed where nothing is recorded
        if not self.recording:
            return False
        own = self._own
        for leaf in leaves:
            if id(leaf) not in own and not _is_closed(leaf):
                return True
        return bool(nodes) and nodes[0].sequence < first

    def results(self, gradients: Sequence[Gradient], keep: bool) -> list[Any]:
        """For each differentiated argument its gradient, with zeros for None, in the argument's structure."""
        if len(gradients) == 1 and self._layouts[0][1] is ONE_LEAF:
            return [self._shown_gradient(gradients[0], self.leaves[0], keep)]
        shown = map(self._shown_gradient, gradients, self.leaves, repeat(keep))
        found = []
        for structure, present in self._layouts:
            if present is ONE_LEAF:
                found.append(next(shown))
                continue
            leaves = [next(shown) if is_present else None for is_present in present]
            found.append(leaves[0] if structure is None else unflatten(structure, leaves))
        return found

    def _shown_gradient(self, gradient: Gradient, alias: Tensor, keep: bool) -> Any:
        kind = type(alias)
        if kind is NumpyTensor and type(gradient) is np.ndarray:
            return gradient
        if issubclass(type(gradient), ARRAYS):  # `isinstance` asks a tensor's `__class__` as well
            if issubclass(kind, NumpyScalar):
                return gradient[()]  # type: ignore[index]
            array = np.asarray(gradient)
            return array if kind is NumpyTensor else make(array, kind)
        if kind is PythonNumber:
            kind = NumpyScalar
        return self._shown_leaf(filled_like(alias, 0) if gradient is None else gradient, keep, kind)

    def shown(self, value: Any, keep: bool) -> Any:
        """What a caller gets: arrays for arrays; Tensors with a history only if that leads outside."""
        if issubclass(type(value), Tensor):
            return self._shown_leaf(value, keep)
        leaves, structure = flat(value)
        shown = [self._shown_leaf(leaf, keep) for leaf in leaves]
        return shown[0] if structure is None else unflatten(structure, shown)

    def shown_of_kind(self, derivative: Gradient, output: Tensor, keep: bool) -> Any:
        """The derivative of an output along directions, with zeros for None, as what the output is."""
        kind = type(output)
        if issubclass(type(derivative), ARRAYS):
            array = np.asarray(derivative)
            if issubclass(kind, NumpyTensor):
                return kind._as_plain(output, array)  # type: ignore[arg-type]
            return make(array, kind)
        one: Any = filled_like(output, 0) if derivative is None else derivative
        return self._shown_leaf(of_kind(one, kind), keep)

    def _shown_leaf(self, leaf: Any, keep: bool, kind: type[Tensor] | None = None) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        kind = kind or type(leaf)
        value = leaf._value
        if not keep and type(value) is np.ndarray and issubclass(kind, NumpyTensor):
            return kind._as_plain(leaf, value)  # type: ignore[arg-type]
        if keep and leaf.requires_grad:  # what the function took from outside leads on
            return of_kind(leaf, kind)
        shown = make(leaf._value, kind) if leaf.requires_grad or type(leaf) is not kind else leaf
        return plain(shown)


@functools.lru_cache(maxsize=256)
def _refusal_of_writes(name: str, label: str, copying: str) -> str:
    return (
        f"{name} writes into its argument '{label}', of which a gradient is taken; "
        f"write into a {copying}() of it"
    )


def has_history(given: Iterable[Tensor]) -> bool:
    """Whether what is recorded now depends on any of these."""
    if is_recording():
        for one in given:
            if one._view is not None:
                one.refresh()
            if one._requires_grad:
                return True
    return False


def as_tuple(argnums: Argnums) -> tuple[int | str, ...]:
    """Positions and names, also of a single argument.

    Raises:
        ArgumentError: it is neither.
    """
    if isinstance(argnums, (int, str)):
        return (argnums,)
    if not isinstance(argnums, Iterable) or not all(isinstance(one, int | str) for one in argnums):
        raise ArgumentError(
            f"argnums must be a position or a name of an argument, or a tuple of them, found {argnums!r}."
        )
    return tuple(argnums)


def _places(
    name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums
) -> list[tuple[int | str, str]]:
    """(position or keyword, name for messages) of each differentiated argument.

    Raises:
        ArgumentError: the call has no such argument.
    """
    names = _parameters(function)
    found: list[tuple[int | str, str]] = []
    for wanted in as_tuple(argnums):
        position = list(names).index(wanted) if isinstance(wanted, str) and wanted in names else wanted
        if isinstance(position, int) and -len(args) <= position < len(args):
            position %= len(args)
            found.append((position, names[position] if position < len(names) else f"argument {position}"))
            continue
        keyword = names[position] if isinstance(position, int) and 0 <= position < len(names) else wanted
        if keyword not in kwargs:
            raise ArgumentError(
                f"{name}: argnums has {wanted!r}, but the call has {len(args)} positional arguments"
                + (f" and the keywords {', '.join(kwargs)}" if kwargs else "")
                + f"; the parameters are {', '.join(names) or 'unknown'}. "
                + "Pass that argument, or choose other argnums."
            )
        found.append((keyword, str(keyword)))
    return found


def _parameters(function: Function) -> Sequence[str]:
    """The names of those that may be given by position; `inspect`, which is slow, is asked last."""
    inner: Any = function
    while type(inner) is FunctionType and "__signature__" not in inner.__dict__:
        if "__wrapped__" not in inner.__dict__:
            return inner.__code__.co_varnames[: inner.__code__.co_argcount]
        inner = inner.__dict__["__wrapped__"]  # whose signature it shows
    if type(inner) is MethodType and type(inner.__func__) is FunctionType:  # made anew for each call
        return _parameters(inner.__func__)[1:]
    return _parameters_of_ufunc(inner) if type(inner) is np.ufunc else _inspected(function)


def _inspected(function: Function) -> Sequence[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # written in C
        return ()
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


_parameters_of_ufunc = functools.lru_cache(maxsize=256)(_inspected)


def flat(value: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; the structure of a single leaf is None."""
    if issubclass(type(value), Tensor):
        return [value], None
    return flatten(value) if is_container(value) else ([value], None)


def filled_like(like: Tensor, number: int) -> Tensor:
    """Such a derivative, the same in all elements: 0 by what a result does not depend on."""
    value = like._value
    if isinstance(value, Node):
        return make(constant(number, value.spec))
    array = np.empty(value.shape, value.dtype)
    array.fill(number)
    return make(array)


def _all_pulled(
    output: Tensor, inputs: Sequence[Tensor], keep: bool, behind: Behind | None, since: int
) -> Sequence[Tensor | None]:
    """For each input the derivatives of all elements of `output`, of shape `output.shape + input.shape`.

    None where a number does not depend on an input. What is `behind` the output on the tape may be known;
    nodes made `since` a sequence number alone lead to inputs.
    """
    if output._value.dtype.kind != "c":
        return _pulled(output, inputs, keep, 1.0, behind, since)
    pulled = [one if one is None else conjugate(one) for one in _pulled(output, inputs, keep, 1.0)]
    if all(one.is_complex() for one in inputs):
        return pulled
    turned = _pulled(output, inputs, keep, 1j)  # the imaginary part of the derivatives by real arguments
    return [
        one if one is None or other is None or one.is_complex() else apply(complex_of, one, other)
        for one, other in zip(pulled, turned)
    ]


def _pulled(
    output: Tensor,
    inputs: Sequence[Tensor],
    keep: bool,
    direction: complex,
    behind: Behind | None = None,
    since: int = 0,
) -> Sequence[Tensor | None]:
    """What is pulled back of each element of `output`, changed in a direction."""
    shape = tuple(output._value.shape)
    if not shape:
        one = make(np.asarray(direction, output._value.dtype)) if output.is_complex() else None
        return pull_back([output], inputs, [one], keep, output.is_complex() or None, behind, since)
    size = math.prod(shape)
    basis = (direction * np.eye(size, dtype=output._value.dtype)).reshape(size, *shape)
    if not keep and innermost() is None:
        stacks = pull_back_each(output, inputs, basis, behind)
        return [
            make(one._value.reshape(shape + tuple(variable._value.shape)))
            for one, variable in zip(stacks, inputs)
        ]
    rows = [pull_back([output], inputs, [make(one)], keep, True, behind, since) for one in basis]
    found: list[Tensor] = []
    for position, variable in enumerate(inputs):
        own = tuple(variable._value.shape)
        parts = [row[position] for row in rows]
        filled = [filled_like(variable, 0) if part is None else part for part in parts]
        if not filled:
            found.append(make(np.zeros(shape + own, variable._value.dtype)))
            continue
        stacked = apply(concatenate, *[apply(reshape, one, shape=(1, *own)) for one in filled], dim=0)
        found.append(apply(reshape, stacked, shape=shape + own))
    return found


def _as_float(leaf: Any) -> str:
    """How to make a floating value of one of integers."""
    return f"Pass {float(leaf)}" if type(leaf) is int else "Convert it first, e.g. with .astype(float)"
