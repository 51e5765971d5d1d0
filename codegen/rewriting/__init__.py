"""Graph in, graph out: what a program means, said in a way that costs less."""

from . import identities  # noqa: F401  first, since rewrites are tried in the order in which they are entered
