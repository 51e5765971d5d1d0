"""Solutions of equations as functions of all that the equations depend on: the implicit function theorem.

How a solution was found does not matter for its derivatives. Where F(x, p) = 0, a cotangent g of x is that of
p under F, pulled back from the solution of (dF/dx)^T l = -g. So any solver will do, also one of Python's, and
derivatives of all orders follow, as that rule is made of functions that have derivatives.

Functions are closures: what they depend on is found by running them. In a trace they become graphs, whose
further inputs that is, and the call is a node with a rule (`ruled_calls.py`). Else the tape shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.graph import constant
from ...tracer.interpret import evaluate_graph
from ...tracer.ops.control import Body
from ...tracer.origin import current_origin
from ...tracer.records import record
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import is_tracing
from ..autograd.foreign_calls import call_python
from ..autograd.rules import RuledCall
from ..autograd.traced_rules import TracedCall
from ..captures.standing_names import Variables, standing, standing_now
from ..functions.loops.checkpointing import Segment, around, restored_leaf, saved_leaf
from ..functions.stopping import stop_gradient
from ..functions.structures import spec_of_tensor
from ..tape.apply import wrap
from ..tape.bodies import BodyInput, as_tensor, outer_edges, trace_body
from ..transforms.inputs import reopened
from ..transforms.transforms import vjp
from ..values.differentiated import are_any_differentiated
from ..values.flatten import flatten
from ..values.modes import enable_grad, is_recording, no_grad
from ..values.nodes import FREED, Edge, GradNode, edge_of, next_sequence
from ..values.saved import keeping_saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary

OfVector = Callable[[Tensor], Tensor]


@record(frozen=True, eq=False)
class Equation:
    """An equation whose solution is looked for.

    Attributes:
        owner: the public function that solves it, by whose name messages call it.
        function: of a vector; it may close over what has gradients.
        residual: from `function`, or the like of it, to what is zero at the solution, of as many elements.
        solve: from `function` and a vector to begin with to the solution; Tensors without gradient.
        adjoint: from `residual`, the solution and a cotangent of it to the solution of the adjoint equation.
        by_python: whether `solve` takes and gives arrays alone, and in compiled code is called as it is.
        settings: what tells such a `solve` from others of its owner, for equations alike; hashable. None: it
            is like no other.
    """

    owner: Any
    function: OfVector
    residual: Callable[[OfVector], OfVector]
    solve: Callable[[Any, Any], Any]
    adjoint: Callable[[OfVector, Tensor, Tensor], Tensor]
    by_python: bool = False
    settings: Any = None

    @property
    def name(self) -> str:
        return str(self.owner.__name__)


def solution_of(equation: Equation, start: Tensor) -> Tensor:
    """The solution that is found from `start`, a vector, differentiable by what the function closes over."""
    start = stop_gradient(start)
    if is_tracing():
        return _Traced(equation, start).solution()
    with no_grad():
        if equation.by_python:
            found = make(np.asarray(equation.solve(equation.function, start.payload)), Auxiliary)
        else:
            found = equation.solve(equation.function, start)
    return _recorded(equation, make(found.payload, Auxiliary)) if is_recording() else found


# --- on the tape ------------------------------------------------------------------------------------------


def _recorded(equation: Equation, solution: Tensor) -> Tensor:
    """The solution, with a node of the tape if the function closes over what has a gradient."""
    function = around(equation.function, saved_leaf)
    first = next_sequence()
    with enable_grad():
        edges = outer_edges([equation.function(make(solution.payload, Auxiliary))], first)
    if not edges:
        if are_any_differentiated():  # a derivative of 0 is right where the adjoint equation has a solution
            # which has an adjoint equation of its own; one that makes a number of its unknown has none to ask
            with no_grad(), suppress(GradientError):
                equation.adjoint(equation.residual(equation.function), solution, 0.0 * solution)
        return solution
    node = SolutionBackward(equation, function, solution, edges)
    solution._grad_fn, solution._output_nr, solution._requires_grad = node, 0, True
    return solution


class SolutionBackward(GradNode):
    """The tape's node of a solution; its edges lead to what the function closes over."""

    __slots__ = ("equation", "function", "standing", "value")

    def __init__(
        self, equation: Equation, function: OfVector, solution: Tensor, edges: Sequence[Edge]
    ) -> None:
        super().__init__(edges)
        self.equation = equation
        self.function: OfVector | None = function
        self.value = solution.payload
        self.standing = standing_now()

    def name(self) -> str:
        return f"{self.equation.name}Backward"

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.function is None:
            raise GradientError(FREED)
        solution = make(self.value, Auxiliary)
        if create_graph:
            solution._grad_fn, solution._output_nr, solution._requires_grad = self, 0, True
        edges = [edge for edge in self.edges if edge is not None]
        inside = Segment(create_graph, [*edges, (self, 0)])
        reached = reopened(target for target, _ in edges)
        with standing(Variables(self.standing)), reached, keeping_saved_values():
            residual = self.equation.residual(around(self.function, restored_leaf))
            adjoint = self.equation.adjoint(residual, solution, wrap(cotangents[0]))
            with enable_grad():
                root = edge_of(residual(solution))
            if root is not None:
                inside.run([root], [adjoint if create_graph else adjoint.payload])
        return [None if edge is None else inside.caught_at(edge) for edge in self.edges]

    def release(self) -> None:
        self.function, self.standing = None, ()


# --- in a trace -------------------------------------------------------------------------------------------


class _Closure:
    """A function of a vector as a graph, whose further inputs are what it closes over."""

    def __init__(self, name: str, function: OfVector, like: Tensor) -> None:
        inputs = [BodyInput(spec_of_tensor(like), "x")]
        body = trace_body(name, lambda given: [function(given[0])], inputs)
        self.graph = body.graph(name, current_origin())
        self.captured = body.constants

    def differentiable(self) -> list[int]:
        """The places of what it closes over that the function has a derivative by."""
        places = [
            place for place, one in enumerate(self.captured) if spec_of_tensor(one).dtype.kind in CONTINUOUS
        ]
        if self._has_derivative(places):
            return places
        return [place for place in places if self._has_derivative([place])]

    def _has_derivative(self, places: Sequence[int]) -> bool:
        from ...codegen.derivatives.differentiate import differentiate  # not at start

        (output,) = self.graph.outputs
        inputs = [self.graph.inputs[1 + place] for place in places]
        try:
            differentiate(inputs, {output: constant(1, output.spec)})
        except GradientError:
            return False
        return True

    def given(self, captured: Sequence[Any]) -> OfVector:
        """The function with other values in the place of these."""

        def function(vector: Any) -> Any:
            (found,) = evaluate_graph(self.graph, [vector, *captured])
            return found if isinstance(found, np.ndarray) else as_tensor(found)

        return function


def without_gradient(name: str, function: OfVector, like: Tensor) -> OfVector:
    """The function, of which what it closes over is a constant."""
    if not is_tracing():
        return function
    closure = _Closure(name, function, like)
    return closure.given([stop_gradient(one) for one in closure.captured])


class _Traced:
    """A solution in a trace: what the function closes over becomes arguments of a call with a rule.

    But for what the function has no derivative by, as where a rule of the user's reads it: the call takes
    that from outside, so that only a gradient of it is refused.
    """

    def __init__(self, equation: Equation, start: Tensor) -> None:
        self.equation = equation
        self.start = start
        self.closure = _Closure(equation.name, equation.function, start)
        self.places = self.closure.differentiable()

    def solution(self) -> Tensor:
        if not self.closure.captured:
            return self._forward()[0]
        call = self._call()
        found: Tensor = TracedCall(call, *flatten(call.arguments)).result()
        return found

    def _call(self) -> RuledCall:
        return RuledCall(
            self.equation.owner,
            self.equation.name,
            tuple(self.closure.captured[place] for place in self.places),
            lambda *given: self._forward(*given)[0],
            self._forward,
            self._backward,
            self._call,
        )

    def _captured(self, given: Sequence[Any]) -> list[Any]:
        """All that the function closes over, the arguments of the call as they are given."""
        captured = list(self.closure.captured)
        for place, one in zip(self.places, given):
            captured[place] = one
        return captured

    def _forward(self, *given: Any) -> tuple[Any, Any]:
        captured = self._captured(given)
        with no_grad():
            if self.equation.by_python:
                found = self._by_python(captured)
            else:
                found = self.equation.solve(self.closure.given(captured), self.start)
        return found, (found, given)

    def _by_python(self, captured: Sequence[Tensor]) -> Tensor:
        def run(start: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
            return [np.asarray(self.equation.solve(self.closure.given(arrays), start))]

        graph, settings = self.closure.graph, self.equation.settings
        operands = [self.start, *captured]
        (found,) = call_python(
            self.equation.owner,
            graph if settings is None else (Body(graph).structure_of_any_sizes, settings),
            self.equation.name,
            run,
            operands,
            [spec_of_tensor(self.start)],
        )
        return found

    def _backward(self, residuals: Any, cotangent: Tensor) -> Sequence[Any]:
        solution, given = residuals
        residual = self.equation.residual(self.closure.given(self._captured(given)))
        adjoint = self.equation.adjoint(residual, solution, cotangent)
        if not given:
            return ()

        def at_solution(*values: Any) -> Tensor:
            return self.equation.residual(self.closure.given(self._captured(values)))(solution)

        _, pull = vjp(at_solution, *given)
        zero = 0.0 * adjoint.sum()  # so that the adjoint equation is looked at for derivatives of 0, too
        return [one + zero for one in pull(adjoint)]
