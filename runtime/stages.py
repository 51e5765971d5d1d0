"""Programs for what paths have in common: a call runs up to the question in which they differ, and goes on.

Where two paths of a function differ in the answer to a guard, what both compute is one program, a stage. It
gives that answer, and the values that are read later on. The answer says which program follows: the next
stage, or the rest of one path. Each has its own forward and backward function, joined by the tape like any
others.

Questions that a line asks again and again, as that of a `while` loop does, keep their paths whole: these
share machine code already, as loops of another number of steps (`siblings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tracer.graph import Graph, Node, make_input, substitute, toposort
from ..tracer.merge import SharedNodes
from ..tracer.ops.control import loop_result
from ..tracer.ops.elementwise import identity, trunc
from ..tracer.origin import located_at
from ..tracer.trace import Guard
from .flatten import Results
from .guards import Deviated, Guards
from .siblings import Sibling, Siblings, UnknownPath
from .tensor import Tensor, make
from .tracing import Traced
from .variant import STALE, Variant

if TYPE_CHECKING:
    from .paths import Path


@dataclass(eq=False)
class Stage:
    """What several paths begin with, as a program of its own.

    Its results are the answer to the question in which they differ, then what the programs that follow read.
    """

    variant: Variant
    question: Guard
    branches: dict[bytes, Stage | Siblings]
    """By answer, what follows."""

    @property
    def paths(self) -> list[Path]:
        return [path for after in self.branches.values() for path in after.paths]

    def programs(self, path: Path) -> list[Variant]:
        """What runs for a path, in order."""
        return [self.variant, *self._after(path).programs(path)]

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call; STALE where what the function reaches has changed.

        Raises:
            UnknownPath: no known path has the answers of this call.
        """
        guards = self.variant.traced.guards.guards
        unknown: UnknownPath | None = None
        try:
            results = self.variant.run(leaves)
        except Deviated as other:
            answers = [guard.answer for guard in guards[: other.position]]
            unknown = UnknownPath([*answers, other.answer], guards[other.position])
        except Exception:  # the call's own: then the path that is traced raises it again
            unknown = UnknownPath([], None)
        if unknown is not None:
            raise unknown
        if results is STALE:
            return STALE
        answer, *live = results
        if type(answer) is Tensor:
            answer = answer._value
        known = [guard.answer for guard in guards]
        after = self.branches.get(answer.tobytes())
        if after is None:
            raise UnknownPath([*known, answer], self.question)
        try:
            return after.run([*leaves, *live])
        except UnknownPath as later:
            unknown = UnknownPath([*known, answer, *later.answers], later.guard)
        raise unknown

    def run_traced(self, leaves: Sequence[Any], path: Path) -> Any:
        """The results of the call that was traced, along the path that the trace has found."""
        results = self.variant.run(leaves)
        return STALE if results is STALE else self._after(path).run_traced([*leaves, *results[1:]], path)

    def _after(self, path: Path) -> Stage | Siblings:
        return next(after for after in self.branches.values() if path in after.paths)


@dataclass(frozen=True, eq=False)
class _Merged:
    """A path whose graph shares its nodes with those of the others."""

    path: Path
    outputs: tuple[Node, ...]
    guards: tuple[Guard, ...]

    def places(self) -> list[tuple[str, int]]:
        """The lines that ask."""
        return [(guard.origin.filename, guard.origin.line) for guard in self.guards]

    def asked(self, begin: int) -> tuple[Node, ...]:
        """What is to be found out after the first `begin` answers."""
        return (*self.outputs, *(guard.node for guard in self.guards[begin:]))

    def needs(self, begin: int) -> set[Node]:
        """The same with all that it is computed from."""
        return set(toposort(self.asked(begin)))


class Stages:
    """The stages of the paths of one signature, planned anew when a path is added.

    Args:
        function: its name.
        make_variant: a traced graph with its programs.
    """

    def __init__(self, make_variant: Callable[[Traced], Variant]) -> None:
        self._make_variant = make_variant
        self._shared = SharedNodes()
        self._members: list[_Merged] = []
        self._arguments: tuple[Node, ...] = ()
        self._labels: list[str] = []
        self._sources: dict[int, Node] = {}
        self._constants: list[tuple[np.ndarray, Node]] = []
        self._stand_ins: dict[Node, Node] = {}
        """Of a value that a stage hands on, the input of the programs that follow."""
        self._with_gradient: set[Node] = set()
        """Of those the ones that are differentiated."""
        self._variants: dict[Any, Variant] = {}

    # --- one graph of all paths ---------------------------------------------------------------------------

    def plan(self, paths: Sequence[Path]) -> Stage | Siblings:
        """What a call runs first."""
        known = {one.path: one for one in self._members}
        self._members = []
        for path in paths:
            merged = known.get(path) or self._merged(path)
            if merged is None:
                break
            self._members.append(merged)
        else:
            return self._planned(self._members, 0, ())
        streams = {stream: None for path in paths for stream in path.traced.streams}
        return Siblings([Sibling(path, path.variant) for path in paths], streams)

    def _merged(self, path: Path) -> _Merged | None:
        """The path on the nodes of the others; None if its program has to be one."""
        traced = path.traced
        if traced.written or traced.drawn or traced.gradient is not None:
            return None
        count = len(traced.argument_names)
        arguments = traced.graph.inputs[:count]
        if not self._arguments:
            self._arguments = arguments
            self._labels = [source.label for source in traced.reading.sources]
        if self._labels != [source.label for source in traced.reading.sources]:
            return None
        inputs = dict(zip(arguments, self._arguments))
        of_sources = traced.graph.inputs[count : count + len(traced.sources)]
        for index, node in zip(traced.sources, of_sources):
            inputs[node] = self._sources.setdefault(index, node)
        of_constants = traced.graph.inputs[count + len(traced.sources) :]
        for array, node in zip(traced.constants, of_constants):
            inputs[node] = self._constant(array, node)
        results = traced.graph.outputs[: len(traced.results.leaves)]
        guards = traced.guards.guards
        nodes = self._shared.merge((*results, *(guard.node for guard in guards)), inputs)
        asked = nodes[len(results) :]
        return _Merged(
            path,
            nodes[: len(results)],
            tuple(_asking(node, guard) for node, guard in zip(asked, guards)),
        )

    def _constant(self, array: np.ndarray, node: Node) -> Node:
        for known, known_node in self._constants:
            equal_nan = array.dtype.kind == "f"
            if known.dtype == array.dtype and np.array_equal(known, array, equal_nan=equal_nan):
                return known_node
        self._constants.append((array, node))
        return node

    # --- stages -------------------------------------------------------------------------------------------

    def _planned(self, members: list[_Merged], begin: int, live: tuple[Node, ...]) -> Stage | Siblings:
        """The programs of paths that have all answers before `begin` in common, and those `live` values."""
        fork = _first_difference(members, begin)
        if fork is None or not _divides(members, fork):
            return Siblings([Sibling(one.path, self._rest(one, begin, live)) for one in members])
        question = members[0].guards[fork]
        handed_on = self._handed_on(members, begin, fork, live)
        stage = self._stage(members[0], begin, fork, live, handed_on)
        groups: dict[bytes, list[_Merged]] = {}
        for one in members:
            groups.setdefault(one.guards[fork].answer.tobytes(), []).append(one)
        branches = {key: self._planned(group, fork + 1, (*live, *handed_on)) for key, group in groups.items()}
        return Stage(stage, question, branches)

    def _handed_on(
        self, members: Sequence[_Merged], begin: int, fork: int, live: Sequence[Node]
    ) -> tuple[Node, ...]:
        """Values that all of the paths need and have not got, as far as they are not cheaper made again."""
        from ..codegen.rewriting.partition import partition

        common = set.intersection(*(one.needs(begin) for one in members))
        later = set[Node]().union(*(one.needs(fork + 1) for one in members))
        common |= {node for node in later if node.operator is loop_result and node.operands[0] in common}
        needed = {operand for node in later - common for operand in node.operands if operand in common}
        needed |= {node for one in members for node in one.asked(fork + 1) if node in common}
        free = {*self._arguments, *self._sources.values(), *(node for _, node in self._constants), *live}
        wanted = [node for node in sorted(needed, key=lambda node: node.serial) if not node.is_constant]
        return tuple(node for node in partition(wanted, free).saved if node not in free)

    def _stage(
        self, member: _Merged, begin: int, fork: int, live: tuple[Node, ...], handed_on: tuple[Node, ...]
    ) -> Variant:
        question = member.guards[fork]
        answer = question.node
        if not answer.name:
            with located_at(question.origin):
                answer = identity(answer).renamed("answer")
        traced = member.path.traced
        name = f"{traced.name}_to_line_{question.origin.line}"
        results = Results(tuple(make(node) for node in (answer, *handed_on)), name)
        variant = self._program(
            member, name, results, (answer, *handed_on), member.guards[begin:fork], live, hands_on=True
        )
        recorded = variant.pair.cotangent_outputs if variant.differentiable else ()
        self._with_gradient.update(node for place, node in enumerate(handed_on, 1) if place in recorded)
        return variant

    def _rest(self, member: _Merged, begin: int, live: tuple[Node, ...]) -> Variant:
        """What is left of one path."""
        traced = member.path.traced
        if not begin:
            return member.path.variant
        line = member.guards[begin - 1].origin.line
        name = f"{traced.name}_from_line_{line}"
        return self._program(
            member, name, traced.results, member.outputs, member.guards[begin:], live, hands_on=False
        )

    def _program(
        self,
        member: _Merged,
        name: str,
        results: Results,
        outputs: tuple[Node, ...],
        guards: tuple[Guard, ...],
        live: tuple[Node, ...],
        hands_on: bool,
    ) -> Variant:
        """The variant that computes some nodes from the arguments and from what stages have handed on."""
        from ..codegen.writing.names import noun

        key: tuple[Any, ...] = (
            outputs,
            tuple((one.node, one.answer.tobytes()) for one in guards),
            live,
            hands_on,
        )
        key = key if hands_on else (*key, member.path)
        if key in self._variants:
            return self._variants[key]
        for node in live:
            if node not in self._stand_ins:
                self._stand_ins[node] = make_input(
                    node.spec, node.name or noun(node.operator.name), node.origin
                )
        stand_ins = {node: self._stand_ins[node] for node in live}
        new = substitute((*outputs, *(guard.node for guard in guards)), stand_ins)
        asked = Guards([_asking(node, guard) for node, guard in zip(new[len(outputs) :], guards)])
        given = [_computed(node) for node in new[: len(outputs)]]
        used = set(toposort(new))
        traced = member.path.traced
        sources = {index: node for index, node in sorted(self._sources.items()) if node in used}
        constants = [(array, node) for array, node in self._constants if node in used]
        handed = list(stand_ins.values())
        graph = Graph(
            name,
            (*self._arguments, *handed, *sources.values(), *(node for _, node in constants)),
            (*given, *asked.outputs),
            traced.graph.origin,
        )
        needs_grad = (
            *traced.needs_grad[: len(self._arguments)],
            *(node in self._with_gradient for node in live),
            *(self._needs_grad_of_source(traced, index) for index in sources),
            *(False for _ in constants),
        )
        variant = self._variants[key] = self._make_variant(
            Traced(
                name=name,
                graph=graph,
                results=results,
                reading=traced.reading,
                argument_names=(*traced.argument_names, *(node.name for node in handed)),
                sources=tuple(sources),
                constants=tuple(array for array, _ in constants),
                written=(),
                drawn=(),
                streams={},
                guards=asked,
                notes=traced.notes,
                needs_grad=needs_grad,
                returns_tensors=traced.returns_tensors,
                gradient=None,
                hands_on=hands_on,
            )
        )
        return variant

    def _needs_grad_of_source(self, traced: Traced, index: int) -> bool:
        value = traced.reading.sources[index].value
        return any(traced.needs_grad) and isinstance(value, Tensor) and value.requires_grad


def _computed(node: Node) -> Node:
    """An output must be no input."""
    if not node.is_input:
        return node
    with located_at(node.origin):
        return identity(node)


def _asking(node: Node, guard: Guard) -> Guard:
    return Guard(node, guard.answer, guard.question, guard.origin, guard.start)


def _first_difference(members: Sequence[_Merged], begin: int) -> int | None:
    """The position of the first guard with several answers; None if there is none that all paths ask."""
    if len(members) < 2:
        return None
    for position, guards in enumerate(zip(*(one.guards[begin:] for one in members)), begin):
        if len({guard.node for guard in guards}) > 1:
            return None
        if len({guard.answer.tobytes() for guard in guards}) > 1:
            return position
    return None


def _divides(members: Sequence[_Merged], fork: int) -> bool:
    """Whether a guard may end a stage: no path asks on its line again, and its answers are exact."""
    question = members[0].guards[fork]
    place = question.origin.filename, question.origin.line
    node = question.node
    is_exact = node.dtype.kind != "f" or node.operator is trunc  # of others, other code gives other bits
    is_whole = node.spec.size == question.answer.size
    return is_exact and is_whole and all(one.places().count(place) == 1 for one in members)
