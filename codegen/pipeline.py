"""The recipe: a graph in, functions out. Read `optimise`, `build_forward` and `build_pair` first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pullback.tracer.graph import Graph, Node, make_input, substitute

from .machine.compile import statistics
from .program import DEFAULT_OPTIONS, Options, Program
from .rewriting import pieces, rotations, slices  # noqa: F401  enters their rewrites
from .rewriting.associate import associate
from .rewriting.calls import absorb_permutes, copy_operands, form_calls
from .rewriting.contraction_rewrites import find_contractions
from .rewriting.contractions import lower_contractions
from .rewriting.differentiate import active_nodes, differentiate
from .rewriting.factors import factor_sums
from .rewriting.layouts import transpose_constants, transpose_tables
from .rewriting.online import sum_online
from .rewriting.partition import Partition, needed_by_backward, partition
from .rewriting.quotients import share_reciprocals
from .rewriting.simplify import Simplifier, expand_composites
from .rewriting.stacks import stack_products
from .rewriting.sums import join_padded_terms
from .rewriting.unroll import unroll_small_dimensions
from .rewriting.windows import add_in_place, forget_overwritten
from .rolling.bodies import copy_what_is_viewed, in_bodies, prune_loops, separate_bodies, share_loops
from .rolling.delays import move_when_read
from .rolling.roll import roll

__all__ = ["Options", "Pair", "Program", "build_forward", "build_pair", "statistics"]


def optimise(graph: Graph) -> Graph:
    """Composites expanded, contractions decided, small dimensions unrolled, everything simplified."""
    simplify = Simplifier()
    graph = simplify(in_bodies(share_loops(graph), lambda body: copy_what_is_viewed(optimise(body))))
    graph = simplify(expand_composites(graph))
    graph = simplify(factor_sums(simplify(join_padded_terms(graph))))
    graph = simplify(sum_online(graph))
    graph = simplify(absorb_permutes(find_contractions(graph)))
    graph = associate(simplify(stack_products(graph)))
    graph = simplify(lower_contractions(graph))
    graph = simplify(unroll_small_dimensions(graph))
    graph = transpose_tables(share_reciprocals(graph))
    return name_the_last(prune_loops(move_when_read(add_in_place(forget_overwritten(graph)))))


def with_calls(graph: Graph) -> Graph:
    """The graph with what is left of contractions as calls of BLAS."""
    return copy_operands(form_calls(in_bodies(transpose_constants(graph), with_calls)))


def name_the_last(graph: Graph) -> Graph:
    """A value that leads to another of the same name (d_x before all of it is summed) loses the name."""
    for node in graph.nodes:
        for operand in node.operands:
            if operand.name == node.name and not operand.is_input:
                operand.renamed("")
    return graph


def build_forward(graph: Graph, options: Options = DEFAULT_OPTIONS) -> Program:
    """One function for the graph's outputs."""
    rolled = roll(graph)
    graph = separate_bodies(with_calls(optimise(rolled.graph)))
    return Program(graph, options, title=f"{graph.name}", notes=rolled.notes)


@dataclass(frozen=True)
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


def build_pair(graph: Graph, wrt: tuple[int, ...], options: Options = DEFAULT_OPTIONS) -> Pair:
    """Forward and backward functions for the gradient with respect to the inputs at positions `wrt`."""
    rolled = roll(graph)
    graph = share_loops(rolled.graph)
    wanted = [graph.inputs[position] for position in wrt]
    active = active_nodes(graph, wanted)
    cotangent_outputs = tuple(position for position, node in enumerate(graph.outputs) if node in active)
    cotangents = [_cotangent_input(graph, position) for position in cotangent_outputs]
    joint, connected = _joint_graph(graph, wanted, cotangent_outputs, cotangents)
    joint = optimise(joint)
    count = len(graph.outputs)
    outputs, gradients = joint.outputs[:count], joint.outputs[count:]

    needed = needed_by_backward(gradients, set(cotangents))
    choice = partition(needed, {*graph.inputs, *outputs})
    residuals = [node for node in choice.saved if node not in graph.inputs and node not in outputs]
    forward = Graph(f"{graph.name}", graph.inputs, (*outputs, *residuals), graph.origin)
    backward, sources = _backward_graph(graph, outputs, residuals, choice.saved, cotangents, gradients)
    forward, backward = (separate_bodies(with_calls(prune_loops(one))) for one in (forward, backward))
    return Pair(
        Program(
            forward,
            options,
            f"forward of {graph.name}",
            f"{graph.name}_forward",
            forward.outputs[count:],
            rolled.notes,
        ),
        Program(backward, options, f"backward of {graph.name}", f"{graph.name}_backward"),
        sources,
        cotangent_outputs,
        connected,
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
    gradients = differentiate(graph, wanted, total)
    found = [_with_name(gradient, node) for gradient, node in zip(gradients, wanted) if gradient is not None]
    joint = Graph(graph.name, (*graph.inputs, *cotangents), (*graph.outputs, *found), graph.origin)
    return joint, tuple(gradient is not None for gradient in gradients)


def _with_name(gradient: Node, node: Node) -> Node:
    return gradient.renamed(f"d_{node.name}") if node.name and gradient.operands else gradient


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
