"""Programs for what paths have in common: a call runs up to the question in which they differ, and goes on.

Where two paths of a function differ in the answer to a guard, what both compute is one program, a prefix. It
gives that answer, and the values that are read later on. The answer says which program follows: the next
prefix, or the rest of one path. Each has its own forward and backward function, joined by the tape like any
others.

Questions that a line asks again and again, as that of a `while` loop does, keep their paths whole: these
share machine code already, as loops of another number of steps (`siblings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...tracer.graph import Graph, Labels, Node, make_input, relabel, substitute, toposort
from ...tracer.merge import SharedNodes
from ...tracer.ops.control import loop_result
from ...tracer.ops.elementwise import identity, trunc
from ...tracer.origin import located_at
from ...tracer.records import record
from ...tracer.trace import Guard, answers_of
from ..tracing.guards import Deviated, Guards
from ..tracing.traced import Traced
from ..values.flatten import Results
from ..values.tensor import Tensor, make
from ..values.value_kinds import kind_of_value
from .siblings import Path, Sibling, Siblings, UnknownPath, unknown_path
from .table import STALE
from .variant import Variant


@record(eq=False)
class Prefix:
    """What several paths begin with, as a program of its own.

    Its results are the answer to the question in which they differ, then what the programs that follow read.
    """

    variant: Variant
    question: Guard
    branches: dict[bytes, Prefix | Siblings]
    """By answer, what follows."""

    @property
    def paths(self) -> list[Path]:
        return [path for after in self.branches.values() for path in after.paths]

    @property
    def _guards(self) -> tuple[Guard, ...]:
        """What all of the paths answer alike before that question."""
        return self.variant.traced.guards.guards

    def _unknown(self, answers: Sequence[np.ndarray], later: UnknownPath) -> UnknownPath:
        """What is known of a call that has other answers after this question."""
        before = answers_of(self._guards)
        after = [*answers, *later.answers] if len(before) == len(self._guards) else []
        return UnknownPath([*before, *after], later.guard, later.is_endless)

    def programs(self, path: Path) -> list[Variant]:
        """What runs for a path, in order."""
        return [self.variant, *self._after(path).programs(path)]

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call; STALE where what the function reaches has changed.

        Raises:
            UnknownPath: no known path has the answers of this call.
        """
        unknown: UnknownPath | None = None
        try:
            results = self.variant.runner(leaves)
        except Deviated as other:
            unknown = unknown_path(self._guards, other)
        except Exception:  # the call's own: then the path that is traced raises it again
            unknown = UnknownPath([], None)
        if unknown is not None:
            raise unknown
        if results is STALE:
            return STALE
        answer, *live = results
        if isinstance(answer, Tensor):
            answer = answer._value
        after = self.branches.get(answer.tobytes())
        if after is None:
            raise self._unknown([answer], UnknownPath([], self.question))
        try:
            return after.run([*leaves, *live])
        except UnknownPath as later:
            unknown = self._unknown([answer], later)
        raise unknown

    def run_traced(self, leaves: Sequence[Any], path: Path) -> Any:
        """The results of the call that was traced, along the path that the trace has found."""
        results = self.variant.runner(leaves)
        return STALE if results is STALE else self._after(path).run_traced([*leaves, *results[1:]], path)

    def _after(self, path: Path) -> Prefix | Siblings:
        return next(after for after in self.branches.values() if path in after.paths)


@record(frozen=True, eq=False)
class _Merged:
    """A path whose graph shares its nodes with those of the others."""

    path: Path
    outputs: tuple[Node, ...]
    guards: tuple[Guard, ...]
    serials: dict[Node, int]
    """When the path made each of its nodes; another path may have made it first."""

    def asked(self, begin: int) -> tuple[Node, ...]:
        """What is to be found out after the first `begin` answers."""
        return (*self.outputs, *(guard.node for guard in self.guards[begin:]))

    def needs(self, begin: int) -> set[Node]:
        """The same with all that it is computed from."""
        return set(toposort(self.asked(begin)))


class Prefixes:
    """The prefixes of the paths of one signature, planned anew when a path is added.

    Args:
        make_variant: gives a traced graph its programs.
    """

    def __init__(self, make_variant: Callable[[Traced], Variant]) -> None:
        self._make_variant = make_variant
        self._shared = SharedNodes()
        self._merged: dict[Path, _Merged | None] = {}
        self._arguments: tuple[Node, ...] = ()
        self._labels: list[Any] | None = None
        """What the paths reach, which must be the same."""
        self._sources: dict[int, Node] = {}
        self._constants: list[tuple[np.ndarray, Node]] = []
        self._answers: dict[Node, Node] = {}
        """For the nodes that decide, what a prefix gives as its answer."""
        self._stand_ins: dict[Node, Node] = {}
        """Of a value that a prefix hands on, the input of the programs that follow."""
        self._with_gradient: set[Node] = set()
        """Of those the ones that are differentiated."""
        self._variants: dict[Any, Variant] = {}
        """The programs of the plan, by what they compute."""
        self._former: dict[Any, Variant] = {}
        """Those of the plan before."""

    def plan(self, paths: Sequence[Path]) -> Prefix | Siblings:
        """What a call runs first."""
        self._former, self._variants = self._variants, {}
        self._merged = {path: merged for path, merged in self._merged.items() if path in paths}
        return self._planned(paths, 0, ())

    # --- one graph of all paths ---------------------------------------------------------------------------

    def _merge(self, path: Path) -> _Merged | None:
        """The path on the nodes of the others; None if its program has to be one."""
        if path not in self._merged:
            self._merged[path] = self._merge_anew(path)
        return self._merged[path]

    def _merge_anew(self, path: Path) -> _Merged | None:
        traced = path.traced
        changes = traced.written, traced.overwritten, traced.gone, traced.gradients, traced.updates
        if any((*changes, traced.layouts, traced.drawn, traced.gradient)):
            return None
        if any(guard.counts is not None for guard in traced.guards.guards):  # which are of this path alone
            return None
        count = len(traced.argument_names)
        arguments = traced.graph.inputs[:count]
        queries = traced.reading.queries
        labels = [*(source.label for source in traced.reading.sources), queries.form if queries else ()]
        if self._labels is None:
            self._arguments, self._labels = arguments, labels
        if labels != self._labels:
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
        new = self._shared.merge((*results, *(guard.node for guard in guards)), inputs)
        serials: dict[Node, int] = {}
        for node, kept in new.items():
            serials[kept] = min(node.serial, serials.get(kept, node.serial))
        asked = tuple(replace(guard, node=new[guard.node]) for guard in guards)
        return _Merged(path, tuple(new[node] for node in results), asked, serials)

    def _constant(self, array: np.ndarray, node: Node) -> Node:
        for known, known_node in self._constants:
            equal_nan = array.dtype.kind == "f"
            if known.dtype == array.dtype and np.array_equal(known, array, equal_nan=equal_nan):
                return known_node
        self._constants.append((array, node))
        return node

    # --- prefixes -------------------------------------------------------------------------------------------

    def _planned(self, paths: Sequence[Path], begin: int, live: tuple[Node, ...]) -> Prefix | Siblings:
        """The programs of paths that have all answers before `begin` in common, and those `live` values."""
        fork = _first_difference(paths, begin)
        members = self._merge_all(paths, begin, fork)
        if fork is None or members is None:
            streams = {stream: None for path in paths for stream in path.traced.streams}
            return Siblings([Sibling(path, self._rest(path, begin, live)) for path in paths], streams)
        handed_on = self._handed_on(members, begin, fork, live)
        prefix = self._prefix(members[0], begin, fork, live, handed_on)
        groups: dict[bytes, list[Path]] = {}
        for path in paths:
            groups.setdefault(path.key[fork], []).append(path)
        branches = {key: self._planned(group, fork + 1, (*live, *handed_on)) for key, group in groups.items()}
        return Prefix(prefix, members[0].guards[fork], branches)

    def _merge_all(self, paths: Sequence[Path], begin: int, fork: int | None) -> list[_Merged] | None:
        """The paths in one graph, if that is worth it: if a prefix may end with the question `fork`."""
        if fork is None or not all(_divides(path, fork) for path in paths):
            return None
        members = [merged for path in paths if (merged := self._merge(path)) is not None]
        asked = zip(*(one.guards[begin : fork + 1] for one in members))
        is_same = all(len({guard.node for guard in guards}) == 1 for guards in asked)
        return members if is_same and len(members) == len(paths) else None

    def _handed_on(
        self, members: Sequence[_Merged], begin: int, fork: int, live: Sequence[Node]
    ) -> tuple[Node, ...]:
        """What all of the paths make before they part, and need later, unless it is cheaper made again."""
        from ...codegen.derivatives.partition import partition  # not at start

        first = members[0]
        common = {
            node
            for node in set.intersection(*(one.needs(begin) for one in members))
            if first.serials[node] < first.guards[fork].serial
        }
        later = set[Node]().union(*(one.needs(fork + 1) for one in members))
        common |= {node for node in later if node.operator is loop_result and node.operands[0] in common}
        needed = {operand for node in later - common for operand in node.operands if operand in common}
        needed |= {node for one in members for node in one.asked(fork + 1) if node in common}
        free = {*self._arguments, *self._sources.values(), *(node for _, node in self._constants), *live}
        wanted = [node for node in sorted(needed, key=lambda node: node.serial) if not node.is_constant]
        return tuple(node for node in partition(wanted, free).saved if node not in free)

    def _prefix(
        self, member: _Merged, begin: int, fork: int, live: tuple[Node, ...], handed_on: tuple[Node, ...]
    ) -> Variant:
        question = member.guards[fork]
        answer = self._answers.get(question.node)
        if answer is None:
            with located_at(question.origin):
                answer = identity(question.node).named(question.node.name or "answer")
            self._answers[question.node] = answer
        traced = member.path.traced
        name = f"{traced.name}_to_line_{question.origin.line}"
        results = Results(tuple(make(node) for node in (answer, *handed_on)), name)
        variant = self._program(
            member, name, results, (answer, *handed_on), member.guards[begin:fork], live, hands_on=True
        )
        recorded = variant.pair.cotangent_outputs if variant.differentiable else ()
        self._with_gradient.update(node for place, node in enumerate(handed_on, 1) if place in recorded)
        return variant

    def _rest(self, path: Path, begin: int, live: tuple[Node, ...]) -> Variant:
        """What is left of one path."""
        member = self._merge(path) if begin else None
        if member is None:
            return path.variant
        line = member.guards[begin - 1].origin.line
        name = f"{path.traced.name}_from_line_{line}"
        return self._program(
            member, name, path.traced.results, member.outputs, member.guards[begin:], live, hands_on=False
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
        """The variant that computes some nodes from the arguments and from what prefixes have handed on."""
        answers = tuple((one.node, one.answer.tobytes()) for one in guards)
        key = outputs, answers, live, None if hands_on else member.path
        if key in self._former:
            self._variants[key] = self._former[key]
            return self._former[key]
        for node in live:
            if node not in self._stand_ins:
                self._stand_ins[node] = make_input(node.spec, _name_of(node), node.origin)
        stand_ins = {node: self._stand_ins[node] for node in live}
        new = substitute((*outputs, *(guard.node for guard in guards)), stand_ins)
        asked = Guards([replace(guard, node=node) for node, guard in zip(new[len(outputs) :], guards)])
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
        if hands_on:
            names = {made: _name_of(node) for node, made in zip(outputs, given) if not made.name}
            graph = relabel(graph, Labels(names))
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
                overwritten=(),
                layouts=(),
                gone={},
                gradients=(),
                drawn=(),
                streams={},
                guards=asked,
                notes=traced.notes,
                needs_grad=needs_grad,
                kinds=tuple(map(kind_of_value, results.leaves)),
                takes_tensors=traced.takes_tensors,
                gradient=None,
                hands_on=hands_on,
            )
        )
        return variant

    def _needs_grad_of_source(self, traced: Traced, index: int) -> bool:
        value = traced.reading.sources[index].value
        return any(traced.needs_grad) and isinstance(value, Tensor) and value.requires_grad


def _name_of(node: Node) -> str:
    return node.name or node.operator.noun


def _computed(node: Node) -> Node:
    """An output must be no input."""
    if not node.is_input:
        return node
    with located_at(node.origin):
        return identity(node)


def _first_difference(paths: Sequence[Path], begin: int) -> int | None:
    """The position of the first guard with several answers; None if there is none that all paths ask."""
    answers = enumerate(zip(*(path.key[begin:] for path in paths)), begin)
    return next((position for position, found in answers if len(set(found)) > 1), None)


def _divides(path: Path, fork: int) -> bool:
    """Whether a guard may end a prefix: the path asks on its line only once, and the answer is exact."""
    guard = path.traced.guards.guards[fork]
    is_exact = guard.node.dtype.kind != "f" or guard.node.operator is trunc  # other code gives other bits
    is_whole = guard.node.spec.size == guard.answer.size
    return is_exact and is_whole and path.lines.count(path.lines[fork]) == 1
