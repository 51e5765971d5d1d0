"""What a compiled function shows of itself: generated source, graph, and an account of what was decided.

Nothing here runs the function's kernels; what is not traced yet is traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from ...tracer.errors import ArgumentError, EagerOnlyError, GradientError
from ...tracer.graph import Graph, Node
from ...tracer.origin import Origin
from ...tracer.records import record
from ..tracing.signature import conform, spec_of_leaf
from ..tracing.traced import Traced
from ..values.flatten import flatten, is_container, unflatten
from ..values.modes import enable_grad
from ..values.tensor import Tensor, make
from ..values.value_kinds import kind_of_value
from .paths import Paths
from .siblings import Path
from .variant import TapePair, Variant

if TYPE_CHECKING:
    from ...codegen.account import Account
    from ...codegen.pipeline import Pair, Program


@record(frozen=True)
class Known:
    """What a call runs: the trace, its programs in their order, and the paths it is one of."""

    traced: Traced
    programs: tuple[Variant, ...]
    paths: Paths | None = None

    @property
    def is_gradient(self) -> bool:
        """Whether the graph holds a gradient already, as that of `value_and_grad`: one fused function."""
        return any(node.origin.is_backward for node in self.traced.graph.nodes)

    @classmethod
    def of_variant(cls, variant: Variant) -> Known:
        return cls(variant.traced, (variant,))

    @classmethod
    def of_path(cls, paths: Paths, path: Path) -> Known:
        return cls(path.traced, tuple(paths.programs(path)), paths)


@record(frozen=True)
class Backward:
    """A backward function: what it is handed, and what was decided for it."""

    account: Account
    handed_over: tuple[str, ...]
    """The inputs, results and further values that the forward function hands to it, and why, line by line."""

    def __str__(self) -> str:
        from ...codegen.writing.explain import explain

        return "\n".join((*self.handed_over, explain(self.account)))


@record(frozen=True)
class Explanation:
    """How a compiled function runs for some arguments; printed, it is what `explain()` says."""

    name: str
    notes: tuple[str, ...]
    """Arguments, captured arrays, constants of the trace and known paths, line by line."""
    forward: tuple[Account, ...]
    """Of the functions that compute the result, in their order: several where values decide."""
    backward: tuple[Backward, ...]
    """Of the functions that compute the gradient, if `forward` does not."""

    def __str__(self) -> str:
        from ...codegen.writing.explain import explain

        return "\n".join((*self.notes, *map(explain, self.forward), *map(str, self.backward)))


class Lines(str):
    """Text of several lines, which IPython shows as such."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text, not its literal."""
        printer.text(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


class Source(Lines):
    """Generated source: text, which a notebook shows highlighted, beside the user's lines.

    Attributes:
        programs: those whose source it is.
    """

    programs: tuple[Program, ...]
    origin: Origin

    @classmethod
    def of(cls, text: str, known: Known, programs: Iterable[Program]) -> Source:
        """The source of some of the programs of a call."""
        made = cls(text)
        made.programs, made.origin = tuple(dict.fromkeys(programs)), known.traced.graph.origin
        return made

    def _repr_html_(self) -> str:
        from ..notebooks.page import page  # not at start

        return page("", self.programs, self.origin)


class Inspection:
    """The methods that a compiled function and a compiled method share."""

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
        raise NotImplementedError

    def variant_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Variant, Sequence[Any]]:
        """The whole of the path of a call as one program, or a forward and a backward one, and its leaves.

        The gradient is with respect to all floats, if none is asked for, and there is one.
        """
        raise NotImplementedError

    def _latest(self) -> Known | None:
        """What was traced latest, if anything was."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """In notebooks: the code that the latest new kind of call has made, beside the user's lines."""
        from ..notebooks.page import page, place_of  # not at start

        known, origin = self._latest(), place_of(self.__wrapped__)  # type: ignore[attr-defined]
        if known is None:
            return page(repr(self), (), origin, "It has not been called yet, so there is no code.")
        return page(repr(self), _all_generated(known.programs), origin)

    def _latest_source(self) -> Source | None:
        """The code of the latest new kind of call, with its gradient; None before any."""
        known = self._latest()
        if known is None:
            return None
        programs = [program for one in known.programs for program in _with_gradient(one, known.is_gradient)]
        return Source.of(_joined(one.source for one in programs), known, programs)

    def forward_source(self, *args: Any, **kwargs: Any) -> Source:
        """The generated Python that computes the result for such arguments.

        Where a gradient is asked for, it also saves what the backward function needs.
        """
        known = self._known_for(args, kwargs)
        programs = [one.forward for one in known.programs]
        return Source.of(_joined(one.source for one in programs), known, programs)

    def backward_source(self, *args: Any, **kwargs: Any) -> Source:
        """The generated Python of the gradient, for such arguments.

        With respect to the tensors that require grad; of all floating arrays if none does.

        Raises:
            ArgumentError: there are no arguments, and the latest code is that of a gradient already.
            GradientError: no result depends on a floating argument in a differentiable way.
        """
        known = self._known_for(args, kwargs)
        pairs = [one.pair for one in self._differentiated(known, args, kwargs) if one.differentiable]
        if not pairs and known.is_gradient:
            raise ArgumentError(
                f"{known.traced.name} computes a gradient in one function with the value: source() shows it. "
                "The backward function of a function itself takes arguments: backward_source(...)."
            )
        if not pairs:
            inputs = ", ".join(f"{node.name}: {node.spec}" for node in known.traced.graph.inputs)
            raise GradientError(
                f"{known.traced.name} has no gradient for ({inputs}): no floating result depends on a "
                "floating argument in a differentiable way. Pass floating arrays, e.g. with .astype(float)."
            )
        programs = [pair.backward for pair in reversed(pairs)]
        return Source.of(_joined(one.source for one in programs), known, programs)

    def source(self, *args: Any, **kwargs: Any) -> Source:
        """The generated Python for such arguments: forward, and backward where there is a gradient.

        Without arguments it is the code that the latest new kind of call has made, or, before any, that of
        what `grad` and its kin have made of the function. Where values decide, the
        path of these arguments is first, and the other known ones follow. What several paths begin with is
        shown once.
        """
        known = self._known_for(args, kwargs)
        shown = known.programs if known.is_gradient else self._differentiated(known, args, kwargs)
        own = _joined(map(_source, shown))
        if known.paths is None:
            return Source.of(own, known, _all_generated(shown))
        found = [f"# The path of these arguments\n{_commented(known.traced)}\n{own}"]
        for path in known.paths.paths:
            if path.traced is not known.traced:
                others = [one for one in known.paths.programs(path) if one not in shown]
                shown = (*shown, *others)
                found.append(f"# Another path\n{_commented(path.traced)}\n{_joined(map(_source, others))}")
        return Source.of("\n\n".join(found), known, _all_generated(shown))

    def c_source(self, *args: Any, **kwargs: Any) -> str:
        """What `source` shows, as one file of C11: serial, with libm, and a CBLAS for products of matrices.

        For each program there is a function that takes the addresses of its inputs and outputs, in the shapes
        of these arguments; those that it calls serve other shapes as well. What is handed out as it is given,
        an input or a constant, is no output of it.

        Example:
            >>> print(CompiledFunction(lambda x: 2 * x).c_source(np.ones(3)))  # doctest: +ELLIPSIS
            // Compile with cc -std=c11 ...
        """
        from ...codegen.program import c_source  # which takes llvmlite

        known = self._known_for(args, kwargs)
        shown = known.programs if known.is_gradient else self._differentiated(known, args, kwargs)
        return c_source(_all_generated(shown))

    def _differentiated(self, known: Known, args: Any, kwargs: Any) -> tuple[Variant, ...]:
        """The programs with respect to all floats, if they are to none; as they are if no gradient exists."""
        if any(one.wrt for one in known.programs):
            return known.programs
        try:
            with enable_grad():
                return self._known_for(*asking_for_gradients(args, kwargs)).programs
        except GradientError:  # it writes into an argument that would require one
            return known.programs

    def programs(self, *args: Any, **kwargs: Any) -> tuple[Program, ...]:
        """The generated programs that compute the result for such arguments, in their order.

        There are several where values decide. Each has `source`, `graph`, `account` and `run_uncompiled`.

        Example:
            >>> (program,) = CompiledFunction(lambda x: 2 * x).programs(np.ones(2))
            >>> program.run_uncompiled([np.ones(2)])
            (array([2., 2.]),)
        """
        return tuple(one.forward for one in self._known_for(args, kwargs).programs)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The traced graph for such arguments; it prints as text, one operator a line."""
        return self._known_for(args, kwargs).traced.graph

    @overload
    def explain(self, *args: Any, as_data: Literal[False] = False, **kwargs: Any) -> str: ...

    @overload
    def explain(self, *args: Any, as_data: Literal[True], **kwargs: Any) -> Explanation: ...

    def explain(self, *args: Any, as_data: bool = False, **kwargs: Any) -> str | Explanation:
        """How the function runs for such arguments: inputs, loops, what is saved, what is a constant.

        Where values decide, it lists the known paths with their guards, and how often each has run.

        Args:
            as_data: give what the text says as data, e.g. `.forward[0].arrays`.

        Example:
            >>> double = CompiledFunction(lambda x: 2 * x)
            >>> double.explain(np.ones(3), as_data=True).forward[0].statements[0].reason
            'an output'
        """
        known = self._known_for(args, kwargs)
        pairs = () if known.is_gradient else self._differentiated(known, args, kwargs)
        found = Explanation(
            known.traced.name,
            (*_input_lines(known.traced), *_path_lines(known)),
            tuple(one.forward.account for one in known.programs),
            tuple(_backward(one, one.pair) for one in pairs if one.differentiable),
        )
        return found if as_data else Lines(found)


def asking_for_gradients(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments, with stand-ins of their kinds that require grad for floating arrays."""

    def asking(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray | np.generic | Tensor) and spec_of_leaf(leaf).is_float:
            return make(conform(leaf), kind_of_value(leaf)).requires_grad_()
        return leaf

    def changed(value: Any) -> Any:
        if not is_container(value):
            return asking(value)
        leaves, structure = flatten(value)
        return unflatten(structure, [asking(leaf) for leaf in leaves])

    return tuple(map(changed, args)), {name: changed(value) for name, value in kwargs.items()}


def _input_lines(traced: Traced) -> list[str]:
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


def _path_lines(known: Known) -> list[str]:
    """The known paths, each with its guards."""
    paths = known.paths
    if paths is None:
        return []
    lines = [f"values decide: {len(paths.paths)} of at most {paths.function.max_paths} paths are known"]
    for path in paths.paths:
        this = ", that of these arguments" if path.traced is known.traced else ""
        calls = "1 call" if path.calls == 1 else f"{path.calls:,} calls"
        lines += [f"  path of {calls}{this}", *(f"    {line}" for line in path.traced.guards.lines())]
    return lines


def _generated(variant: Variant) -> tuple[Program, ...]:
    """The programs of a variant: one, or those of its forward and its backward function."""
    return (variant.pair.forward, variant.pair.backward) if variant.differentiable else (variant.forward,)


def _all_generated(variants: Iterable[Variant]) -> list[Program]:
    return [program for one in variants for program in _generated(one)]


def _with_gradient(variant: Variant, is_gradient: bool) -> tuple[Program, ...]:
    """The programs of a variant; where no gradient was asked for, those with respect to all floats."""
    from ...codegen.pipeline import build_pair  # not at start

    graph = variant.traced.graph
    floats = tuple(position for position, node in enumerate(graph.inputs) if node.spec.is_float)
    if variant.wrt or is_gradient or not floats:
        return _generated(variant)
    try:
        pair = build_pair(graph, floats, variant.options)
    except (EagerOnlyError, GradientError):  # it has none in code
        return _generated(variant)
    return (pair.forward, pair.backward) if any(pair.connected) else _generated(variant)


def _source(variant: Variant) -> str:
    *others, last = _generated(variant)
    return "".join(f"{one.source.rstrip()}\n\n\n" for one in others) + last.source


def _joined(sources: Iterable[str]) -> str:
    return "\n\n".join(sources)


def _commented(traced: Traced) -> str:
    return "\n".join(f"#   {line}" for line in traced.guards.lines())


def _backward(variant: Variant, pair: Pair | TapePair) -> Backward:
    return Backward(pair.backward.account, tuple(_saved_lines(variant, pair)))


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
