"""Loops and choices whose bodies draw random numbers as often as data says: they carry the count of draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....tracer.draw_order import DrawOrder, OrderNeeded
from ...captures.randomness import undrawn_if
from ...values.tensor import Tensor, make
from ...values.value_kinds import Auxiliary

Function = Callable[..., Any]


def counting_draws(attempt: Callable[[], Any], again: Callable[[Tensor], tuple[Any, Tensor]]) -> Any:
    """What `attempt` traces; if bodies draw as data says, the first of what `again` gives.

    Args:
        again: from the count of draws before to the result and the count of draws after.
    """
    try:
        with undrawn_if(OrderNeeded):
            return attempt()
    except OrderNeeded:
        pass
    order = DrawOrder()
    result, count = again(make(order.count(), Auxiliary))
    order.go_on(count.payload)
    return result


def counted(function: Function) -> Function:
    """A function of the count of draws before, and of more: its result, and the count of draws after."""

    def run(count: Tensor, *arguments: Any) -> tuple[Any, Tensor]:
        order = DrawOrder()
        order.go_on(count.payload)
        return function(*arguments), make(order.count(), Auxiliary)

    return run
