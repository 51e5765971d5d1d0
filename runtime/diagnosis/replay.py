"""A graph run again, value by value, with NumPy: where values stop being finite, and what if they did not.

A `Fault` is a value some of whose elements are not finite although nothing that they are made of is to blame:
inf or nan of finite operands, nan of operands none of which is nan. A replay may repair such elements: it
writes a finite number in their place and goes on, so that what follows shows faults of its own only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...tracer.draw_order import NOTHING, drawing_nothing
from ...tracer.graph import Graph, Node
from ...tracer.loop import LoopNode, is_loop
from ...tracer.ops.control import ALL, ruled, run_body
from ...tracer.ops.foreign import draw, foreign
from ...tracer.quiet import Quiet
from ...tracer.records import record

Site = tuple[tuple[Node, ...], tuple[int, ...]]
"""A node, behind the loops and calls that it is inside of, and which step of each loop it is."""
REPAIRED = 0.7390851332151607
"""A number that no formula makes special."""
_quiet = Quiet()


@record(frozen=True, eq=False)
class Fault:
    """Elements of a value that are the first not to be finite."""

    site: Site
    positions: np.ndarray
    """In the flattened value, in order."""
    value: np.ndarray
    operands: tuple[Any, ...]

    @property
    def node(self) -> Node:
        return self.site[0][-1]


class Stopped(Exception):
    """What a site calls has raised."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site


Treatment = Callable[[Site, Any, Sequence[Any]], Any]
"""From a site, its value and its operands to the value that is used."""
Repairs = Mapping[Site, np.ndarray]
"""Of the values of some sites the positions of elements."""


def _unchanged(site: Site, value: Any, operands: Sequence[Any]) -> Any:
    return value


class Replay:
    """Runs of one call of a graph, all of which take the way of the first, and draw what it has drawn.

    Args:
        graph: as it was traced: nothing needs to have a form in code.
        arrays: its inputs.
        states: of the streams that it draws from, as they were before the call.

    Raises:
        Stopped: something in it raises.
    """

    def __init__(self, graph: Graph, arrays: Sequence[Any], states: Mapping[Any, Any]) -> None:
        self.graph = graph
        self.arrays = [np.asarray(one) for one in arrays]
        self._trips: dict[Site, int] = {}
        self._drawn: dict[Site, Any] = {}
        self._treat: Treatment = _unchanged
        with drawing_nothing(states):
            for stream, state in states.items():
                stream.set_state(state)
            self.plain = self._run(_unchanged)
            """The outputs as they are."""

    def faults(self) -> tuple[list[Fault], tuple[Any, ...]]:
        """All faults in the order in which they arise, each repaired at once, and the outputs that remain."""
        found: list[Fault] = []

        def repaired(site: Site, value: Any, operands: Sequence[Any]) -> Any:
            bad = _new_faults(site[0][-1], value, operands)
            if bad is None:
                return value
            found.append(Fault(site, np.flatnonzero(bad), value, tuple(operands)))
            return np.where(bad, value.dtype.type(REPAIRED), value)

        return found, self._run(repaired)

    def repaired(self, repairs: Repairs, seen: Treatment = _unchanged) -> tuple[Any, ...]:
        """The outputs where these elements are finite; `seen` gets every value before it is repaired."""

        def repaired(site: Site, value: Any, operands: Sequence[Any]) -> Any:
            seen(site, value, operands)
            positions = repairs.get(site)
            if positions is None:
                return value
            changed = value.copy()
            changed.reshape(-1)[positions] = REPAIRED
            return changed

        return self._run(repaired)

    # --- one run ------------------------------------------------------------------------------------------

    def _run(self, treat: Treatment) -> tuple[Any, ...]:
        self._treat = treat
        inputs = self.graph.inputs
        given = [treat(((node,), ()), value, ()) for node, value in zip(inputs, self.arrays)]
        return _quiet.run(self._outputs, self.graph, given, ((), ()))

    def _outputs(self, graph: Graph, values: Sequence[Any], around: Site) -> tuple[Any, ...]:
        known: dict[Node, Any] = dict(zip(graph.inputs, values, strict=True))
        nodes, steps = around
        for node in graph.nodes:
            if node not in known:
                site = (*nodes, node), steps
                operands = [known[operand] for operand in node.operands]
                try:
                    value = self._value(site, operands)
                except Stopped:
                    raise
                except Exception as error:
                    raise Stopped(site) from error
                known[node] = self._treat(site, value, operands)
        return tuple(known[output] for output in graph.outputs)

    def _value(self, site: Site, operands: Sequence[Any]) -> Any:
        node = site[0][-1]
        if is_loop(node):
            return self._loop(site, operands)
        if node.operator is ruled:
            return self._outputs(node.attributes["body"].graph, operands, site)[node.attributes["index"]]
        if node.operator is draw:
            if node.attributes["function"].stream is None:  # called for its effect, once
                return NOTHING
            if site not in self._drawn:
                self._drawn[site] = foreign.evaluate(*operands, **node.attributes)
            return self._drawn[site]
        return np.asarray(node.operator.evaluate(*operands, **node.attributes))

    def _loop(self, site: Site, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results of a loop, which takes as many steps as in the first run."""
        nodes, steps = site
        made = LoopNode(nodes[-1])
        attributes = dict(made.node.attributes)
        count = made.length if made.trips is None else int(operands[-1])
        if made.is_dynamic and site in self._trips:
            count = self._trips[site]
            attributes.update(trips=ALL, length=count)
            operands = operands[: len(made.body.inputs)]
        numbers = itertools.count()

        def step(body: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
            number = next(numbers)
            place = count - 1 - number if made.backwards else number
            return self._outputs(body, [*map(np.asarray, values)], (nodes, (*steps, place)))

        results = run_body(*operands, **attributes, run=step)
        self._trips.setdefault(site, next(numbers))
        return results


def _new_faults(node: Node, value: Any, operands: Sequence[Any]) -> np.ndarray | None:
    """Which elements are not finite and are not what they are made of; None if there are none.

    No operand holds a nan: whatever made one is a fault, and is repaired. An inf may be an input, a constant.
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or np.isfinite(value).all():
        return None
    bad = np.isnan(value)
    floats = [one for one in operands if isinstance(one, np.ndarray) and one.dtype.kind == "f"]
    if node.operator.family == "elementwise" and floats:
        made_of_finite = np.logical_and.reduce(np.broadcast_arrays(bad, *map(np.isfinite, floats))[1:])
        bad = bad | (np.isinf(value) & made_of_finite)
    elif node.operands and all(np.isfinite(one).all() for one in floats):
        bad = ~np.isfinite(value)
    return bad if bad.any() else None
