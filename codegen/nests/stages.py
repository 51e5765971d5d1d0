"""The stages of a program: its loops in the functions that are called one after another.

A stage is one function. Loops with enough work to share between threads are a stage over `range(start, stop)`
of their iterations, each thread with a part. What comes next joins that stage if each part needs of it only
what the same part has made: `exp(a @ b) @ c` is one stage over rows, and a part's rows stay in the cache of
its processor. Loops may change places for that, where neither needs what the other makes. What threads add up
is kept apart for each part and combined in order, so that results depend on the number of threads only.

A step of a loop over steps has stages as well, where there is enough work in it: all of them in one function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field

from pullback.tracer.graph import Node
from pullback.tracer.ops.control import loop_result

from ...tracer.records import record
from ..cost.machine import this_machine
from .expression import AnyIndex, Axis, Index, arithmetic, axes_in, minus, of_axis
from .extents import Symbol
from .tree import Call, Item, Loop, LoopTree, MatrixProduct, RangeCheck, Root, Stage, StepCount

LOOK_AHEAD = 32
"""How many items may be passed over in search of those that join a stage."""
LONG = 12
"""Values stored in a loop over steps from which it is a function of its own: it compiles sooner alone."""
FEWEST_ITERATIONS = 4
"""Of a loop that threads share: fewer would leave some of them without a part."""
FEWEST_ROWS = 16
"""Of a product, from which threads may share them: BLAS computes several rows at a time."""
_RootsInside = dict[int, list[Root]]


def split_into_stages(tree: LoopTree, parallel: bool | None) -> list[Stage]:
    """The items of the tree in stages, shared always, never, or (None) where that pays."""
    inside = _roots_inside(tree)
    if parallel is not False:
        for item in tree.items:
            _split_steps(item, inside, tree, parallel)
    tasks = _tasks(tree.items, inside, tree, parallel)
    pays = _pays(parallel)
    if any(_counts_steps(item, tree) for item in tree.items):
        return _with_counted_steps(tasks, tree, pays)
    stages: list[Stage] = []
    while tasks:
        group = _group(tasks, pays)
        if group:
            stages.append(Stage([one.item for one in group], group[0].extent))
            tasks = [one for one in tasks if one not in group]
        else:
            _add_serially(tasks.pop(0).item, stages, tree)
    return stages


def _with_counted_steps(tasks: list[_Task], tree: LoopTree, pays: Pays) -> list[Stage]:
    """All that needs steps that another loop counts is in one function with it."""
    stages: list[Stage] = []
    counting = [place for place, item in enumerate(tree.items) if _counts_steps(item, tree)]
    for place, task in enumerate(tasks):
        if counting[0] < place <= counting[-1]:
            stages[-1].items.append(task.item)
        elif place == counting[0] and not (stages and stages[-1].shared is None):
            stages.append(Stage([task.item]))
        elif place != counting[0] and (group := _group([task], pays)):
            stages.append(Stage([task.item], group[0].extent))
        else:
            _add_serially(task.item, stages, tree)
    return stages


def _add_serially(item: Item, stages: list[Stage], tree: LoopTree) -> None:
    if stages and stages[-1].shared is None and not _is_long_loop(item, tree):
        stages[-1].items.append(item)
    else:
        stages.append(Stage([item]))


def _is_long_loop(item: Item, tree: LoopTree) -> bool:
    """Whether a loop over steps holds so much that it is better compiled by itself."""
    if not isinstance(item, Loop) or not item.steps:
        return False
    return sum(item in root.path for root in tree.roots) > LONG


def _split_steps(
    item: Item, roots: _RootsInside, tree: LoopTree, parallel: bool | None, times: int = 1
) -> None:
    """Find the stages of each step of a loop, and of the loops inside, that is run so many times."""
    if not isinstance(item, Loop) or not item.steps:
        return
    times *= 1 if item.once or item.goes_on or item.extent.find().is_counted else item.extent.value
    for inner in item.items:
        _split_steps(inner, roots, tree, parallel, times)
    tasks, stages = _tasks(item.items, roots, tree, parallel), list[Stage]()
    pays = _pays(parallel, times)
    while tasks:
        group = _group(tasks, pays)
        if group:
            stages.append(Stage([one.item for one in group], group[0].extent))
            tasks = [one for one in tasks if one not in group]
        elif stages and stages[-1].shared is None:
            stages[-1].items.append(tasks.pop(0).item)
        else:
            stages.append(Stage([tasks.pop(0).item]))
    if any(stage.shared for stage in stages):
        item.stages, item.items = stages, [one for stage in stages for one in stage.items]


# --- groups of items over one extent ------------------------------------------------------------------------


@record(eq=False)
class _Task:
    """An item, and what decides with which others it may be shared."""

    item: Item
    extent: Symbol | None
    """What may be shared: of a loop, or of the rows of a product; None if it may not."""
    is_fixed: bool
    """Whether nothing may be moved across it."""
    nanoseconds: float
    """Of the whole item in one thread."""
    reads: set[Node] = field(default_factory=set)
    writes: set[Node] = field(default_factory=set)
    own: dict[Node, set[int]] = field(default_factory=dict)
    """For each array but inputs, the dimensions in which a part uses its own part of it only."""

    def needs_order(self, other: _Task) -> bool:
        """Whether one makes what the other uses, or both the same."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


Pays = Callable[[float, bool], bool]
"""Whether threads had better share work of so many nanoseconds, or may begin with such work."""


def _pays(parallel: bool | None, times: int = 1) -> Pays:
    """What is done so many times: never, always, or (None) where that pays."""
    machine = this_machine()

    def pays(nanoseconds: float, is_whole: bool) -> bool:
        if parallel is not None:
            return parallel
        if not is_whole:
            return machine.may_begin_sharing(nanoseconds)
        return machine.is_worth_sharing(nanoseconds, times)

    return pays


def _group(tasks: Sequence[_Task], pays: Pays) -> list[_Task]:
    """The first task and those behind it that are shared as one stage; none if that does not pay."""
    seed = tasks[0]
    if seed.extent is None or not pays(seed.nanoseconds, False):
        return []
    group, own = [seed], dict(seed.own)
    passed: list[_Task] = []
    for task in tasks[1:]:
        if task.is_fixed or len(passed) > LOOK_AHEAD:
            break
        common = {node: dims & own[node] for node, dims in task.own.items() if node in own}
        fits = task.extent is seed.extent and all(common.values())
        if fits and not any(task.needs_order(one) for one in passed):
            group.append(task)
            own |= task.own | common
        else:
            passed.append(task)
    return group if pays(sum(one.nanoseconds for one in group), True) else []


def _roots_inside(tree: LoopTree) -> _RootsInside:
    """The roots that each item of the tree is or has in it, by the item's `id`."""
    inside: _RootsInside = {}
    for root in tree.roots:
        for place in (*root.path, root):
            inside.setdefault(id(place), []).append(root)
    return inside


def _tasks(items: list[Item], roots: _RootsInside, tree: LoopTree, parallel: bool | None) -> list[_Task]:
    """Those of the tree, or of a loop over steps."""
    views = tree.views
    return [_task(item, roots.get(id(item), []), views, tree, parallel) for item in items]


def _task(
    item: Item, roots: list[Root], views: dict[Node, Node], tree: LoopTree, parallel: bool | None
) -> _Task:
    fixed = any(root.is_fixed or root.nest is not item for root in roots)
    task = _Task(item, None, fixed or (isinstance(item, Loop) and item.steps is not None), 0.0)
    if parallel is not False and isinstance(item, Loop) and _can_be_shared(item, roots, tree):
        task.extent, task.nanoseconds = item.extent, _estimated_nanoseconds(roots)
    elif parallel is not False and isinstance(item, MatrixProduct) and _can_be_split(item, tree):
        task.extent, task.nanoseconds = tree.extents[item.node][0], _estimated_product(item)
    for root in roots:
        axis = _shared_axis(root, item)
        if not isinstance(root, RangeCheck):
            _note(task, root.node, task.writes, root.target, axis, views, tree)
        for load in root.reads:
            _note(task, load.node, task.reads, load.indices, axis, views, tree)
    return task


def _shared_axis(root: Root, item: Item) -> Axis | None:
    """What the parts of an item walk."""
    if isinstance(item, Loop):
        return root.axis_of(item)
    first = root.target[0] if root.target else None
    return first.axis if isinstance(first, Index) else None


def _note(
    task: _Task,
    node: Node,
    accesses: set[Node],
    place: Sequence[AnyIndex],
    axis: Axis | None,
    views: dict[Node, Node],
    tree: LoopTree,
) -> None:
    """Enter an access of an array, or of the array that a view is of."""
    dims: set[int] = set()
    if node not in views and axis is not None:
        dims = {dim for dim, index in enumerate(place) if index == of_axis(axis)}
    while node in views:
        node = views[node]
    accesses.add(node)
    if not node.is_input:
        task.own[node] = dims & task.own.get(node, dims) & set(tree.kept[node])


def _can_be_shared(loop: Loop, roots: list[Root], tree: LoopTree) -> bool:
    if (
        loop.steps
        or loop.extent.value < FEWEST_ITERATIONS
        or not all(root.may_be_shared(root.axis_of(loop)) for root in roots)
    ):
        return False
    added = {root.node for root in roots if root.adds_over}
    if any(root.node in added for root in tree.roots if root.makes_value and root not in roots):
        return False
    return not any(root.steps for root in roots) or _are_parts_of_steps(loop, roots, tree)


def _are_parts_of_steps(loop: Loop, roots: list[Root], tree: LoopTree) -> bool:
    """Whether parts of a loop in a step write nothing that others use, and what each has for itself is small.

    What a step has left lies in the arrays that the next one writes, so it does not follow from the order.
    """
    if any(root.nest is not loop for root in roots):
        return False
    written = {root.node for root in roots if root.makes_value}
    accesses: dict[Node, list[tuple[Sequence[AnyIndex], Axis | None]]] = {node: [] for node in written}
    for root in roots:
        axis = root.axis_of(loop)
        if root.makes_value and root.first_reduced is not loop:
            accesses[root.node].append((root.target, axis))
        for load in root.reads:
            if load.node in accesses:
                accesses[load.node].append((load.indices, axis))
    for root in roots:
        target, axis = root.target, root.axis_of(loop)
        if not root.makes_value or _is_of_part(root, loop, tree):
            continue
        others = accesses[root.node]
        if not all(_are_apart(root.node, target, axis, *other, tree) for other in others):
            return False
    own = {root.node for root in roots if root.makes_value and _is_of_part(root, loop, tree)}
    if any(node.operator is loop_result for node in own):  # of which a step writes a row
        return False
    return this_machine().is_free_for_each_part(sum(_bytes_kept(node, tree) for node in own))


def _is_of_part(root: Root, loop: Loop, tree: LoopTree) -> bool:
    """Whether each part has for itself what a root makes."""
    return root.first_reduced is loop or is_private(root, tree)


def _are_apart(
    node: Node,
    target: Sequence[AnyIndex],
    axis: Axis | None,
    place: Sequence[AnyIndex],
    other_axis: Axis | None,
    tree: LoopTree,
) -> bool:
    """Whether parts that walk axes of two accesses never meet: in a dimension that both walk, or in rows."""
    if axis is None or other_axis is None:
        return False
    kept = tree.kept[node]
    if any(target[dim] == of_axis(axis) and place[dim] == of_axis(other_axis) for dim in kept):
        return True
    rows = tree.rows.get(node)
    if rows is None or 0 not in kept:
        return False
    row, other_row = target[0], place[0]
    if not isinstance(row, Index) or not isinstance(other_row, Index):
        return False
    terms = minus(row, other_row).terms
    return len(terms) == 1 and not terms[0].factors and terms[0].coefficient % rows != 0


def is_private(root: Root, tree: LoopTree) -> bool:
    """Whether the storage of a node lacks the dimension that the loop walks which threads share."""
    axis = root.axis_of(root.nest) if isinstance(root.nest, Loop) else None
    walked = {dim for dim, index in enumerate(root.target) if axis in axes_in(index)}
    return not walked & ({*tree.kept[root.node]} - {tree.in_blocks.get(root.node)})


def _bytes_kept(node: Node, tree: LoopTree) -> int:
    return math.prod(node.shape[dim] for dim in tree.kept[node]) * node.dtype.itemsize


def _can_be_split(root: MatrixProduct, tree: LoopTree) -> bool:
    """Whether the matrices are whole, and large enough for a part of the rows each."""
    if root.node.spec.ndim != 2 or len(tree.kept[root.node]) != 2:
        return False
    operands = [load.node for load in root.reads[:2]]
    plain = all(isinstance(one, Index) and one.axis for load in root.reads[:2] for one in load.indices)
    return plain and all(one.spec.ndim == 2 for one in operands) and root.node.shape[0] >= FEWEST_ROWS


# --- how long they take -------------------------------------------------------------------------------------


def _estimated_product(root: Root) -> float:
    operands = [load.node for load in root.reads[:2]]
    multiplications = math.sqrt(math.prod(one.spec.size for one in (*operands, root.node)))
    return this_machine().nanoseconds_of_large_gemm(multiplications, root.node.dtype.itemsize)


def _estimated_nanoseconds(roots: list[Root]) -> float:
    """Time of a loop; what several roots load or compute at the same place counts once."""
    machine = this_machine()
    seen: set[Node] = set()
    total = 0.0
    for root in roots:
        if isinstance(root, MatrixProduct):
            total += root.product.indices.nanoseconds
            continue
        if isinstance(root, Call):
            total += machine.nanoseconds_of_arithmetic(root.operations)
            continue
        new_loads = {load.node for load in root.reads} - seen
        seen |= new_loads
        cost = 0 if root.value is None else arithmetic(root.value, seen)
        total += machine.nanoseconds_of_loop(root.points, 1 + len(new_loads), cost, root.node.dtype.itemsize)
    return total


# --- steps that data counts ---------------------------------------------------------------------------------


def _counts_steps(item: Item, tree: LoopTree) -> bool:
    """Whether an item counts steps, or uses a number that another has counted: they share a function."""
    if isinstance(item, Loop):
        if item.extent.find().is_counted or item.goes_on is not None:
            return True
        return any(_counts_steps(one, tree) for one in item.items)
    return isinstance(item, StepCount) or any(map(_is_counted, _places(item)))


def _places(root: Root) -> list[AnyIndex]:
    found = list(root.target)
    for load in root.reads:
        found.extend(load.indices)
    return found


def _is_counted(index: AnyIndex) -> bool:
    if not isinstance(index, Index):
        return False
    factors = (factor for term in index.terms for factor in term.factors)
    return any(isinstance(factor, Symbol) and factor.find().is_counted for factor in factors)
