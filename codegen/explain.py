"""What the code generator decided, as text."""

from __future__ import annotations

from pullback.tracer.graph import Node

from .tree import Item, Loop, LoopTree, Root


def explain_tree(title: str, tree: LoopTree, names: dict[Node, str]) -> str:
    """The loop tree with its extents, and each value that is stored, with its size."""
    lines = [title]
    for item in tree.items:
        lines.extend(_item_lines(item, names, 1))
    return "\n".join(lines)


def _item_lines(item: Item, names: dict[Node, str], depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(item, Loop):
        inner = [line for one in item.items for line in _item_lines(one, names, depth + 1)]
        over = "the rows of the block" if item.outer else str(item.extent.value)
        blocks = f", in blocks of {item.block}" if item.block else ""
        return [f"{indent}loop over {over}{blocks}", *inner]
    return [f"{indent}{_root_line(item, names)}"]


def _root_line(root: Root, names: dict[Node, str]) -> str:
    node = root.node
    where = names.get(node)
    kept = f"array {where} ({node.spec})" if where else "a local variable"
    origin = f"  # {node.origin.place}" if node.origin.line else ""
    verbs = {
        "call": "gemm into", "view": "reshaped view", "store": "store",
        "reduce": f"{node.operator.name} into",
        "search": f"{node.operator.name} into", "scan": f"{node.operator.name} into",
        "scatter": "scatter-add into", "update": "write at indices into",
    }  # fmt: skip
    return f"{verbs[root.kind]} {kept}{origin}"
