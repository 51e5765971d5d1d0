"""A graph as a picture: by Graphviz, or by networkx and matplotlib where that is not installed."""

from __future__ import annotations

import io
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
            number, graphviz.escape("\n".join(_words(node))), color=_colour(node, graph), tooltip=_place(node)
        )
    drawing.edges(_edges(numbers))
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
    layers = list(networkx.topological_generations(drawing))
    for place, layer in enumerate(layers):
        for number in layer:
            drawing.nodes[number]["layer"] = -place
    places = networkx.multipartite_layout(drawing, subset_key="layer", align="horizontal")
    figure = Figure(figsize=(2.2 * max(map(len, layers), default=1) + 1, 0.9 * len(layers) + 0.5))
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.margins(0.2, 0.08)
    networkx.draw_networkx_edges(drawing, places, ax=axes, edge_color=COLOURS["value"], node_size=1600)
    for node, number in numbers.items():
        box = {"boxstyle": "round", "facecolor": PAPER, "edgecolor": _colour(node, graph)}
        look: dict[str, Any] = {"size": 7, "family": "monospace", "color": INK, "bbox": box}
        x, y = places[number]
        axes.text(x, y, "\n".join(_words(node)), ha="center", va="center", **look)
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True)
    return file.getvalue()


def _numbers(graph: Graph) -> dict[Node, str]:
    """What to call the values, the inputs that nothing reads among them."""
    return {node: str(number) for number, node in enumerate(dict.fromkeys((*graph.inputs, *graph.nodes)))}


def _edges(numbers: dict[Node, str]) -> Iterator[tuple[str, str]]:
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
