"""The loop IR: what a generated program does, in typed statements that know no language's syntax."""

from .expressions import *  # noqa: F403
from .formulas import apply_operator, fill  # noqa: F401
from .kernels import *  # noqa: F403
from .statements import *  # noqa: F403
