"""The part of a backward pass outside of traces, without a history, through nodes that run rules on arrays.

Nearly all nodes of eager code are such: one loop, without a pass around it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...tracer.errors import LinearAlgebraError, PullbackError
from ...tracer.origin import fail
from ...tracer.quiet import IGNORED, floating_errors
from ..values.modes import recording
from ..values.nodes import GONE, Behind, Edge, GradNode
from ..values.operator_nodes import OperatorNode
from ..values.tensor import Tensor
from .anomaly import is_anomaly_enabled

FEW = 512
"""Elements that are added to others sooner into a new array than in place."""
ndarray = np.ndarray
FLOAT64 = np.dtype("float64")


def sweep_plain(
    nodes: list[GradNode],
    arrived: dict[Any, Any],
    borrowed: set[Any],
    wanted: Mapping[int, bool] | None,
    own: Container[int],
    retain_graph: bool,
    ends: Container[tuple[int, int]] = (),
) -> None:
    """Run nodes, the latest first, each on all that has arrived at it, until one has hooks, or no such rules.

    Args:
        nodes: in the order in which they were made; those that have run are taken off.
        arrived, borrowed, wanted, ends: as in `Pass`.
        own: ids of nodes whose cotangents somebody wants, where it ends as well.
    """
    while nodes:
        node: Any = nodes[-1]
        key = id(node)
        is_operators = type(node) is OperatorNode  # almost always: see there
        if node.hooks is not None or key in own or not (is_operators or node.runs_rules):
            return
        nodes.pop()
        g = arrived.pop(key, None)
        if g is None:
            continue
        asked = None
        if wanted is not None and not (is_whole := wanted.get(key)):
            if is_whole is None:
                continue
            asked = [edge is not None and id(edge[0]) in wanted for edge in node.edges]
        if is_operators and asked is None:  # `pull_all`, without its frame
            versions = node.versions
            if versions and (
                versions[1][0] != versions[2]
                or (len(versions) > 3 and (len(versions) > 6 or versions[4][0] != versions[5]))
            ):
                node.require_saved()
            plan = node.plan
            if plan.is_holomorphic and (dtype := g.dtype) is not FLOAT64 and dtype.kind == "c":
                pulled = node.pull_all(g)
            else:
                pulled = plan.pull(g, node)
                if node.shapes is not None:
                    pulled = node.summed(pulled)
        elif node.may_add_itself and node.add_itself(g, arrived, borrowed):
            continue
        elif asked is None:
            pulled = node.pull_all(g)
        else:
            pulled = node.pull([g], asked, False)
        if not retain_graph and node.versions:
            if is_operators:  # `release`, without its frame
                node.operands = node.result = None
                node.versions = GONE
            else:
                node.release()
        is_own = is_operators or node.gives_own
        for edge, value in zip(node.edges, pulled):
            if edge is None or value is None:
                continue
            target, number = edge
            place: Any = id(target)
            if asked is not None and place not in wanted:  # type: ignore[operator]  # which `asked` is of
                continue
            if ends and (place, number) in ends:
                place = "end", place, number
            elif number:
                place = place, number
            mine = arrived.get(place)
            if mine is None:
                arrived[place] = value
                if not is_own or value is g or value.base is not None:
                    borrowed.add(place)
            elif type(mine) is not ndarray or mine.size <= FEW or type(value) is not ndarray:
                arrived[place] = mine + value
                borrowed.discard(place)
            else:
                add_arrays(
                    arrived, borrowed, place, value, not is_own or value is g or value.base is not None
                )


def add_arrays(
    arrived: dict[Any, Any], borrowed: set[Any], place: Any, value: ndarray, is_borrowed: bool
) -> None:
    """Add to the array that has arrived at a place, in place where one of the two is nobody else's."""
    mine = arrived[place]
    if not mine.ndim or mine.dtype != value.dtype:
        arrived[place] = mine + value
    elif place not in borrowed:
        mine += value
        return
    elif is_borrowed:
        arrived[place] = mine + value
    else:
        value += mine
        arrived[place] = value
    borrowed.discard(place)


def plain_gradients(
    root: Edge,
    cotangent: np.ndarray,
    behind: Behind,
    inputs: Sequence[Tensor],
    since: int,
    retain_graph: bool,
) -> list[np.ndarray | None] | None:
    """What a pass gives at leaves, outside of traces and without a history; None in the place of all where
    it has more to do: other leaves or older nodes behind the root, hooks, nodes without such rules.

    Args:
        behind: the nodes and leaves behind the root, which are let go of unless `retain_graph`.
        since: a sequence number that nodes on a way to the inputs have at least.
    """
    nodes, leaves = behind
    if (nodes and nodes[0].sequence < since) or is_anomaly_enabled():
        return None
    keys = list(map(id, inputs))
    for leaf in leaves:
        if leaf._hooks is not None or id(leaf) not in keys:
            return None
    for node in nodes:
        if node.hooks is not None or not node.runs_rules:
            return None
    arrived: dict[Any, Any] = {(id(root[0]), root[1]) if root[1] else id(root[0]): cotangent}
    former, errors = recording.set(False), floating_errors.set(IGNORED)
    try:
        sweep_plain(list(nodes) if retain_graph else nodes, arrived, {id(root[0])}, None, (), retain_graph)
    except np.linalg.LinAlgError as error:
        refuse_matrix(error)
    finally:
        recording.reset(former)
        floating_errors.reset(errors)
    return list(map(arrived.get, keys))


def refuse_matrix(error: np.linalg.LinAlgError) -> NoReturn:
    """LinearAlgebraError, with the line that asked for gradients; the error itself if it is ours."""
    if isinstance(error, PullbackError):
        raise error
    fail(LinearAlgebraError, f"backward: a matrix of the gradient has no result: {error}.")
