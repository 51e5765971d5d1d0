"""The operators, one declaration each, by family. Importing this package fills `operator.OPERATORS`."""

from . import (
    composite,
    contraction,
    control,
    creation,
    decompositions,
    elementwise,
    fourier,
    indexing,
    linalg,
    matrices,
    movement,
    ordering,
    reduction,
    scattering,
    special,
    windows,
)

__all__ = [
    "composite",
    "contraction",
    "control",
    "creation",
    "decompositions",
    "elementwise",
    "fourier",
    "indexing",
    "linalg",
    "matrices",
    "movement",
    "ordering",
    "reduction",
    "scattering",
    "special",
    "windows",
]
