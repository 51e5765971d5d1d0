"""Rules of one's own, under the names of HIPS autograd's `extend`."""

from .insides import missing_of as _missing_of
from .rules import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
)  # fmt: skip
from .tracer import Box, notrace_primitive, register_notrace
from .vspaces import VSpace, vspace

__all__ = [
    "Box", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum",
    "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace",
    "vspace",
]  # fmt: skip

__getattr__ = _missing_of(__name__)
