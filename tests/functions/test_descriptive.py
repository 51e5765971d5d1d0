"""Statistics of samples in scipy.stats on tensors."""

from typing import Any

import pytest
import scipy.stats as stats
from scipy_programs import Program, assert_derivatives, assert_values, drawn

import pullback as pb

pytestmark = pytest.mark.part(8)

RNG = drawn("samples")
X, Y = RNG.random((6, 4)) + 0.3, RNG.random((6, 4)) + 0.2
WEIGHTS = RNG.random((6, 4)) + 0.1
CALLS: dict[str, tuple[dict[str, Any], ...]] = {
    "gmean": ({}, {"axis": 1, "keepdims": True}, {"axis": None}),
    "hmean": ({}, {"axis": -1}),
    "zscore": ({}, {"axis": 1, "ddof": 1}, {"axis": None}),
    "gzscore": ({},),
    "moment": ({"order": 3}, {"order": 2, "axis": None}, {"order": 2, "center": 0.4}),
    "skew": ({}, {"axis": 1, "bias": False}),
    "kurtosis": ({}, {"axis": None, "fisher": False}, {"bias": False}),
    "sem": ({}, {"axis": 1, "ddof": 0}),
    "variation": ({}, {"ddof": 1}),
    "entropy": ({}, {"base": 2.0, "axis": 1}),
}
PROGRAMS: dict[str, Program] = {
    **{
        f"{name} {options}": (lambda x, name=name, options=options: getattr(stats, name)(x, **options), (X,))
        for name, every in CALLS.items()
        for options in every
    },
    "gmean with weights": (lambda x, w: stats.gmean(x, weights=w), (X, WEIGHTS)),
    "hmean with weights": (lambda x, w: stats.hmean(x, weights=w, axis=1), (X, WEIGHTS[0])),
    "pmean": (lambda x: stats.pmean(x, 2.5) + stats.pmean(x, 0), (X,)),
    "zmap": (stats.zmap, (X[:2], Y)),
    "relative entropy": (stats.entropy, (X, Y)),
    "pearsonr": (lambda x, y: stats.pearsonr(x, y)[0] + stats.pearsonr(x, y).pvalue, (X[:, 0], Y[:, 1])),
}
programs = pytest.mark.parametrize("name", PROGRAMS)


@programs
def test_values_are_scipys(name: str) -> None:
    assert_values(name, PROGRAMS[name])


@pytest.mark.drawn(2)
@programs
def test_first_and_second_derivatives(name: str) -> None:
    assert_derivatives(name, PROGRAMS[name])


def test_what_is_not_there_says_so() -> None:
    for call, match in (
        (lambda x: stats.skew(x, nan_policy="omit").sum(), "skew: nan_policy='omit' is not supported"),
        (lambda x: stats.pearsonr(x[0], x[1], alternative="less")[0], "pearsonr: alternative='less'"),
        (lambda x: stats.spearmanr(x[0], x[1])[0], "scipy.stats"),
    ):
        with pytest.raises(pb.errors.PullbackError, match=match):
            pb.grad(call)(X)
