"""lifelines' fitters with pullback in the place of HIPS autograd."""

from typing import Any

import pytest

pytest.importorskip("lifelines")

PROGRAM = """
import json, lifelines
from lifelines.datasets import load_rossi, load_waltons

def univariate(make):
    data = load_waltons()
    return make().fit(data["T"], data["E"])

def regression(make):
    return make().fit(load_rossi(), "week", "arrest")

found = {{}}
for fit, make in {fits}:
    fitter = fit(make)
    errors = fitter.summary["se(coef)"].to_list()
    found[type(fitter).__name__] = [fitter.log_likelihood_, *fitter.params_.to_list(), *errors]
print(json.dumps(found))
"""
UNIVARIATE = """[
    (univariate, lifelines.WeibullFitter), (univariate, lifelines.ExponentialFitter),
    (univariate, lifelines.LogNormalFitter), (univariate, lifelines.LogLogisticFitter),
    (univariate, lambda: lifelines.PiecewiseExponentialFitter([20.0, 40.0])),
    (univariate, lambda: lifelines.SplineFitter([6.0, 30.0, 60.0])),
]"""
REGRESSION = """[
    (regression, lifelines.WeibullAFTFitter), (regression, lifelines.LogNormalAFTFitter),
    (regression, lifelines.LogLogisticAFTFitter), (regression, lifelines.CoxPHFitter),
]"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--compiled",)], ids=["eager", "compiled"])
@pytest.mark.parametrize("fits", [UNIVARIATE, REGRESSION], ids=["univariate", "regression"])
def test_fits_are_those_with_hips_autograd(both_ways: Any, fits: str, options: tuple[str, ...]) -> None:
    ours, theirs = both_ways(PROGRAM.format(fits=fits), *options)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        assert ours[name] == pytest.approx(values, rel=1e-4, abs=1e-6), name
