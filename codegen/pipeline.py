"""The recipe: a graph in, functions out. Read `optimise`, `build_forward` and `build_pair` first."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.tracer.graph import Graph, Labels, Node, make_input, relabel, substitute
from pullback.tracer.origin import unlocated
from pullback.tracer.verify import checked

from ..tracer.records import record
from .derivatives.differentiate import active_nodes, differentiate
from .derivatives.partition import Partition, needed_by_backward, partition
from .drawn_once import draws, refuse_second_draw, require_drawn_once, silent
from .machine.compile import statistics
from .options import DEFAULT_OPTIONS, Options
from .passes import run_passes
from .program import Program
from .rewriting import rotations, slices, written_positions  # noqa: F401  enters their rewrites
from .rewriting.associate import associate
from .rewriting.calls import absorb_permutes, copy_operands, form_calls
from .rewriting.contraction_rewrites import find_contractions
from .rewriting.contractions import lower_contractions
from .rewriting.definite_equations import solve_definite_equations
from .rewriting.diagonals import scale_by_diagonals, take_diagonals
from .rewriting.factors import factor_sums
from .rewriting.layouts import transpose_tables
from .rewriting.online import sum_online
from .rewriting.ordered_rows import sort_once
from .rewriting.quotients import share_reciprocals
from .rewriting.simplify import Simplifier, expand_composites, expand_ruled
from .rewriting.stacks import stack_products
from .rewriting.sums import join_padded_terms, join_totals
from .rewriting.unroll import unroll_small_dimensions
from .rewriting.windows import add_in_place
from .rolling.batched_calls import batch_calls
from .rolling.bodies import (
    copy_what_is_viewed,
    in_bodies,
    name_stacks,
    prune_loops,
    separate_bodies,
    share_loops,
)
from .rolling.delayed_carries import move_when_read
from .rolling.roll import roll

__all__ = ["Options", "Pair", "Program", "build_forward", "build_pair", "statistics"]


def optimise(graph: Graph) -> Graph:
    """Composites expanded, contractions decided, small dimensions unrolled, everything simplified."""
    simplify = Simplifier()
    return run_passes(
        graph,
        take_diagonals,
        scale_by_diagonals,
        expand_ruled,
        share_loops,
        optimise_bodies,
        batch_calls,
        simplify,
        expand_composites,
        sort_once,
        simplify,
        join_padded_terms,
        simplify,
        factor_sums,
        simplify,
        sum_online,
        simplify,
        find_contractions,
        absorb_permutes,
        simplify,
        stack_products,
        simplify,
        associate,
        lower_contractions,
        simplify,
        join_totals,
        unroll_small_dimensions,
        simplify,
        share_reciprocals,
        transpose_tables,
        add_in_place,
        move_when_read,
        prune_loops,
        name_the_last,
    )


def optimise_bodies(graph: Graph) -> Graph:
    """The same for the bodies of loops."""
    return in_bodies(graph, lambda body: run_passes(optimise(body), copy_what_is_viewed))


def finish(graph: Graph) -> Graph:
    """What is left of contractions as calls of BLAS, and loops as they are written."""
    return run_passes(graph, form_all_calls, name_stacks, separate_bodies)


def form_all_calls(graph: Graph) -> Graph:
    """The graph, and the bodies of its loops, with contractions as calls of BLAS."""
    return run_passes(graph, form_calls_in_bodies, form_calls, copy_operands)


def form_calls_in_bodies(graph: Graph) -> Graph:
    return in_bodies(graph, form_all_calls)


def silence_bodies(graph: Graph) -> Graph:
    """Bodies that backward runs once more call nothing for an effect."""
    return in_bodies(graph, lambda body: run_passes(body, silent, silence_bodies))


def name_the_last(graph: Graph) -> Graph:
    """A value that leads to another of the same name (d_x before all of it is summed) loses the name."""
    names = {
        operand: ""
        for node in graph.nodes
        for operand in node.operands
        if operand.name and operand.name == node.name and not operand.is_input
    }
    return relabel(graph, Labels(names))


@unlocated()
def build_forward(graph: Graph, options: Options = DEFAULT_OPTIONS) -> Program:
    """One function for the graph's outputs."""
    rolled = roll(graph)
    finished = finish(optimise(rolled.graph))
    require_drawn_once(finished)
    return Program(finished, options, title=f"{graph.name}", notes=rolled.notes)


@record(frozen=True)
class Pair:
    """A forward function that saves, and the backward function that uses what it saved."""

    forward: Program
    """Outputs: those of the graph, then the residuals."""
    backward: Program
    """Inputs: as `backward_inputs` says, then a cotangent for each of `cotangent_outputs`."""
    backward_inputs: tuple[tuple[str, int], ...]
    """("input", k), ("output", k) or ("residual", k)."""
    cotangent_outputs: tuple[int, ...]
    connected: tuple[bool, ...]
    """For each of `wrt`, whether a gradient flows; those without are not among backward's outputs."""
    partition: Partition

    @property
    def source(self) -> str:
        return f"{self.forward.source}\n\n{self.backward.source}"


@record(frozen=True)
class Joint:
    """A graph and its gradient in one, before anything is optimised."""

    graph: Graph
    """Inputs: those of the graph, then a cotangent for each of `cotangent_outputs`. Outputs: those of the
    graph, then the gradients of those of `wrt` that are `connected`."""
    cotangent_outputs: tuple[int, ...]
    connected: tuple[bool, ...]
    """For each of `wrt`, whether a gradient flows."""
    notes: tuple[str, ...]


@unlocated()
def build_joint(graph: Graph, wrt: tuple[int, ...]) -> Joint:
    """The graph, its Python loops rolled, with the gradient with respect to the inputs at positions `wrt`."""
    rolled = roll(graph)
    graph = run_passes(rolled.graph, share_loops, take_diagonals, solve_definite_equations)
    wanted = [graph.inputs[position] for position in wrt]
    active = active_nodes(graph.nodes, wanted)
    cotangent_outputs = tuple(position for position, node in enumerate(graph.outputs) if node in active)
    cotangents = [_cotangent_input(graph, position) for position in cotangent_outputs]
    joint, connected = _joint_graph(graph, wanted, cotangent_outputs, cotangents)
    return Joint(checked(joint, "differentiate"), cotangent_outputs, connected, tuple(rolled.notes))


@unlocated()
def build_pair(graph: Graph, wrt: tuple[int, ...], options: Options = DEFAULT_OPTIONS) -> Pair:
    """Forward and backward functions for the gradient with respect to the inputs at positions `wrt`."""
    made = build_joint(graph, wrt)
    joint = name_stacks(optimise(made.graph))  # what forward saves is called alike in both functions
    count = len(graph.outputs)
    cotangents = joint.inputs[len(graph.inputs) :]
    outputs, gradients = joint.outputs[:count], joint.outputs[count:]

    needed = needed_by_backward(gradients, set(cotangents))
    choice = partition(needed, {*graph.inputs, *outputs})
    residuals = [node for node in choice.saved if node not in graph.inputs and node not in outputs]
    forward = Graph(f"{graph.name}", graph.inputs, (*outputs, *residuals), graph.origin)
    backward, sources = _backward_graph(graph, outputs, residuals, choice.saved, cotangents, gradients)
    forward = finish(run_passes(checked(forward, "partition"), prune_loops))
    backward = finish(run_passes(checked(backward, "partition"), silent, silence_bodies, prune_loops))
    require_drawn_once(forward)
    if draws(backward):
        refuse_second_draw()
    return Pair(
        Program(
            forward,
            options,
            f"forward of {graph.name}",
            f"{graph.name}_forward",
            forward.outputs[count:],
            made.notes,
        ),
        Program(backward, options, f"backward of {graph.name}", f"{graph.name}_backward"),
        sources,
        made.cotangent_outputs,
        made.connected,
        choice,
    )


def _cotangent_input(graph: Graph, position: int) -> Node:
    output = graph.outputs[position]
    name = output.name or ("value" if len(graph.outputs) == 1 else f"value_{position}")
    return make_input(output.spec, f"d_{name}")


def _joint_graph(
    graph: Graph, wanted: Sequence[Node], positions: Sequence[int], cotangents: Sequence[Node]
) -> tuple[Graph, tuple[bool, ...]]:
    """The outputs and the gradients of those of `wanted` that have one, in one graph."""
    total: dict[Node, Node] = {}
    for position, cotangent in zip(positions, cotangents):
        output = graph.outputs[position]
        total[output] = total[output] + cotangent if output in total else cotangent
    gradients = differentiate(wanted, total)
    found = {node: gradient for node, gradient in zip(wanted, gradients) if gradient is not None}
    names = {
        gradient: f"d_{node.name}" for node, gradient in found.items() if node.name and gradient.operands
    }
    joint = Graph(graph.name, (*graph.inputs, *cotangents), (*graph.outputs, *found.values()), graph.origin)
    return relabel(joint, Labels(names)), tuple(gradient is not None for gradient in gradients)


def _backward_graph(
    graph: Graph,
    outputs: Sequence[Node],
    residuals: Sequence[Node],
    saved: Sequence[Node],
    cotangents: Sequence[Node],
    gradients: Sequence[Node],
) -> tuple[Graph, tuple[tuple[str, int], ...]]:
    """The backward part with saved values as inputs, and where each of those comes from."""
    replacements: dict[Node, Node] = {}
    sources: list[tuple[str, int]] = []
    inputs: list[Node] = []
    for node in saved:
        if node in graph.inputs:
            sources.append(("input", graph.inputs.index(node)))
            inputs.append(node)
            continue
        kind, place = ("output", outputs) if node in outputs else ("residual", residuals)
        sources.append((kind, list(place).index(node)))
        name = f"saved_{node.name or node.operator.noun}"
        replacements[node] = make_input(node.spec, name, node.origin)
        inputs.append(replacements[node])
    new = substitute(gradients, replacements)
    return Graph(f"{graph.name}_backward", (*inputs, *cotangents), new, graph.origin), tuple(sources)
