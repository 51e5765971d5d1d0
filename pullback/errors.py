"""Every error that pullback raises on purpose. All derive from PullbackError."""

from pullback.tracer.errors import (
    ArgumentError,
    CompilationError,
    ConvergenceError,
    DimensionError,
    DTypeError,
    EagerOnlyError,
    GradientError,
    GraphError,
    LeakedTraceError,
    LinearAlgebraError,
    MutationError,
    OutputError,
    PullbackError,
    ShapeError,
    TraceError,
    UnsupportedError,
)

__all__ = [
    "ArgumentError",
    "CompilationError",
    "ConvergenceError",
    "DTypeError",
    "DimensionError",
    "EagerOnlyError",
    "GradientError",
    "GraphError",
    "LeakedTraceError",
    "LinearAlgebraError",
    "MutationError",
    "OutputError",
    "PullbackError",
    "ShapeError",
    "TraceError",
    "UnsupportedError",
]
