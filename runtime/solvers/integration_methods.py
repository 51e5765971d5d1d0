"""The methods of `solve_ivp` by name."""

from __future__ import annotations

from collections.abc import Callable

from .radau import Radau
from .runge_kutta import Dop853, RungeKutta
from .switching import Switching

METHODS: dict[str, Callable[[str], RungeKutta]] = {
    "RK23": RungeKutta,
    "RK45": RungeKutta,
    "DOP853": Dop853,
    "Radau": Radau,
    "LSODA": Switching,
}
