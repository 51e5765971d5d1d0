"""Passes leave the graphs that they are given as they are, and what they make keeps the rules of graphs."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_golden import CASES
from test_loops import GRAPHS

import pullback as pb
from pullback.codegen import passes, pipeline
from pullback.codegen.passes import name_of
from pullback.codegen.rewriting.identities import MONOIDS
from pullback.codegen.rewriting.simplify import simplify
from pullback.codegen.rolling.roll import roll
from pullback.tracer.graph import Graph, Node, constant, make_input, make_node
from pullback.tracer.loop import loops_of
from pullback.tracer.operator import OPERATORS
from pullback.tracer.spec import BOOL, Spec

STEPS = 30
PIPELINE = {
    "tidy_loops", "compute_when_read", "stack_what_is_written", "share_loops", "optimise_bodies",
    "batch_calls", "simplify", "simplify_differentiable",
    "expand_composites", "expand_ruled", "expand_what_has_no_own_rule", "join_padded_terms",
    "factor_sums", "sum_online", "find_contractions", "join_totals",
    "absorb_permutes", "stack_products", "associate", "lower_contractions", "unroll_small_dimensions",
    "share_reciprocals", "transpose_tables", "add_in_place", "move_when_read",
    "prune_loops", "name_the_last", "copy_what_is_viewed", "form_all_calls", "form_calls",
    "form_calls_in_bodies", "copy_operands", "name_stacks", "separate_bodies", "silent", "silence_bodies",
    "take_diagonals", "scale_by_diagonals", "sort_once",
    "solve_definite_equations",
}  # fmt: skip


def network(x: Any, w: Any) -> Any:
    h = x[0]
    found = []
    for t in range(STEPS):
        h = pb.tanh(w @ h + x[t])
        found.append(h)
    return (pb.stack(found) ** 2).sum()


def convolution(x: Any, w: Any) -> Any:
    total = x[:, :10] @ w[0]
    for k in range(1, 4):
        total = total + x[:, k : k + 10] @ w[k]
    return (total**2).sum()


def written(x: Any, w: Any) -> Any:
    out = pb.zeros_like(x)
    for t in range(1, STEPS):
        out[t] = 0.5 * out[t - 1] + x[t] * w[0]
    return (out**2).sum()


def vectors_of_three(x: Any, w: Any) -> Any:
    axis = x / pb.sqrt((x * x).sum(dim=-1, keepdim=True))
    return (axis @ w).sum()


def log_sum(x: Any) -> Any:
    return pb.logsumexp(x, dim=0)


def gradient_inside(x: Any, w: Any) -> Any:
    step = pb.grad(lambda v: network(x, v))(w)
    return w - 0.1 * step


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    **CASES,
    "network": (network, (normal(STEPS, 4), normal(4, 4))),
    "convolution": (convolution, (normal(200, 16), normal(4, 10, 8))),
    "written": (written, (normal(STEPS, 4), normal(STEPS, 4))),
    "vectors_of_three": (vectors_of_three, (normal(200, 3), normal(3, 3))),
    "log_sum_of_a_large_array": (log_sum, (np.zeros(3_000_000),)),
    "gradient_inside": (gradient_inside, (normal(STEPS, 4), normal(4, 4))),
}
MAKERS: dict[str, Callable[[], Graph]] = {
    **{
        name: lambda function=function, arguments=arguments: pb.compile(function).graph(*arguments)
        for name, (function, arguments) in PROGRAMS.items()
    },
    **{f"loop: {name}": make for name, make in GRAPHS.items()},
}
graphs = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def every_node(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, and of the bodies of its loops."""
    yield from dict.fromkeys((*graph.inputs, *graph.nodes))
    for loop in loops_of(graph.nodes):
        yield from every_node(loop.body)


def snapshot(graph: Graph) -> tuple[Any, ...]:
    """All that there is to know about a graph."""
    nodes = [
        (
            node,
            node.operator,
            node.operands,
            node.spec,
            node.origin,
            node.name,
            node.serial,
            {name: (value, repr(value)) for name, value in node.attributes.items()},
        )
        for node in every_node(graph)
    ]
    return nodes, str(graph), graph.inputs, graph.outputs, graph.name, graph.origin


class Watch:
    """Runs passes, and compares what each was given before and after it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._run_pass = passes.run_pass

    def __call__(self, one: passes.Pass, graph: Graph) -> Graph:
        before = snapshot(graph)
        result = self._run_pass(one, graph)
        assert snapshot(graph) == before, f"{name_of(one)} changed its input"
        self.names.add(name_of(one))
        return result


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    found = Watch()
    monkeypatch.setattr(passes, "run_pass", found)
    return found


@graphs
def test_no_pass_changes_its_input(make: Callable[[], Graph], watch: Watch) -> None:
    """Neither does rolling, differentiation, or the writing of code."""
    graph = make()
    before = snapshot(graph)
    roll(graph)
    pipeline.build_forward(graph)
    wrt = tuple(place for place, node in enumerate(graph.inputs) if node.spec.is_float)
    pair = pipeline.build_pair(graph, wrt)
    programs = (pair.forward, pair.backward)
    optimised = [snapshot(program.graph) for program in programs]
    assert all(program.source for program in programs)
    assert [snapshot(program.graph) for program in programs] == optimised
    assert snapshot(graph) == before


def test_every_pass_of_the_pipeline_is_watched(watch: Watch) -> None:
    pipeline.build_pair(GRAPHS["network"](), (0, 1, 2))
    assert watch.names == PIPELINE


def test_a_pass_that_changes_its_input_is_found(watch: Watch) -> None:
    def spoil(graph: Graph) -> Graph:
        object.__setattr__(graph, "name", "spoiled")
        return graph

    with pytest.raises(AssertionError, match="spoil changed its input"):
        passes.run_passes(GRAPHS["network"](), spoil)


@pytest.mark.parametrize("name", ["chain", "network"])
def test_building_twice_gives_the_same_source(name: str) -> None:
    function, arguments = PROGRAMS[name]
    graph = pb.compile(function).graph(*arguments)
    first, second = (pipeline.build_pair(graph, (0, 1)).source for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", MONOIDS)
def test_the_identity_of_a_monoid_is_not_combined(name: str) -> None:
    operator = OPERATORS[name]
    x = make_input(Spec((3,), BOOL if name.startswith("logical") else np.dtype("float64")), "x")
    identity = constant(MONOIDS[name].identity(x.dtype), x.spec.with_shape(()))
    for operands in ((x, identity), (identity, x)):
        assert simplify(Graph("f", (x,), (make_node(operator, operands, {}),))).outputs == (x,)
