"""Functions from functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`.

All run the function on the tape. Of a plain function that happens in each call; of a compiled one when it is
traced, so that value and gradient become one graph and one generated function. There they leave the
derivative to the graph (`codegen/derivatives/taken.py`), where that shows all that the tape does.

Each argument that is differentiated is replaced by an alias, a tensor of the same elements at a place of
its own on the tape. So a derivative inside of a derivative does not see the paths of the outer one.
"""

from __future__ import annotations

import functools
import inspect
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, OutputError, ShapeError
from ...tracer.graph import Node, constant
from ...tracer.ops.elementwise import complex_of, convert, identity, stop_gradient
from ...tracer.ops.movement import concatenate, reshape
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import innermost
from ..autograd.autograd import pull_back
from ..dispatch.compiled import CompiledFunction, CompiledMethod, function_name
from ..functions.common import conjugate
from ..tape.apply import apply, of_kind, standing_for
from ..tape.derivatives import gradients, jacobians, tangents, values_behind
from ..tracing.numpy_programs import NumpyProgram
from ..values.differentiated import differentiating
from ..values.flatten import flatten, is_container, leaf_paths, path_text, unflatten
from ..values.foreign import how_to_pass, how_to_return
from ..values.modes import enable_grad, is_recording
from ..values.nodes import Edge, GradNode, have_own_backward, next_sequence, targets_behind
from ..values.plain_arrays import require_plain_array
from ..values.saved import keeping_saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, as_kind, plain

Function = Callable[..., Any]
Argnums = int | str | Sequence[int | str]


# --- the public functions -------------------------------------------------------------------------------


def grad(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The function that computes the gradient of a scalar function.

    Args:
        function: returns a floating tensor or array of one element; with `has_aux` a pair of that and
            anything.
        argnums: which arguments to differentiate: a position or name, or several. Each may be nested in
            lists, tuples, dicts, namedtuples and dataclasses.
        has_aux: return (gradient, aux).
        holomorphic: the function takes complex numbers to a complex one and has a complex derivative: that.

    Of complex arguments the gradient of a real result is PyTorch's: df/dx + i df/dy of an argument x + i y,
    so that a step against it descends. JAX's and HIPS autograd's are its conjugates.

    Returns:
        A function of the same arguments. The gradient has the structure of the argument, a tuple for several
        `argnums`; zeros where the value does not depend on it. Arrays in give arrays out, Tensors Tensors. If
        `function` is compiled, so is the result, as one fused function. Nothing is added to `.grad`.

    Raises:
        DTypeError: a differentiated argument is no float, or with `holomorphic` not complex.
        ArgumentError: there is no such argument.
        OutputError: the result has several elements, or none, or is complex without `holomorphic`.
        GradientError: a value that depends on the argument becomes a plain number or array, as by `float()`;
            `stop_gradient` says that this is meant.

    Example:
        >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
        array([2., 4.])
    """

    def make_gradient(inner: Function) -> Function:
        evaluate = _value_and_grad(inner, argnums, has_aux, holomorphic)

        def gradient(*args: Any, **kwargs: Any) -> Any:
            value, slope = evaluate(*args, **kwargs)
            return (slope, value[1]) if has_aux else slope

        return gradient

    return _derived(function, make_gradient, "grad", argnums)


def value_and_grad(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """As `grad`, but the function returns (value, gradient); with `has_aux` ((value, aux), gradient).

    Example:
        >>> value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
        (np.float64(5.0), array([2., 4.]))
    """
    return _derived(
        function,
        lambda inner: _value_and_grad(inner, argnums, has_aux, holomorphic),
        "value_and_grad",
        argnums,
    )


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function, and the function that pulls a cotangent back to its arguments.

    Args:
        primals: the arguments; all are differentiated.
        has_aux: `function` returns (value, aux), and the result has aux as a third part.

    Returns:
        (value, pull): `pull(cotangent)`, of the structure and shapes of the value, gives a tuple with a
        gradient for each of `primals`. It may be called repeatedly. Of complex numbers it is PyTorch's, the
        adjoint of the derivative: the cotangent times the conjugate of a complex derivative.

    Raises:
        DTypeError: a primal is no float. ShapeError: a cotangent does not fit the value.

    Example:
        >>> value, pull = vjp(lambda x: x * x, np.array([1.0, 2.0]))
        >>> pull(np.array([1.0, 10.0]))
        (array([ 2., 40.]),)
    """
    name = function_name(function)
    inputs = _Inputs(name, function, primals, {}, tuple(range(len(primals))))
    value, aux = _split(name, inputs.evaluate(function), has_aux)
    leaves, structure = _flat(value)
    outputs = [_floating_output(name, leaf) for leaf in leaves]

    def pull(cotangents: Any) -> tuple[Any, ...]:
        given, found = _flat(cotangents)
        if structure != found:
            raise ArgumentError(
                f"the pull-back of {name}: cotangents with the structure of the value expected "
                f"({structure}), found {found}."
            )
        fitted = [_fitted_cotangent(name, one, output) for one, output in zip(given, outputs)]
        keep = inputs.reach_outside(outputs, fitted)
        return tuple(inputs.results(inputs.pulled(outputs, fitted, keep), keep))

    shown = inputs.shown(value, inputs.reach_outside(outputs))
    return (shown, pull, inputs.shown(aux, False)) if has_aux else (shown, pull)


def jvp(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of a function, and its derivative along tangents.

    Example:
        >>> jvp(lambda x: x * x, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
        (array([1., 4.]), array([ 2., 40.]))
    """
    name = function_name(function)
    if len(primals) != len(tangents):
        raise ArgumentError(
            f"jvp of {name}: a tangent for each primal expected, found {len(tangents)} for {len(primals)}."
        )
    inputs = _Inputs(name, function, tuple(primals), {}, tuple(range(len(primals))))
    value, aux = _split(name, inputs.evaluate(function), has_aux)
    leaves, structure = _flat(value)
    outputs = [_floating_output(name, leaf) for leaf in leaves]
    flat_tangents = [leaf for tangent in tangents for leaf in _flat(tangent)[0]]
    if len(flat_tangents) != len(inputs.leaves):
        raise ArgumentError(f"jvp of {name}: tangents with the structure of the primals expected.")
    along = [_fitted_cotangent(name, one, leaf) for one, leaf in zip(flat_tangents, inputs.leaves)]
    keep = inputs.reach_outside(outputs, along)
    pushed = inputs.pushed(outputs, along, keep)
    filled = [
        of_kind(_zeros(output) if one is None else one, type(output)) for one, output in zip(pushed, outputs)
    ]
    derivative = filled[0] if structure is None else unflatten(structure, filled)
    shown = (inputs.shown(value, keep), inputs.shown(derivative, keep))
    return (*shown, inputs.shown(aux, False)) if has_aux else shown


def jacobian(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The function that computes all derivatives of all elements of a result.

    Args:
        holomorphic: complex results have complex derivatives by complex arguments: those. Without it complex
            arguments need real results, whose gradients are as in `grad`.

    Returns:
        A function of the same arguments. For a result of shape `s` and an argument of shape `a` it gives an
        array of shape `s + a`, nested as the result, then as the argument. Compiled, or of a compiled
        function, it is a loop over the elements of the result or of the argument, whichever are fewer;
        else one pull-back for each element of the result.

    Raises:
        DTypeError: a differentiated argument or a result is no float, or both are complex without
            `holomorphic`.

    Example:
        >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return _derived(function, lambda f: _jacobian(f, argnums, has_aux, holomorphic), "jacobian", argnums)


jacrev = jacobian


def hessian(function: Function, argnums: Argnums = 0) -> Function:
    """The function that computes all second derivatives of a scalar function: the jacobian of its gradient.

    Example:
        >>> hessian(lambda x: (x ** 3).sum())(np.array([1.0, 2.0]))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    return jacobian(grad(function, argnums), argnums)


# --- from a function to its gradient ----------------------------------------------------------------------


def _jacobian(function: Function, argnums: Argnums, has_aux: bool, holomorphic: bool) -> Function:
    name = function_name(function)

    @functools.wraps(function)
    def all_derivatives(*args: Any, **kwargs: Any) -> Any:
        inputs = _Inputs(name, function, args, kwargs, argnums)
        value, aux = _split(name, inputs.evaluate(function), has_aux)
        leaves, structure = _flat(value)
        outputs = [_floating_output(name, leaf) for leaf in leaves]
        inputs.require_complex(outputs, holomorphic)
        keep = inputs.reach_outside(outputs)
        rows = [inputs.results(row, keep) for row in inputs.derivatives(outputs, keep)]
        found = [row if inputs.several else row[0] for row in rows]
        result = found[0] if structure is None else unflatten(structure, found)
        return (result, inputs.shown(aux, False)) if has_aux else result

    return all_derivatives


def _derived(
    function: Function, derive: Callable[[Function], Function], suffix: str, argnums: Argnums
) -> Function:
    """`derive(function)`; compiled if the function is."""
    if not callable(function):
        raise ArgumentError(f"{suffix}: expected a function, found {type(function).__name__} {function!r}.")
    inner = function.__wrapped__ if isinstance(function, CompiledFunction | CompiledMethod) else function
    derived = functools.wraps(inner)(derive(inner))
    derived.__name__ = f"{function_name(inner)}_{suffix}"
    derived.__dict__["differentiated"] = _as_tuple(argnums)
    if isinstance(function, CompiledFunction | CompiledMethod):
        return function.transformed(derived, derived.__name__, _as_tuple(argnums))
    return derived


def _value_and_grad(function: Function, argnums: Argnums, has_aux: bool, holomorphic: bool) -> Function:
    name = function_name(function)

    @functools.wraps(function)  # by which the arrays that the function reaches are found
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        inputs = _Inputs(name, function, args, kwargs, argnums)
        value, aux = _split(name, inputs.evaluate(function), has_aux)
        output = _single_output(name, value)
        inputs.require_complex([output], holomorphic, of_gradient=True)
        scalar = _as_scalar(output)
        keep = inputs.reach_outside([scalar])
        (slopes,) = inputs.derivatives([scalar], keep)
        found = inputs.results(slopes, keep)
        shown = inputs.shown(output, keep)
        slope = tuple(found) if inputs.several else found[0]
        return ((shown, inputs.shown(aux, keep)), slope) if has_aux else (shown, slope)

    return value_and_gradient


_closed: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
"""By id the aliases of functions that have run: a gradient inside leaves them behind its result."""


@contextmanager
def reopened(leaves: Iterable[Any]) -> Iterator[None]:
    """Inside, functions may close over aliases of a function that has run: its backward pass runs them."""
    known = {id(one): one for one in leaves if id(one) in _closed}
    for key in known:
        del _closed[key]
    try:
        yield
    finally:
        _closed.update(known)


class _Inputs:
    """The arguments of one call, with aliases in the places of those that are differentiated."""

    def __init__(
        self, name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums
    ) -> None:
        self.name = name
        self.recording = is_recording()
        self.several = not isinstance(argnums, int | str)
        self.leaves: list[Tensor] = []
        """The aliases, over all differentiated arguments."""
        self._own: set[int] = set()
        self._behind: list[Any] = []
        """What is on the tape behind the outputs, once it was asked whether they reach outside."""
        self._first_sequence = next_sequence()
        self._layouts: list[tuple[Any, list[bool]]] = []
        changed_args, self._kwargs = list(args), dict(kwargs)
        for place, label in _places(name, function, args, kwargs, argnums):
            holder: Any = self._kwargs if isinstance(place, str) else changed_args
            holder[place] = self._replaced(holder[place], label)
        self._args = tuple(changed_args)

    def evaluate(self, function: Function) -> Any:
        trace = innermost()
        if trace is not None:
            trace.differentiable = True
        try:
            differentiated = differentiating(self.leaves, self._first_sequence)
            with enable_grad(), keeping_saved_values(), differentiated:
                return NumpyProgram(function).run(self._args, self._kwargs)
        finally:
            _closed.update((id(one), one) for one in self.leaves if id(one) in self._own)

    def _replaced(self, value: Any, label: str) -> Any:
        leaves, structure = _flat(value)
        labels = (
            [label] if structure is None else [f"{label}{path_text(path)}" for path in leaf_paths(structure)]
        )
        aliases = [leaf if leaf is None else self._alias(leaf, one) for leaf, one in zip(leaves, labels)]
        self._layouts.append((structure, [one is not None for one in aliases]))
        self.leaves += [one for one in aliases if one is not None]
        return aliases[0] if structure is None else unflatten(structure, aliases)

    def _alias(self, leaf: Any, label: str) -> Tensor:
        if not isinstance(leaf, Tensor | np.ndarray | np.generic | float | int | complex):
            raise ArgumentError(
                f"{self.name}: argument '{label}' is a {type(leaf).__name__}; only tensors, arrays and "
                f"floats can be differentiated.{how_to_pass(leaf) or ' Choose other argnums.'}"
            )
        require_plain_array(leaf, f"{self.name}: argument '{label}'")
        tensor = standing_for(leaf)
        if tensor._value.dtype.kind not in CONTINUOUS:
            raise DTypeError(
                f"{self.name}: argument '{label}' has dtype {tensor._value.dtype}, and only floating or "
                "complex arguments have a gradient. Convert it first, e.g. with .astype(float), or choose "
                "other argnums."
            )
        if self.recording and tensor.requires_grad:
            alias = as_kind(apply(reshape, tensor, shape=tuple(tensor._value.shape)), type(tensor))
        else:
            alias = make(self._own_node(tensor._value), type(tensor))
            alias._requires_grad = True
            self._own.add(id(alias))
        alias._frozen = (
            f"{self.name} writes into its argument '{label}', of which a gradient is taken; write into a "
            "clone() of it"
        )
        return alias

    def _own_node(self, value: Any) -> Any:
        """In a trace a node that leads to the value, so that only what goes through the alias reaches it."""
        if type(value) is not Node:
            return value
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
        elif any(one.is_complex() for one in outputs):
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

    def derivatives(self, outputs: Sequence[Tensor], keep: bool) -> Sequence[Sequence[Tensor | None]]:
        """All derivatives of each output."""
        is_real = not any(one.is_complex() for one in outputs)  # of complex ones the tape takes it
        if is_real and self._graph_shows(outputs):
            return jacobians(outputs, self.leaves, self._outer(outputs, keep))
        return [_all_pulled(output, self.leaves, keep) for output in outputs]

    def pulled(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], keep: bool
    ) -> Sequence[Tensor | None]:
        """The cotangents pulled back to each of the leaves."""
        if self._graph_shows(outputs):
            return gradients(outputs, cotangents, self.leaves, self._outer(outputs, keep))
        return pull_back(outputs, self.leaves, cotangents, create_graph=keep, retain_graph=True)

    def pushed(
        self, outputs: Sequence[Tensor], directions: Sequence[Tensor], keep: bool
    ) -> Sequence[Tensor | None]:
        """The derivative of each output along directions of the leaves: the pull-back of the pull-back."""
        if self._graph_shows(outputs):
            return tangents(outputs, self.leaves, directions, self._outer(outputs, keep))
        with enable_grad():
            cotangents = [_zeros(output).requires_grad_() for output in outputs]
            pulled = pull_back(outputs, self.leaves, cotangents, create_graph=True)
            linear = [(one, tangent) for one, tangent in zip(pulled, directions) if one is not None]
            return pull_back(
                [one for one, _ in linear], cotangents, [one for _, one in linear], create_graph=keep
            )

    def _graph_shows(self, outputs: Sequence[Tensor]) -> bool:
        """Whether this is a trace whose graph shows the derivatives."""
        values = (*outputs, *self.leaves)
        are_nodes = all(type(one._value) is Node for one in values)
        return are_nodes and not have_own_backward(self._behind)

    def _outer(self, outputs: Sequence[Tensor], keep: bool) -> dict[Node, Edge]:
        """What derivatives that are kept depend on besides the arguments, with its place on the tape."""
        return values_behind(outputs, self._first_sequence, self._is_own) if keep else {}

    def _is_own(self, target: Any) -> bool:
        return id(target) in self._own or id(target) in _closed

    def reach_outside(self, outputs: Iterable[Tensor], given: Iterable[Tensor] = ()) -> bool:
        """Whether what is recorded depends on more that requires grad than the aliases, as on `given`."""
        targets = [output.grad_fn or output for output in outputs if output.requires_grad]
        first = self._first_sequence
        self._behind = targets_behind(targets, first)
        return self.recording and (
            any(one.requires_grad for one in given)
            or any(
                target.sequence < first if isinstance(target, GradNode) else not self._is_own(target)
                for target in self._behind
            )
        )

    def results(self, gradients: Sequence[Tensor | None], keep: bool) -> list[Any]:
        """For each differentiated argument its gradient, with zeros for None, in the argument's structure."""
        waiting = iter(zip(gradients, self.leaves))
        found = []
        for structure, present in self._layouts:
            leaves = []
            for is_present in present:
                gradient, alias = next(waiting) if is_present else (None, None)
                if alias is not None and gradient is None:
                    gradient = _zeros(alias)
                if alias is not None:
                    kind = NumpyScalar if isinstance(alias, NumpyScalar) else type(alias)
                    gradient = self._shown_leaf(gradient, keep, kind)
                leaves.append(gradient)
            found.append(leaves[0] if structure is None else unflatten(structure, leaves))
        return found

    def shown(self, value: Any, keep: bool) -> Any:
        """What a caller gets: arrays for arrays; Tensors with a history only if that leads outside."""
        leaves, structure = _flat(value)
        shown = [self._shown_leaf(leaf, keep) for leaf in leaves]
        return shown[0] if structure is None else unflatten(structure, shown)

    def _shown_leaf(self, leaf: Any, keep: bool, kind: type[Tensor] | None = None) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        kind = kind or type(leaf)
        if keep and leaf.requires_grad:  # what the function took from outside leads on
            return of_kind(leaf, kind)
        shown = make(leaf._value, kind) if leaf.requires_grad or type(leaf) is not kind else leaf
        return plain(shown)


# --- small things -----------------------------------------------------------------------------------------


def _as_tuple(argnums: Argnums) -> tuple[int | str, ...]:
    return (argnums,) if isinstance(argnums, int | str) else tuple(argnums)


def _places(
    name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums
) -> list[tuple[int | str, str]]:
    """(position or keyword, name for messages) of each differentiated argument.

    Raises:
        ArgumentError: the call has no such argument.
    """
    try:
        names = [
            one.name
            for one in inspect.signature(function).parameters.values()
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
    except ValueError:  # written in C
        names = []
    found: list[tuple[int | str, str]] = []
    for wanted in _as_tuple(argnums):
        position = names.index(wanted) if isinstance(wanted, str) and wanted in names else wanted
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


def _flat(value: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; the structure of a single leaf is None."""
    return flatten(value) if is_container(value) else ([value], None)


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise OutputError(
            f"{name}: has_aux=True expects a result (value, aux), found {type(result).__name__}. "
            f"Return a pair, or leave has_aux out."
        )
    return result


def _floating_output(name: str, leaf: Any) -> Tensor:
    if isinstance(leaf, float | complex | np.ndarray | np.generic):
        leaf = standing_for(leaf)
    if not isinstance(leaf, Tensor):
        raise OutputError(
            f"{name}: a derivative is taken of a result that is {leaf!r}, of type {type(leaf).__name__}. "
            f"Return floating tensors or arrays, and other results through has_aux=True.{how_to_return(leaf)}"
        )
    if leaf._value.dtype.kind not in CONTINUOUS:
        raise DTypeError(
            f"{name}: a derivative is taken of a result of dtype {leaf._value.dtype}, which has none. Return "
            "a floating result, and others through has_aux=True."
        )
    return leaf


def _single_output(name: str, value: Any) -> Tensor:
    """The result of which a gradient is taken, as `backward()` takes it: of one element, in any shape."""
    if is_container(value):
        raise OutputError(
            f"{name}: a gradient is taken of a result of type {type(value).__name__}; expected one scalar. "
            f"Return (value, aux) with has_aux=True, or use vjp."
        )
    output = _floating_output(name, value)
    if math.prod(output._value.shape) != 1:
        raise OutputError(
            f"{name}: a gradient is taken of a result of shape {tuple(output._value.shape)}; expected a "
            "scalar, or one element. Reduce it, e.g. with .sum() or .mean(), or use vjp or jacobian."
        )
    return output


def _as_scalar(output: Tensor) -> Tensor:
    if not output._value.shape:
        return output
    with enable_grad():
        return apply(reshape, output, shape=())


def _zeros(like: Tensor) -> Tensor:
    value = like._value
    return make(constant(0, value.spec) if isinstance(value, Node) else np.zeros(value.shape, value.dtype))


def _fitted_cotangent(name: str, given: Any, output: Tensor) -> Tensor:
    """A cotangent or tangent as a Tensor of the dtype of what it belongs to.

    Raises:
        ShapeError: it has another shape.
    """
    dtype = output._value.dtype
    cotangent = given if isinstance(given, Tensor) else standing_for(np.asarray(given))
    if cotangent._value.dtype != dtype:
        if cotangent.is_complex() and dtype.kind != "c":
            raise DTypeError(
                f"{name}: a cotangent or tangent of dtype {dtype} expected, found {cotangent._value.dtype}. "
                "Of a real value it must be real: take its .real."
            )
        cotangent = apply(convert, cotangent, dtype=dtype)
    if cotangent._value.shape != output._value.shape:
        raise ShapeError(
            f"{name}: a cotangent or tangent of shape {tuple(output._value.shape)} expected, found "
            f"{tuple(cotangent._value.shape)}. It must have the shape of the value that it belongs to."
        )
    return cotangent


def _all_pulled(output: Tensor, inputs: Sequence[Tensor], keep: bool) -> Sequence[Tensor | None]:
    """For each input the derivatives of all elements of `output`, of shape `output.shape + input.shape`.

    None where a number does not depend on an input.
    """
    if not output.is_complex():
        return _pulled(output, inputs, keep, 1.0)
    pulled = [one if one is None else conjugate(one) for one in _pulled(output, inputs, keep, 1.0)]
    if all(one.is_complex() for one in inputs):
        return pulled
    turned = _pulled(output, inputs, keep, 1j)  # the imaginary part of the derivatives by real arguments
    return [
        one if one is None or other is None or one.is_complex() else apply(complex_of, one, other)
        for one, other in zip(pulled, turned)
    ]


def _pulled(
    output: Tensor, inputs: Sequence[Tensor], keep: bool, direction: complex
) -> Sequence[Tensor | None]:
    """What is pulled back of each element of `output`, changed in a direction."""
    shape = tuple(output._value.shape)
    if not shape:
        one = make(np.asarray(direction, output._value.dtype)) if output.is_complex() else None
        return pull_back([output], inputs, [one], create_graph=keep, retain_graph=output.is_complex() or None)
    size = math.prod(shape)
    basis = (direction * np.eye(size, dtype=output._value.dtype)).reshape(size, *shape)
    rows = [pull_back([output], inputs, [make(one)], create_graph=keep, retain_graph=True) for one in basis]
    found: list[Tensor] = []
    for position, variable in enumerate(inputs):
        own = tuple(variable._value.shape)
        parts = [row[position] for row in rows]
        filled = [_zeros(variable) if part is None else part for part in parts]
        if not filled:
            found.append(make(np.zeros(shape + own, variable._value.dtype)))
            continue
        stacked = apply(concatenate, *[apply(reshape, one, shape=(1, *own)) for one in filled], dim=0)
        found.append(apply(reshape, stacked, shape=shape + own))
    return found
