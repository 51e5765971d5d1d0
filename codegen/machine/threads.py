"""How many threads share the iterations of a large loop; `workers` has the threads."""

from __future__ import annotations

from ..cost.system import available_cores

_number: int | None = None
_cores = available_cores()


def get_num_threads() -> int:
    """How many threads share a large loop.

    >>> get_num_threads() >= 1
    True
    """
    return _number if _number is not None else _cores


def set_num_threads(number: int) -> None:
    """Set how many threads share a large loop; results of sums may differ in the last digits between numbers.

    Raises:
        ValueError: the number is below one.

    Example:
        >>> threads = get_num_threads()
        >>> set_num_threads(1)
        >>> get_num_threads()
        1
        >>> set_num_threads(threads)
    """
    global _number
    if number < 1:
        raise ValueError(f"set_num_threads: a number of at least 1 expected, found {number}.")
    _number = int(number)
