"""What all comparisons say together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .measure import Comparison
from .peers import OURS


@dataclass(frozen=True)
class Summary:
    """Ratios are times of the best peer in units of ours: above one, ours is faster."""

    workloads: int
    all: float | None
    """The geometric mean over all workloads that have a ratio; None where there is none."""
    small_workloads: int
    small_calls: float | None
    """The same over those with small calls."""
    slower: list[tuple[str, float, str, bool]]
    """Where a peer is faster: workload, ratio, the peer, and whether BLAS bounds it; the worst first."""
    without_ours: list[str]
    """The workloads on which ours failed or was too slow: no mean counts them."""
    native_workloads: int
    native: float | None
    """The geometric mean of the hand-written C's time in units of ours."""
    native_reached: int
    """On how many of them ours is at least as fast."""


def summarise(comparisons: Sequence[Comparison]) -> Summary:
    with_ratio = [one for one in comparisons if one.ratio is not None]
    ratios = [_known(one.ratio) for one in with_ratio]
    small = [_known(one.ratio) for one in with_ratio if one.workload.small_calls]
    native = [_known(one.native_ratio) for one in comparisons if one.native_ratio is not None]
    slower = [
        (one.workload.name, ratio, str(one.best_peer), one.workload.blas_bound)
        for one, ratio in zip(with_ratio, ratios)
        if ratio < 1.0
    ]
    return Summary(
        workloads=len(ratios),
        all=geometric_mean(ratios),
        small_workloads=len(small),
        small_calls=geometric_mean(small),
        slower=sorted(slower, key=lambda one: one[1]),
        without_ours=[one.workload.name for one in comparisons if OURS not in one.timings],
        native_workloads=len(native),
        native=geometric_mean(native),
        native_reached=sum(ratio >= 1.0 for ratio in native),
    )


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def _known(ratio: float | None) -> float:
    assert ratio is not None
    return ratio
