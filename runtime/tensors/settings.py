"""Settings of PyTorch that there is one answer to here, and files of tensors.

Tensors live in the memory of the CPU, and the same program gives the same numbers in every run.
"""

from __future__ import annotations

import pickle
from typing import Any

from ...tracer.errors import ArgumentError
from ..values import dtypes
from ..values.tensor import CPU, Device, Tensor


def get_default_device() -> Device:
    """The CPU.

    Example:
        >>> get_default_device()
        device(type='cpu')
    """
    return CPU


def set_default_device(device: Any) -> None:
    """Accept the CPU, which it is anyway.

    Raises:
        ArgumentError: another device.

    Example:
        >>> set_default_device("cpu")
    """
    if device is not None:
        Device(device)


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, by a type: `FloatTensor` or `DoubleTensor`, or its name, "torch.DoubleTensor".

    Example:
        >>> set_default_tensor_type("torch.FloatTensor")
    """
    name = (t if isinstance(t, str) else t.__name__).split(".")[-1]
    found = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16}
    if name not in found:
        raise ArgumentError(f"only floating-point types are supported as the default type, found {name}.")
    dtypes.set_default_dtype(found[name])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: all algorithms are.

    Example:
        >>> use_deterministic_algorithms(True)
    """


def are_deterministic_algorithms_enabled() -> bool:
    """True.

    Example:
        >>> are_deterministic_algorithms_enabled()
        True
    """
    return True


def get_float32_matmul_precision() -> str:
    """ "highest": products of float32 have its full precision.

    Example:
        >>> get_float32_matmul_precision()
        'highest'
    """
    return "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted; products keep their full precision.

    Raises:
        ArgumentError: it is not "highest", "high" or "medium".

    Example:
        >>> set_float32_matmul_precision("high")
    """
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f"precision must be 'highest', 'high' or 'medium', found {precision!r}.")


def set_flush_denormal(mode: bool) -> bool:
    """Not possible: subnormal numbers are computed with. Returns whether it was done.

    Example:
        >>> set_flush_denormal(True)
        False
    """
    return False


def get_num_interop_threads() -> int:
    """One: operations run one after another.

    Example:
        >>> get_num_interop_threads()
        1
    """
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accepted; see `get_num_interop_threads`.

    Example:
        >>> set_num_interop_threads(1)
    """


def typename(obj: Any) -> str:
    """The name of a tensor's type, `torch.FloatTensor`, or of the class of another object.

    Example:
        >>> typename(1.5)
        'float'
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = type(obj)
    return (
        kind.__qualname__ if kind.__module__ in ("", "builtins") else f"{kind.__module__}.{kind.__qualname__}"
    )


def save(obj: Any, f: Any, **options: Any) -> None:
    """Write tensors, nested as they are, to a file: a path, or an open one. The format is pickle's.

    Example:
        >>> save({"w": tensor([1.0])}, "weights.pt")
    """
    if hasattr(f, "write"):
        pickle.dump(obj, f)
        return
    with open(f, "wb") as file:
        pickle.dump(obj, file)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, **options: Any) -> Any:
    """Read what `save` has written. As with pickle: only from sources that you trust.

    Example:
        >>> save(tensor([1.0]), "weights.pt")
        >>> load("weights.pt")
        tensor([1.])
    """
    if hasattr(f, "read"):
        return pickle.load(f)
    with open(f, "rb") as file:
        return pickle.load(file)
