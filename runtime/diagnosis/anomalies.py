"""Which value of a compiled function is the first not to be finite, of those that its results suffer from.

Not every inf is an anomaly: `np.where(x > 0, np.log(x), 0.0)` may well compute some. So a call counts whose
results or gradients are not finite; then it is run again, value by value (`replay.py`). Of all faults that
one is named whose repair, with that of all after it, leaves the results finite, and without it no longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ...tracer.errors import AnomalyError
from ...tracer.graph import Graph, Node
from .replay import Fault, Replay, Site, Stopped

Masks = list[np.ndarray]


def are_finite(values: Sequence[Any]) -> bool:
    """Whether no floating element is nan or inf."""
    return not any(mask.any() for mask in _masks(values))


def diagnose(
    name: str,
    graph: Graph,
    arrays: Sequence[Any],
    wanted: slice,
    given: Sequence[Node],
    states: Mapping[Any, Any] = MappingProxyType({}),
) -> None:
    """Raise AnomalyError where outputs of a graph are not finite, and something in it is to blame.

    An inf that was written down, and one that follows from it, is none: `np.where(inside, density, -np.inf)`.

    Args:
        name: of the function.
        graph: as it was traced.
        arrays: its inputs in the call.
        wanted: which outputs.
        given: which inputs the caller gives; others are constants of the function.
        states: of the streams that it draws from, before the call.
    """
    replay = Replay(graph.with_outputs(graph.outputs[wanted]), arrays, states)
    if are_finite(replay.plain):
        raise AnomalyError(
            f"{name}: a result is not finite, and computed value by value with NumPy it is: fused code adds "
            "and rounds in another order, so that something overflows there. Scale the values, or compute in "
            "float64."
        )
    _name_what_is_to_blame(name, replay, given)


def diagnose_failure(
    name: str, graph: Graph, arrays: Sequence[Any], given: Sequence[Node], states: Mapping[Any, Any]
) -> None:
    """Raise AnomalyError where the call has raised because of values that were not finite already.

    Args:
        as those of `diagnose`.
    """
    try:
        Replay(graph, arrays, states)
    except Stopped as stopped:
        operands = stopped.site[0][0].operands
        _name_what_is_to_blame(name, Replay(graph.with_outputs(operands), arrays, states), given)


def _name_what_is_to_blame(name: str, replay: Replay, given: Sequence[Node]) -> None:
    """Raise AnomalyError where outputs are not finite, if that was not written down."""
    try:
        faults, rest = replay.faults()
    except Stopped as stopped:
        raise AnomalyError(
            f"{name}: a result is not finite. Which line is to blame is not known: what is called at "
            f"{stopped.site[0][-1].origin.place} raises {stopped.__cause__!r} where all before is finite."
        ) from None
    targets = [bad & ~other for bad, other in zip(_masks(replay.plain), _masks(rest))]
    if not any(one.any() for one in targets):
        _name_input(name, replay, given)
        return
    fault, position, before = _first_to_blame(replay, faults, targets)
    runs = _Runs(fault.site)
    replay.repaired(before, runs.see)
    raise _anomaly(name, fault.site, position, runs.value, runs.operands, runs.number)


class _Runs:
    """What a site is given, and how often its line has run before; both seen while a graph is run again."""

    def __init__(self, wanted: Site) -> None:
        self.wanted = wanted
        self.value, self.operands = np.zeros(()), ()
        self._origin = wanted[0][-1].origin
        self._operator = wanted[0][-1].operator
        self._line = replace(self._origin, rule="")
        self._forward: Counter[int] = Counter()
        """How often each place of the line has run that calls the operator: one place may call it twice."""
        self._same = self._before = 0
        """Of the values that rules make like this one, all, and those before it."""

    def see(self, site: Site, value: Any, operands: Sequence[Any]) -> None:
        node = site[0][-1]
        if site == self.wanted:
            self.value, self.operands, self._before = value, tuple(operands), self._same
            self._ran = self._forward[id(node.origin)]
        if node.operator is self._operator and node.origin == self._origin:
            self._same += 1
        called = self._origin.rule or self._operator.name
        if node.operator.name == called and node.origin == self._line:
            self._forward[id(node.origin)] += 1

    @property
    def number(self) -> int | None:
        """Which run of the line it is; None where it runs once, or that cannot be told."""
        total = sum(self._forward.values())
        if max(self._forward.values(), default=0) <= 1:
            return None
        if not self._origin.rule:
            return self._ran
        if self._same % total:
            return None
        back = self._before // (self._same // total)
        return (total - 1 - back) // len(self._forward)


def _masks(values: Sequence[Any]) -> Masks:
    """Of each value, which elements are nan or inf."""
    arrays = map(np.asarray, values)
    return [~np.isfinite(one) if one.dtype.kind in "fc" else np.zeros(one.shape, bool) for one in arrays]


def _first_to_blame(
    replay: Replay, faults: Sequence[Fault], targets: Masks
) -> tuple[Fault, int, dict[Site, np.ndarray]]:
    """A fault, the position of its first element to blame, and the repairs without which nothing was wrong.

    By bisection, for the fault, then for the element: with what comes before left as it is, the results are
    finite where all else is repaired, and not if it is left too.
    """

    def repairs(fault: int, element: int) -> dict[Site, np.ndarray]:
        """From an element of a fault on."""
        found = {one.site: one.positions for one in faults[fault + 1 :]}
        return {**found, faults[fault].site: faults[fault].positions[element:]}

    def suffers(fault: int, element: int) -> bool:
        """Whether results do, if the elements before this one are left as they are."""
        try:
            outputs = replay.repaired(repairs(fault, element))
        except Exception:  # Python has been called with what it has never got
            return False
        return any((bad & target).any() for bad, target in zip(_masks(outputs), targets))

    place = _last_sound(len(faults), lambda number: suffers(number, 0))
    element = _last_sound(faults[place].positions.size, lambda number: suffers(place, number))
    return faults[place], int(faults[place].positions[element]), repairs(place, element)


def _last_sound(count: int, suffers: Callable[[int], bool]) -> int:
    """The last number that does not suffer, while the next one, or the end, does."""
    sound, bad = 0, count
    while bad - sound > 1:
        middle = (sound + bad) // 2
        sound, bad = (sound, middle) if suffers(middle) else (middle, bad)
    return sound


def _name_input(name: str, replay: Replay, given: Sequence[Node]) -> None:
    """Raise AnomalyError where the caller has given an inf that an output shows."""
    if are_finite(replay.plain):
        return
    for node, array in zip(replay.graph.inputs, replay.arrays):
        mask = _masks([array])[0]
        if node in given and mask.any():
            raise _anomaly(name, ((node,), ()), int(np.flatnonzero(mask)[0]), array, (), None)


# --- words ------------------------------------------------------------------------------------------------


def _anomaly(
    name: str, site: Site, position: int, value: np.ndarray, operands: Sequence[Any], run: int | None
) -> AnomalyError:
    """The error that names an element of a value."""
    nodes, steps = site
    node = nodes[-1]
    index = tuple(map(int, np.unravel_index(position, value.shape)))
    shown = _shown(node, index, operands)
    number = float(value[index])
    error = AnomalyError(_text(name, node, index, number, shown, steps, run))
    origin = node.origin
    error.place, error.line, error.rule = origin.place if origin.line else "", origin.text, origin.rule
    error.operator, error.index, error.value = node.operator.name, index, number
    error.operands, error.steps, error.run = dict(shown), steps, run
    return error


def _text(
    name: str,
    node: Node,
    index: tuple[int, ...],
    number: float,
    shown: Mapping[str, float | str],
    steps: tuple[int, ...],
    run: int | None,
) -> str:
    at = f"[{', '.join(map(str, index))}]" if index else ""
    if node.is_input:
        return f"{name}: the input {node.name or 'of the program'}{at} is {number} already."
    what = f"the gradient of {node.origin.rule}" if node.origin.rule else node.operator.name
    lines = [f"{name}: {what} gives {number}{f' at {at}' if at else ''}."]
    if node.origin.line:
        lines.append(f"  at {node.origin.place}  {node.origin.text}")
    if shown:
        operator = f"{node.operator.name} of " if node.origin.rule else "of "
        lines.append("  " + operator + ", ".join(f"{label} = {one}" for label, one in shown.items()))
    if run is not None:
        lines.append(f"  in run {run} of this line (the first is 0)")
    elif steps:
        places = ", ".join(map(str, steps))
        lines.append(f"  in step {places} of the loops around it in the code (the first is 0)")
    return "\n".join(lines)


def _shown(node: Node, index: tuple[int, ...], operands: Sequence[Any]) -> dict[str, float | str]:
    """What an element is made of: numbers, where it is made of one element of each operand."""
    shown: dict[str, float | str] = {}
    for place, (operand, value) in enumerate(zip(node.operands, operands)):
        if not isinstance(value, np.ndarray):
            continue
        wanted = node.operator.operand_name(place)
        label = operand.name or (wanted if operand.is_input else operand.operator.noun)
        label = "constant" if operand.is_constant else label
        label = f"{label} ({wanted})" if label in shown else label
        if node.operator.family == "elementwise":
            at = tuple(one if size > 1 else 0 for one, size in zip(index, value.shape))
            text = f"{label}[{', '.join(map(str, at))}]" if at else label
            shown[text] = value[at].item()
        else:
            shown[label] = _in_words(value)
    return shown


def _in_words(value: np.ndarray) -> str | float:
    if value.size == 1:
        return float(value.reshape(()))
    if value.dtype.kind not in "fiu" or not value.size:
        return f"{value.dtype}{list(value.shape)}"
    return f"{value.dtype}{list(value.shape)} from {value.min()} to {value.max()}"
