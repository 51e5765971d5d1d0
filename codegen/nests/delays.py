"""Carries that are what another carry was some steps ago: they lie in the history of that one.

    now, before = step(now, before), now

`before` is `now` of a step ago. With a row more in front, its first value, the history of `now` holds both,
and no step copies an array. The same goes for the terms of a recurrence of any depth.
"""

from __future__ import annotations

from collections.abc import Collection

from pullback.tracer.graph import Node
from pullback.tracer.loop import LoopNode


def find_delays(loop: LoopNode, carries: Collection[int]) -> dict[int, list[int]]:
    """For each of some carries that others follow, those others: its values of one step ago, of two, ..."""
    inputs, outputs = loop.body.inputs, loop.body.outputs
    place = {inputs[index]: index for index in carries}
    follower: dict[int, int] = {}
    for index in sorted(carries):
        leader = place.get(outputs[index])
        if leader is not None and leader != index:
            follower.setdefault(leader, index)
    found: dict[int, list[int]] = {}
    for leader in follower.keys() - set(follower.values()):  # of carries that only take turns none leads
        line = [leader]
        while line[-1] in follower:
            line.append(follower[line[-1]])
        found[leader] = line[1:]
    return found


def delay_in(history: Node) -> int:
    """How many steps the first rows of a history are ahead of what it is the history of."""
    return history.attributes["delay"]
