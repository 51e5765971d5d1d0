"""Programs with PyTorch's names, run with either library: what they return, and what their hooks see."""

from collections.abc import Callable
from typing import Any

Log = Callable[..., None]


def leaf(T: Any, *elements: float, requires_grad: bool = True) -> Any:
    return T.tensor([float(one) for one in elements], requires_grad=requires_grad)


def slope_of(x: Any) -> Any:
    return None if x.grad is None else x.grad.tolist()


def run(program: Callable[..., Any], library: Any) -> tuple[Any, list[Any]]:
    """What a program returns, and what its hooks have seen."""
    seen: list[Any] = []

    def log(*values: Any) -> None:
        seen.append([one.tolist() if hasattr(one, "tolist") else one for one in values])

    found = program(library, log)
    return (found.tolist() if hasattr(found, "tolist") else found), seen
