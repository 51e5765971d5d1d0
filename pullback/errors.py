"""Every error that pullback raises on purpose. All derive from PullbackError."""

from pullback.tracer.errors import (
    ArgumentError,
    CompilationError,
    DimensionError,
    DTypeError,
    GradientError,
    GraphError,
    LeakedTraceError,
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
    "DTypeError",
    "DimensionError",
    "GradientError",
    "GraphError",
    "LeakedTraceError",
    "MutationError",
    "OutputError",
    "PullbackError",
    "ShapeError",
    "TraceError",
    "UnsupportedError",
]
