"""A graph as a picture: by Graphviz, or by networkx and matplotlib where that is not installed."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .errors import UnsupportedError

Graph = Any
Node = Any  # both are those of `graph.py`, which imports this file

COLOURS = {"input": "#4c8bd6", "output": "#d18b2c", "value": "#8a8f98"}
"""Of frames, and of arrows: to be seen on light and on dark ground."""
PAPER, INK = "#ffffff", "#1c1e21"
NEEDED = (
    "A picture of a graph takes Graphviz (pip install 'pullback[graphviz]', and its program `dot`), or "
    "networkx and matplotlib (pip install 'pullback[plot]')."
)


class Picture(str):
    """An SVG, which notebooks show."""

    def _repr_svg_(self) -> str:
        return str(self)


def svg(graph: Graph) -> Picture:
    """The picture of a graph: a box for each value, from which arrows lead to those that are computed of it.

    Raises:
        UnsupportedError: nothing that draws is installed.
    """
    for draw in (_by_graphviz, _by_matplotlib):
        found = draw(graph)
        if found is not None:
            return Picture(found[found.index("<svg") :])
    raise UnsupportedError(NEEDED)


def _by_graphviz(graph: Graph) -> str | None:
    try:
        import graphviz  # an extra
    except ImportError:
        return None
    numbers = _numbers(graph)
    drawing = graphviz.Digraph(
        graph_attr={"bgcolor": "transparent"},
        node_attr={
            "shape": "box", "style": "rounded,filled", "fillcolor": PAPER, "fontcolor": INK,
            "fontname": "monospace", "fontsize": "10",
        },
        edge_attr={"color": COLOURS["value"], "arrowsize": "0.6"},
    )
    for node, number in numbers.items():
        drawing.node(
            str(number), graphviz.escape("\n".join(_words(node))),
            color=_colour(node, graph), tooltip=_place(node),
        )  # fmt: skip
    drawing.edges((str(start), str(end)) for start, end in _edges(numbers))
    try:
        return str(drawing.pipe(format="svg", encoding="utf-8"))
    except graphviz.ExecutableNotFound:
        return None


def _by_matplotlib(graph: Graph) -> str | None:
    try:
        import networkx
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return None
    numbers = _numbers(graph)
    drawing: Any = networkx.DiGraph()
    drawing.add_nodes_from(numbers.values())
    drawing.add_edges_from(_edges(numbers))
    layers = _layers(numbers)
    for number, layer in layers.items():
        drawing.nodes[number]["layer"] = -layer
    places = networkx.multipartite_layout(drawing, subset_key="layer", align="horizontal")
    widest = max(Counter(layers.values()).values(), default=1)
    figure = Figure(figsize=(1.7 * widest + 1, 0.7 * len(set(layers.values())) + 0.5))
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.margins(0.2, 0.08)
    axes.update_datalim(list(places.values()))
    axes.autoscale_view()
    boxes = {}
    for node, number in numbers.items():
        box = {"boxstyle": "round", "facecolor": PAPER, "edgecolor": _colour(node, graph)}
        look: dict[str, Any] = {"size": 7, "family": "monospace", "color": INK, "bbox": box}
        x, y = places[number]
        words = axes.text(x, y, "\n".join(_words(node)), ha="center", va="center", **look)
        boxes[number] = words.get_bbox_patch()
    for start, end in drawing.edges:
        is_long = layers[end] > layers[start] + 1  # straight it would run through boxes
        arrow = {
            "arrowstyle": "-|>", "color": COLOURS["value"], "shrinkA": 0, "shrinkB": 0,
            "patchA": boxes[start], "patchB": boxes[end],
            "connectionstyle": "arc3,rad=0.3" if is_long else "arc3",
        }  # fmt: skip
        axes.annotate("", places[end], places[start], arrowprops=arrow)
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, bbox_inches="tight")
    return file.getvalue()


def _numbers(graph: Graph) -> dict[Node, int]:
    """What to call the values, the inputs that nothing reads among them."""
    return {node: number for number, node in enumerate(dict.fromkeys((*graph.inputs, *graph.nodes)))}


def _layers(numbers: dict[Node, int]) -> dict[int, int]:
    """Each value is below those that it is computed of, and an input just above what first reads it."""
    found: dict[int, int] = {}
    first: dict[Node, int] = {}
    for node, number in numbers.items():
        if node.operands:
            found[number] = 1 + max(found.get(numbers[one], 0) for one in node.operands)
            for operand in node.operands:
                first[operand] = min(found[number], first.get(operand, found[number]))
    return {
        number: found[number] if node.operands else first.get(node, 1) - 1 for node, number in numbers.items()
    }


def _edges(numbers: dict[Node, int]) -> Iterator[tuple[int, int]]:
    for node, number in numbers.items():
        yield from ((numbers[operand], number) for operand in dict.fromkeys(node.operands))


def _words(node: Node) -> Iterator[str]:
    """The name, the operator, and the shape of a value."""
    if node.name:
        yield node.name
    if node.is_constant:
        yield f"{node.scalar_value}"
    elif not node.is_input:
        yield node.operator.name
    yield str(node.spec)


def _colour(node: Node, graph: Graph) -> str:
    return COLOURS["input" if node.is_input else "output" if node in graph.outputs else "value"]


def _place(node: Node) -> str:
    """The user's line."""
    return node.origin.place_and_text if node.origin.line else ""
